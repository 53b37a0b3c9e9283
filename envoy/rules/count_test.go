package rules

import (
	"math/rand/v2"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

// TestCountEncoded counts what decoding finds, of any number of localities.
func TestCountEncoded(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		a, want := &endpointv3.ClusterLoadAssignment{ClusterName: "web"}, 0
		for range r.IntN(4) {
			l := &endpointv3.LocalityLbEndpoints{Priority: 1}
			for range r.IntN(4) {
				l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}})
				want++
			}
			a.Endpoints = append(a.Endpoints, l)
		}
		for typeURL, m := range map[string]proto.Message{Assignment: a, Cluster: &clusterv3.Cluster{Name: "web", LoadAssignment: a}} {
			data, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if got := CountEncoded(typeURL, data); got != want || Count(m) != want {
				t.Errorf("seed %d: %d encoded, %d decoded, want %d", seed, got, Count(m), want)
			}
			if len(data) > 0 {
				_ = CountEncoded(typeURL, data[:r.IntN(len(data))]) // must not panic
			}
		}
	}
}
