package rules_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy/rules"
	"hdsd/internal/yamlpb"
	"hdsd/test/envoy"
)

// What no Envoy can build is refused by name, and what stands beside it is
// not. (That this is so with Envoy is TestWhatEnvoyCannotBuild in test/envoy.)
func TestWhatEnvoyCannotBuild(t *testing.T) {
	for _, r := range envoy.Refusals() {
		t.Run(r.Fields, func(t *testing.T) {
			root, problems := yamlpb.ParseAsEnvoy("a.yaml", r.YAML())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			static, _ := root.Field("static_resources")
			clusters, _ := static.Field("clusters")
			c := &clusterv3.Cluster{}
			if problems := clusters.Elements()[0].Decode(c); len(problems) > 0 {
				t.Fatal(problems)
			}
			found := ""
			for _, v := range rules.Violations(c) {
				found += v.Field
			}
			if found != r.Field {
				t.Errorf("got %q, want %q", found, r.Field)
			}
		})
	}
}

// TestWrongEndpointsHideNothing: however many there are, what stands after them is found.
func TestWrongEndpointsHideNothing(t *testing.T) {
	group := &endpointv3.LocalityLbEndpoints{LbEndpoints: make([]*endpointv3.LbEndpoint, 2000)}
	for i := range group.LbEndpoints {
		group.LbEndpoints[i] = &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Hostname: "\n"}}, HealthStatus: -1}
	}
	a := &endpointv3.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpointv3.LocalityLbEndpoints{group, {Priority: 1000}}}
	if got := rules.Violations(a); len(got) != 1 || got[0].Field != "endpoints[1].priority" {
		t.Errorf("got %v", got)
	}
}
