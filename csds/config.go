package csds

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The types that have a place in the deprecated form.
const (
	clusterType    = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	assignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// writer makes ClientConfigs.
type writer struct {
	exclude bool // configurations are left out
	left    int  // bytes left; making one ends early when it is below zero
	redact  redactor
}

// client gives one client in both forms, which share their parts.
func (w *writer) client(c *Client) *statusv3.ClientConfig {
	out := &statusv3.ClientConfig{Node: shown(c.Node), ClientScope: c.Scope}
	if c.Resources == nil {
		return out
	}
	for r := range c.Resources {
		g := w.generic(&r)
		w.left -= len(g.GetXdsConfig().GetValue()) + len(g.GetErrorState().GetFailedConfiguration().GetValue())
		if w.left < 0 {
			return out
		}
		out.GenericXdsConfigs = append(out.GenericXdsConfigs, g)
	}
	for _, dump := range []dump{clusterDump{&adminv3.ClustersConfigDump{}}, endpointDump{&adminv3.EndpointsConfigDump{}}} {
		if x := w.perXds(out.GenericXdsConfigs, dump); x != nil {
			out.XdsConfig = append(out.XdsConfig, x)
		}
	}
	return out
}

// shown gives a node without its extensions.
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

// perXds gives the deprecated form of all resources of one type; nil where
// there are none.
func (w *writer) perXds(all []*statusv3.ClientConfig_GenericXdsConfig, d dump) *statusv3.PerXdsConfig {
	out, any := &statusv3.PerXdsConfig{}, false
	for _, g := range all {
		if g.GetTypeUrl() != d.typeURL() {
			continue
		}
		any = true
		if !absent(g) && gravity[g.GetConfigStatus()] > gravity[out.GetStatus()] {
			out.Status = g.GetConfigStatus()
		}
		if g.GetXdsConfig() != nil || w.exclude {
			d.add(g)
		}
	}
	if !any {
		return nil
	}
	if out.GetStatus() == statusv3.ConfigStatus_UNKNOWN {
		out.Status = statusv3.ConfigStatus_SYNCED // the client has what there is: nothing
	}
	d.put(out)
	return out
}

// absent tells whether a resource does not exist and there is nothing to be
// said of that, which is how it shall be.
func absent(g *statusv3.ClientConfig_GenericXdsConfig) bool {
	return g.GetClientStatus() == adminv3.ClientResourceStatus_DOES_NOT_EXIST &&
		g.GetConfigStatus() == statusv3.ConfigStatus_NOT_SENT
}

// gravity says which status decides that of a type.
var gravity = map[statusv3.ConfigStatus]int{
	statusv3.ConfigStatus_SYNCED: 1, statusv3.ConfigStatus_NOT_SENT: 2,
	statusv3.ConfigStatus_STALE: 3, statusv3.ConfigStatus_ERROR: 4,
}

// dump is the deprecated form of one type.
type dump interface {
	typeURL() string
	add(g *statusv3.ClientConfig_GenericXdsConfig)
	put(to *statusv3.PerXdsConfig)
}

type clusterDump struct{ *adminv3.ClustersConfigDump }

func (clusterDump) typeURL() string { return clusterType }

func (d clusterDump) add(g *statusv3.ClientConfig_GenericXdsConfig) {
	d.DynamicActiveClusters = append(d.DynamicActiveClusters, &adminv3.ClustersConfigDump_DynamicCluster{
		VersionInfo: g.GetVersionInfo(), Cluster: g.GetXdsConfig(), LastUpdated: g.GetLastUpdated(),
		ErrorState: g.GetErrorState(), ClientStatus: g.GetClientStatus(),
	})
}

func (d clusterDump) put(to *statusv3.PerXdsConfig) {
	to.PerXdsConfig = &statusv3.PerXdsConfig_ClusterConfig{ClusterConfig: d.ClustersConfigDump}
}

type endpointDump struct{ *adminv3.EndpointsConfigDump }

func (endpointDump) typeURL() string { return assignmentType }

func (d endpointDump) add(g *statusv3.ClientConfig_GenericXdsConfig) {
	d.DynamicEndpointConfigs = append(d.DynamicEndpointConfigs, &adminv3.EndpointsConfigDump_DynamicEndpointConfig{
		VersionInfo: g.GetVersionInfo(), EndpointConfig: g.GetXdsConfig(), LastUpdated: g.GetLastUpdated(),
		ErrorState: g.GetErrorState(), ClientStatus: g.GetClientStatus(),
	})
}

func (d endpointDump) put(to *statusv3.PerXdsConfig) {
	to.PerXdsConfig = &statusv3.PerXdsConfig_EndpointConfig{EndpointConfig: d.EndpointsConfigDump}
}
