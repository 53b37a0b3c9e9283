package envoy

import (
	"net"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/eds"
	real "hdsd/internal/demo/envoy"
	"hdsd/internal/wire"
	"hdsd/publish"
	assignments "hdsd/source"
)

// TestTTL has Envoys keep what they are sent with a ttl as long as the server
// lives, and drop the cluster when it is gone. hdsd sends no assignment with a ttl by
// state of the world; by delta an Envoy keeps the endpoints of one that expired.
func TestTTL(t *testing.T) {
	for _, version := range []string{"1.40.0", "1.36.4"} {
		for name, delta := range map[string]bool{"delta": true, "state of the world": false} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				address, stop := serveWithTTL(t, 2*time.Second)
				p := StartDataPlane(t, DataPlane{ID: "dp-1", ADS: address, Version: version, Delta: delta, CDS: true, Route: "web"})
				has := func() bool {
					clusters, err := p.TryClusters()
					return err == nil && len(clusters["web"]) == 1
				}
				if !real.Await(t.Context(), 10*time.Second, has) {
					t.Fatal("it never had the endpoint")
				}
				count := func(stat string) uint64 {
					stats, err := p.TryStats(stat)
					if err != nil {
						return 0
					}
					return stats["cluster_manager."+stat]
				}
				beaten := count("cds.update_success") + 6 // three heartbeats in each ttl
				if !real.Await(t.Context(), 20*time.Second, func() bool { return count("cds.update_success") >= beaten }) {
					t.Fatal("no heartbeats")
				}
				if count("cluster_removed") != 0 || count("cds.update_rejected") != 0 || !has() {
					t.Errorf("%d clusters removed, %d updates rejected", count("cluster_removed"), count("cds.update_rejected"))
				}
				stop()
				if !real.Await(t.Context(), 20*time.Second, func() bool { return count("cluster_removed") == 1 }) {
					t.Error("the cluster did not expire")
				}
				if !p.Alive() {
					t.Error("it is dead")
				}
			})
		}
	}
}

func serveWithTTL(t *testing.T, ttl time.Duration) (address string, stop func()) {
	t.Helper()
	s := eds.NewServer(eds.Options{TTL: map[string]time.Duration{resourcev3.ClusterType: ttl, resourcev3.EndpointType: ttl}})
	web := &clusterv3.Cluster{Name: "web", ConnectTimeout: durationpb.New(time.Second)}
	endpoint := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 9},
	}}}}
	locality := &endpointv3.LocalityLbEndpoints{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}}},
	}
	s.Update(publish.Update{
		Clusters: []publish.Cluster{{Message: publish.TakeOver(web, publish.ByADS()), Checked: true}},
		Assignments: []publish.Assignment{{Name: "web", Wire: assignments.EncodeAssignment(&endpointv3.ClusterLoadAssignment{
			ClusterName: "web", Endpoints: []*endpointv3.LocalityLbEndpoints{locality},
		}).Wire()}},
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := grpc.NewServer(wire.ServerOption())
	s.Register(transport)
	served := make(chan error, 1)
	go func() { served <- transport.Serve(listener) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		s.Close()
		transport.Stop()
		<-served
	}
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}
