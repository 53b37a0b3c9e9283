package csds

import (
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// perXds returns the deprecated form of all resources of one type, or nil.
func (w *writer) perXds(resources []*statusv3.ClientConfig_GenericXdsConfig, d dump) *statusv3.PerXdsConfig {
	var included []*statusv3.ClientConfig_GenericXdsConfig
	for _, g := range resources {
		if g.GetTypeUrl() != d.typeURL() {
			continue
		}
		included = append(included, g)
		if g.GetXdsConfig() != nil || w.exclude {
			d.add(g)
		}
	}
	if len(included) == 0 {
		return nil
	}
	message := &statusv3.PerXdsConfig{Status: configStatus(included)}
	if message.GetStatus() == statusv3.ConfigStatus_UNKNOWN {
		message.ClientStatus = clientStatus(included) //nolint:staticcheck // the only status of this form
	}
	d.put(message)
	return message
}

// configStatus returns the config_status of a type: that of its worst resource. It is
// UNKNOWN where the client is hdsd itself, because no resource has one.
func configStatus(resources []*statusv3.ClientConfig_GenericXdsConfig) statusv3.ConfigStatus {
	worst := statusv3.ConfigStatus_UNKNOWN
	for _, g := range resources {
		status := g.GetConfigStatus()
		if absent(g) {
			status = statusv3.ConfigStatus_SYNCED // the client knows that it does not exist
		}
		if gravity[status] > gravity[worst] {
			worst = status
		}
	}
	return worst
}

// absent reports whether a resource does not exist, and the client needs no message to know
// that.
func absent(g *statusv3.ClientConfig_GenericXdsConfig) bool {
	return g.GetClientStatus() == adminv3.ClientResourceStatus_DOES_NOT_EXIST &&
		g.GetConfigStatus() == statusv3.ConfigStatus_NOT_SENT
}

// gravity ranks statuses: the gravest of a type counts.
var gravity = map[statusv3.ConfigStatus]int{
	statusv3.ConfigStatus_SYNCED: 1, statusv3.ConfigStatus_NOT_SENT: 2,
	statusv3.ConfigStatus_STALE: 3, statusv3.ConfigStatus_ERROR: 4,
}

// clientStatus returns the client_status of a type: that of its worst resource.
func clientStatus(resources []*statusv3.ClientConfig_GenericXdsConfig) statusv3.ClientConfigStatus {
	worst := view{}
	for _, g := range resources {
		if v := views[g.GetClientStatus()]; v.gravity > worst.gravity {
			worst = v
		}
	}
	return worst.status
}

// view is a resource's client_status in the deprecated form.
type view struct {
	status  statusv3.ClientConfigStatus
	gravity int
}

var views = map[adminv3.ClientResourceStatus]view{
	adminv3.ClientResourceStatus_ACKED:          {statusv3.ClientConfigStatus_CLIENT_ACKED, 1},
	adminv3.ClientResourceStatus_DOES_NOT_EXIST: {statusv3.ClientConfigStatus_CLIENT_ACKED, 1},
	adminv3.ClientResourceStatus_REQUESTED:      {statusv3.ClientConfigStatus_CLIENT_REQUESTED, 2},
	adminv3.ClientResourceStatus_TIMEOUT:        {statusv3.ClientConfigStatus_CLIENT_REQUESTED, 2},
	adminv3.ClientResourceStatus_RECEIVED_ERROR: {statusv3.ClientConfigStatus_CLIENT_RECEIVED_ERROR, 3},
	adminv3.ClientResourceStatus_NACKED:         {statusv3.ClientConfigStatus_CLIENT_NACKED, 4},
}

// dump is the deprecated form of one type.
type dump interface {
	typeURL() string
	add(g *statusv3.ClientConfig_GenericXdsConfig)
	put(target *statusv3.PerXdsConfig)
}

type clusterDump struct{ *adminv3.ClustersConfigDump }

func (clusterDump) typeURL() string { return resourcev3.ClusterType }

func (d clusterDump) add(g *statusv3.ClientConfig_GenericXdsConfig) {
	d.DynamicActiveClusters = append(d.DynamicActiveClusters, &adminv3.ClustersConfigDump_DynamicCluster{
		VersionInfo: g.GetVersionInfo(), Cluster: g.GetXdsConfig(), LastUpdated: g.GetLastUpdated(),
		ErrorState: g.GetErrorState(), ClientStatus: g.GetClientStatus(),
	})
}

func (d clusterDump) put(target *statusv3.PerXdsConfig) {
	target.PerXdsConfig = &statusv3.PerXdsConfig_ClusterConfig{ClusterConfig: d.ClustersConfigDump}
}

type endpointDump struct{ *adminv3.EndpointsConfigDump }

func (endpointDump) typeURL() string { return resourcev3.EndpointType }

func (d endpointDump) add(g *statusv3.ClientConfig_GenericXdsConfig) {
	d.DynamicEndpointConfigs = append(d.DynamicEndpointConfigs, &adminv3.EndpointsConfigDump_DynamicEndpointConfig{
		VersionInfo: g.GetVersionInfo(), EndpointConfig: g.GetXdsConfig(), LastUpdated: g.GetLastUpdated(),
		ErrorState: g.GetErrorState(), ClientStatus: g.GetClientStatus(),
	})
}

func (d endpointDump) put(target *statusv3.PerXdsConfig) {
	target.PerXdsConfig = &statusv3.PerXdsConfig_EndpointConfig{EndpointConfig: d.EndpointsConfigDump}
}
