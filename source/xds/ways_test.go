package xds

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"hdsd/envoy/rules"
)

// ways are all forms of a management server.
var ways = map[string]*corev3.ConfigSource{
	"GRPC":                  grpcSource(corev3.ApiConfigSource_GRPC, "one"),
	"DELTA_GRPC":            grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one"),
	"AGGREGATED_GRPC":       grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"),
	"AGGREGATED_DELTA_GRPC": grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one"),
	"REST":                  restSource("http://web"),
}

// manager is go-control-plane's management server.
type manager struct {
	t         testing.TB
	node      string // whose resources it publishes
	snapshots cache.SnapshotCache
}

// publish makes the resources all that the manager has.
func (m *manager) publish(version string, clusters []*clusterv3.Cluster, assignments ...*endpointv3.ClusterLoadAssignment) {
	m.t.Helper()
	resources := map[string][]types.Resource{rules.Cluster: {}, rules.Assignment: {}}
	for _, c := range clusters {
		resources[rules.Cluster] = append(resources[rules.Cluster], c)
	}
	for _, a := range assignments {
		resources[rules.Assignment] = append(resources[rules.Assignment], a)
	}
	snapshot, err := cache.NewSnapshot(version, resources)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.snapshots.SetSnapshot(m.t.Context(), m.node, snapshot); err != nil {
		m.t.Fatal(err)
	}
}

// manage starts a manager at "one", over gRPC, and at "web", over HTTP.
func (n *network) manage(ctx context.Context) (m *manager, stop func()) {
	return n.manageFor(ctx, "hdsd-test", cache.IDHash{})
}

// manageFor starts one that knows its clients by a hash.
func (n *network) manageFor(ctx context.Context, node string, by cache.NodeHash) (m *manager, stop func()) {
	m = &manager{t: n.t, node: node, snapshots: cache.NewSnapshotCache(false, by, nil)}
	server := gcp.NewServer(ctx, m.snapshots, nil)
	stopGRPC := n.serve("one", func(r grpc.ServiceRegistrar) {
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, server)
		clusterservice.RegisterClusterDiscoveryServiceServer(r, server)
		endpointservice.RegisterEndpointDiscoveryServiceServer(r, server)
	})
	stopHTTP := n.serveHTTP("web", gateway(server))
	return m, func() {
		stopGRPC()
		stopHTTP()
	}
}

// gateway answers polls.
func gateway(server gcp.Server) http.Handler {
	h := gcp.HTTPGateway{Server: server}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, code, err := h.ServeHTTP(r)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write(body)
	})
}

// TestEachWay: whatever the way, sets follow the server, and what did not
// change keeps its pointer.
func TestEachWay(t *testing.T) {
	for name, from := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				n := newNetwork(t)
				m, stopManager := n.manage(ctx)
				m.publish("1", []*clusterv3.Cluster{eds("web", ""), eds("api", "api-svc"), inline("db", "10.0.0.9")},
					endpoints("web", "10.0.0.1"), endpoints("api-svc", "10.0.0.2"))
				r := n.run(from)
				defer func() {
					r.stop()
					cancel()
					stopManager()
					synctest.Wait()
				}()
				turn := func() { time.Sleep(2 * time.Second) } // for REST to poll

				turn()
				first := r.latest()
				equal(t, "first", said(first), "api=10.0.0.2 db=10.0.0.9 web=10.0.0.1")
				equal(t, "service name", first.Clusters[0].ServiceName, "api-svc")
				equal(t, "problems", len(first.Problems), 0)

				m.publish("2", []*clusterv3.Cluster{eds("web", ""), eds("api", "api-svc"), inline("db", "10.0.0.9")},
					endpoints("web", "10.0.0.1", "10.0.0.3"), endpoints("api-svc", "10.0.0.2"))
				turn()
				second := r.latest()
				equal(t, "second", said(second), "api=10.0.0.2 db=10.0.0.9 web=10.0.0.1,10.0.0.3")
				equal(t, "unchanged", second.Clusters[0], first.Clusters[0])
				equal(t, "unchanged", second.Clusters[1], first.Clusters[1])

				m.publish("3", []*clusterv3.Cluster{eds("api", "api-svc"), eds("new", "")},
					endpoints("api-svc", "10.0.0.2"), endpoints("new", "10.0.0.4"))
				turn()
				third := r.latest()
				equal(t, "third", said(third), "api=10.0.0.2 new=10.0.0.4")
				equal(t, "unchanged", third.Clusters[0], first.Clusters[0])

				m.publish("4", nil)
				turn()
				equal(t, "nothing left", said(r.latest()), "")
				for _, status := range r.Status().Types {
					equal(t, "connected "+status.TypeURL, status.Connected, true)
					equal(t, "error", status.LastError, "")
					equal(t, "resources", len(status.Resources), 0)
				}
			})
		})
	}
}
