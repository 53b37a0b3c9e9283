package catalog_test

import (
	"math"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/catalog"
	"hdsd/source"
	"hdsd/source/sample"
)

func weighted(address string, weight uint32) *endpointv3.LbEndpoint {
	e := sample.Endpoint(address)
	e.LoadBalancingWeight = wrapperspb.UInt32(weight)
	return e
}

// TestDuplicatesBecomeOneEndpointWithTheirWeight where hdsd makes EDS of a list of endpoints,
// and nowhere else: an Envoy counts each entry of a list, and takes an address once by EDS.
func TestDuplicatesBecomeOneEndpointWithTheirWeight(t *testing.T) {
	const one, two = "10.0.0.1:80", "10.0.0.2:80"
	from := sample.Web("x")
	given := &endpointv3.ClusterLoadAssignment{ClusterName: "x", Endpoints: []*endpointv3.LocalityLbEndpoints{
		{Locality: &corev3.Locality{Zone: "a"}, LbEndpoints: []*endpointv3.LbEndpoint{
			sample.Endpoint(one), weighted(two, math.MaxUint32-20), weighted(one, 5), sample.Endpoint(one), weighted(two, 5), weighted(one, 0),
		}},
		{Locality: &corev3.Locality{Zone: "b"}, LbEndpoints: []*endpointv3.LbEndpoint{sample.Endpoint(two)}},
		{Locality: &corev3.Locality{Zone: "a"}, LbEndpoints: []*endpointv3.LbEndpoint{sample.Endpoint(one)}},
		{Locality: &corev3.Locality{Zone: "a"}, Priority: 1, LbEndpoints: []*endpointv3.LbEndpoint{sample.Endpoint(one)}},
	}}
	from.Assignment = source.EncodeAssignment(given)
	want := proto.CloneOf(given)
	want.Endpoints[0].LbEndpoints = []*endpointv3.LbEndpoint{weighted(one, 8), weighted(two, math.MaxUint32-15)}
	want.Endpoints[2].LbEndpoints = nil
	acceptable := proto.CloneOf(given)
	acceptable.Endpoints[0].LbEndpoints = acceptable.Endpoints[0].LbEndpoints[:5]

	k := catalog.Prepare(from, noRules())
	if got := k.Assignment.Message(); !proto.Equal(got, want) {
		t.Errorf("by EDS %v, want %v", got, want)
	}
	if got := k.Original().GetLoadAssignment(); !proto.Equal(got, acceptable) {
		t.Errorf("as given %v, want %v", got, acceptable)
	}
	if len(k.CheckedIndex) != 4 || len(k.CheckedIndex[0]) != 2 || k.CheckedIndex[0][0] == catalog.None || k.CheckedIndex[0][1] == catalog.None || k.CheckedIndex[3][0] != k.CheckedIndex[0][0] {
		t.Errorf("checked are %v", k.CheckedIndex)
	}
	for i := range k.Endpoints {
		if !k.Endpoints[i].InAssignment {
			t.Errorf("%v is not published", k.Endpoints[i].Key())
		}
	}

	unchecked := *from
	unchecked.HealthChecks = nil
	byEDS := *from
	byEDS.Config = &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
	for kind, from := range map[string]*source.Cluster{"not checked": &unchecked, "EDS": &byEDS} {
		if got := catalog.Prepare(from, noRules()).Assignment.Message(); !proto.Equal(got, acceptable) {
			t.Errorf("%s: %v, want %v", kind, got, acceptable)
		}
	}
}
