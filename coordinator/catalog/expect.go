package catalog

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/source"
)

// Checks reports whether hdsd would check a cluster of a source if it had an endpoint, and
// publish the verdict.
func (r *Rules) Checks(from string, config *clusterv3.Cluster) bool {
	checks := config.GetHealthChecks()
	for i := 0; i < len(r.DefaultHealthChecks) && len(checks) == 0; i++ {
		if source.Match(r.DefaultHealthChecks[i].Glob, config.GetName()) {
			checks = r.DefaultHealthChecks[i].HealthChecks
		}
	}
	if len(checks) == 0 {
		return false
	}
	k := Prepare(&source.Cluster{
		Source: from, Name: config.GetName(), ServiceName: config.GetName(), Config: config, HealthChecks: checks, Assignment: example(config.GetName()),
	}, r)
	return !k.Shadow && k.Published != k.Original
}

// example is an assignment with an endpoint that every checker could check.
func example(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "192.0.2.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}},
	}}}
}
