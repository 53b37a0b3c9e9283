package csds

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// writer makes ClientConfigs.
type writer struct {
	exclude bool // configurations are left out
	left    int  // remaining bytes; below zero the client is not finished
	redact  redactor
}

// client returns a client in both forms, which share their parts.
func (w *writer) client(c *Client) *statusv3.ClientConfig {
	config := &statusv3.ClientConfig{Node: shown(c.Node), ClientScope: c.Scope}
	if c.Resources == nil {
		return config
	}
	for r := range c.Resources {
		g := w.generic(&r)
		w.left -= len(g.GetXdsConfig().GetValue()) + len(g.GetErrorState().GetFailedConfiguration().GetValue())
		if w.left < 0 {
			return config
		}
		config.GenericXdsConfigs = append(config.GenericXdsConfigs, g)
	}
	for _, dump := range []dump{clusterDump{&adminv3.ClustersConfigDump{}}, endpointDump{&adminv3.EndpointsConfigDump{}}} {
		if x := w.perXds(config.GenericXdsConfigs, dump); x != nil {
			config.XdsConfig = append(config.XdsConfig, x)
		}
	}
	return config
}

// shown returns a node without its extensions.
func shown(n *corev3.Node) *corev3.Node {
	if len(n.GetExtensions()) == 0 {
		return n
	}
	return &corev3.Node{
		Id: n.GetId(), Cluster: n.GetCluster(), Metadata: n.GetMetadata(), DynamicParameters: n.GetDynamicParameters(),
		Locality: n.GetLocality(), UserAgentName: n.GetUserAgentName(), UserAgentVersionType: n.GetUserAgentVersionType(),
		ClientFeatures: n.GetClientFeatures(), ListeningAddresses: n.GetListeningAddresses(),
	}
}

func (w *writer) generic(r *Resource) *statusv3.ClientConfig_GenericXdsConfig {
	g := &statusv3.ClientConfig_GenericXdsConfig{
		TypeUrl: r.TypeURL, Name: r.Name, VersionInfo: r.Version, LastUpdated: timestamp(r.Updated),
		XdsConfig: w.body(r.Body), ConfigStatus: r.Config, ClientStatus: r.Client,
	}
	if e := r.Error; e != nil {
		g.ErrorState = &adminv3.UpdateFailureState{
			FailedConfiguration: g.XdsConfig, LastUpdateAttempt: timestamp(e.Time), Details: e.Details, VersionInfo: e.Version,
		}
		if e.Version != r.Version || g.XdsConfig == nil {
			g.ErrorState.FailedConfiguration = w.body(e.Body)
		}
	}
	return g
}

func (w *writer) body(make Body) *anypb.Any {
	if w.exclude || make == nil {
		return nil
	}
	return w.redact.shown(make())
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
