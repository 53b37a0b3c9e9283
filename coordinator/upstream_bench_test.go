package coordinator_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// linear is a management server that changes one resource at a time.
func linear(b *testing.B, clusters int) (source string, assignments *cache.LinearCache, made []*endpointv3.ClusterLoadAssignment) {
	b.Helper()
	all, allAssignments := map[string]types.Resource{}, map[string]types.Resource{}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%05d", i)
		var addresses []string
		for j := range 10 {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d:80", i>>8, i&255, j))
		}
		all[name] = byEDS(name)[0]
		a, _ := endpoints(name, noWord, addresses...).(*endpointv3.ClusterLoadAssignment)
		allAssignments[name], made = a, append(made, a)
	}
	assignments = cache.NewLinearCache(resource.EndpointType, cache.WithInitialResources(allAssignments))
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches: map[string]cache.Cache{
			resource.EndpointType: assignments, resource.ClusterType: cache.NewLinearCache(resource.ClusterType, cache.WithInitialResources(all)),
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, gcp.NewServer(ctx, mux, nil))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	b.Cleanup(func() { cancel(); server.Stop(); <-ended })
	m := management{address: listener.Addr().String()}
	return m.source("upstream", "600s", ""), assignments, made
}

// BenchmarkUpstreamToDataPlane measures the time from a change at a management server, in one of many
// clusters with ten endpoints each, to the receipt by a data plane. All of them run on this machine.
func BenchmarkUpstreamToDataPlane(b *testing.B) {
	for _, clusters := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			source, assignments, made := linear(b, clusters)
			s := newSite(b, b.TempDir(), quick+source, static("local", "127.0.0.1:1"))
			s.ready()
			stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).DeltaAggregatedResources(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{
				Node: &corev3.Node{Id: "plane"}, TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{made[0].GetClusterName()},
			}); err != nil {
				b.Fatal(err)
			}
			receive := func() {
				answer, err := stream.Recv()
				if err == nil {
					err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: answer.GetNonce()})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			receive()
			var took []time.Duration
			for b.Loop() {
				next := endpoints(made[0].GetClusterName(), noWord, "10.0.0.1:80").(*endpointv3.ClusterLoadAssignment)
				next.GetEndpoints()[0].LoadBalancingWeight = wrapperspb.UInt32(uint32(1 + len(took)))
				began := time.Now()
				if err := assignments.UpdateResource(made[0].GetClusterName(), next); err != nil {
					b.Fatal(err)
				}
				receive()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms-median")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "ms-p99")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "ms-worst")
		})
	}
}
