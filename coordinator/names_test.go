package coordinator_test

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestDataPlaneNamesAllClusters covers the default limits: a source may have 100,000 clusters, and a data
// plane may name all of them before they exist.
func TestDataPlaneNamesAllClusters(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))
	s.ready()
	ask := func(names int) (*discoveryv3.DeltaDiscoveryResponse, error) {
		plane, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "plane"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"web"}}
		for len(asked.ResourceNamesSubscribe) < names {
			asked.ResourceNamesSubscribe = append(asked.ResourceNamesSubscribe, fmt.Sprint(len(asked.ResourceNamesSubscribe)))
		}
		if err := plane.Send(asked); err != nil {
			t.Fatal(err)
		}
		return plane.Recv()
	}
	if got, err := ask(100_000); err != nil || len(got.GetResources()) != 1 {
		t.Errorf("100,000 names: %d resources, %v", len(got.GetResources()), err)
	}
	if _, err := ask(200_002); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than twice as many: %v", err)
	}
}
