package rules_test

import (
	"math"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy/rules"
)

// TestSumsOfWeights: an Envoy refuses those above a uint32. (That it takes what is left is
// TestAnEnvoyTakesWhatIsPublished in test/envoy.)
func TestSumsOfWeights(t *testing.T) {
	group := func(priority, weight uint32, endpoints ...uint32) *endpointv3.LocalityLbEndpoints {
		g := &endpointv3.LocalityLbEndpoints{Priority: priority}
		if weight > 0 {
			g.LoadBalancingWeight = wrapperspb.UInt32(weight)
		}
		for _, w := range endpoints {
			e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}}
			if w > 0 {
				e.LoadBalancingWeight = wrapperspb.UInt32(w)
			}
			g.LbEndpoints = append(g.LbEndpoints, e)
		}
		return g
	}
	const most = math.MaxUint32
	for _, c := range []struct {
		groups []*endpointv3.LocalityLbEndpoints
		want   bool
	}{
		{nil, false},
		{[]*endpointv3.LocalityLbEndpoints{group(0, most, most-1, 0), group(1, most, most)}, false},
		{[]*endpointv3.LocalityLbEndpoints{group(0, 0, most, 0)}, true},
		{[]*endpointv3.LocalityLbEndpoints{group(0, 0, most), group(0, 0, most)}, false},
		{[]*endpointv3.LocalityLbEndpoints{group(0, most), group(0, 1)}, true},
	} {
		a := &endpointv3.ClusterLoadAssignment{ClusterName: "a", Endpoints: c.groups}
		if got := rules.Overweight(a); got != c.want || len(rules.Violations(a)) > 0 != c.want {
			t.Errorf("%v: %t", c.groups, got)
		}
	}
}
