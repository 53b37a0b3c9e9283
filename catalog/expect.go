package catalog

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/source"
)

// Checks reports whether hdsd would check a cluster of a source if it had an endpoint, and
// publish the verdict.
func (r *Rules) Checks(sourceName string, config *clusterv3.Cluster) bool {
	checks := config.GetHealthChecks()
	if i := r.defaultOf(config.GetName()); i != None && len(checks) == 0 {
		checks = r.DefaultHealthChecks[i].HealthChecks
	}
	if len(checks) == 0 {
		return false
	}
	k := Prepare(&source.Cluster{
		Source: sourceName, Name: config.GetName(), ServiceName: config.GetName(), Config: config, HealthChecks: checks, Assignment: example(config.GetName()),
	}, r)
	return !k.Shadow && k.ByEDS()
}

// Class is the part of a cluster's name that Checks depends on.
type Class struct{ defaults, policy int }

// ClassOf returns the class of a name.
func (r *Rules) ClassOf(name string) Class { return Class{r.defaultOf(name), r.policyOf(name)} }

// defaultOf returns the index of the default health checks for a name.
func (r *Rules) defaultOf(name string) int {
	for i := range r.DefaultHealthChecks {
		if source.Match(r.DefaultHealthChecks[i].Glob, name) {
			return i
		}
	}
	return None
}

// policyOf returns the index of the policy for a name.
func (r *Rules) policyOf(name string) int {
	for i := range r.policies {
		if source.Match(r.policies[i].glob, name) {
			return i
		}
	}
	return None
}

// example is an assignment with an endpoint that every checker could check.
func example(name string) *source.Assignment {
	return source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "192.0.2.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}},
	}}})
}
