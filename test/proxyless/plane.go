package proxyless

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // of the text below
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/test/envoy"
)

// Plane is a control plane for gRPC clients: go-control-plane's server. It answers every node
// alike, with those resources that a stream names.
type Plane struct {
	Address string

	t         testing.TB
	snapshots cache.SnapshotCache
	version   int

	server *grpc.Server // nil while it is away
	served sync.WaitGroup

	mu       sync.Mutex
	refusals []string
}

// anyone has all nodes share one snapshot.
type anyone struct{}

func (anyone) ID(*corev3.Node) string { return "" }

// NewPlane starts one without resources.
func NewPlane(t testing.TB) *Plane {
	t.Helper()
	p := &Plane{Address: envoy.FreeAddress(t), t: t, snapshots: cache.NewSnapshotCache(false, anyone{}, nil)}
	p.Come()
	t.Cleanup(p.Leave)
	return p
}

// Come has it serve.
func (p *Plane) Come() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.Address)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.server = grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, gcp.NewServer(ctx, p.snapshots, gcp.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			if r.GetErrorDetail() != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.refusals = append(p.refusals, r.GetErrorDetail().GetMessage())
			}
			return nil
		},
	}))
	server := p.server
	p.served.Go(func() {
		defer cancel()
		_ = server.Serve(listener) // until it is stopped
	})
}

// Leave ends its streams.
func (p *Plane) Leave() {
	if p.server != nil {
		p.server.Stop()
		p.served.Wait()
		p.server = nil
	}
}

// Refusals returns the texts of all that clients refused.
func (p *Plane) Refusals() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.refusals, "\n")
}

// Service is what a target leads to.
type Service struct {
	Cluster    *clusterv3.Cluster                // nil: there is none
	Assignment *endpointv3.ClusterLoadAssignment // nil: there is none
}

// Say has it have these services, by name. The listener of each has the name of its cluster.
func (p *Plane) Say(services map[string]Service) {
	p.t.Helper()
	all := map[resource.Type][]types.Resource{}
	for name, s := range services {
		all[resource.ListenerType] = append(all[resource.ListenerType], Listener(p.t, name, name))
		if s.Cluster != nil {
			all[resource.ClusterType] = append(all[resource.ClusterType], s.Cluster)
		}
		if s.Assignment != nil {
			all[resource.EndpointType] = append(all[resource.EndpointType], s.Assignment)
		}
	}
	p.say(all)
}

// Route has it have nothing but listeners, each with the name of its cluster.
func (p *Plane) Route(clusters map[string]string) {
	p.t.Helper()
	all := map[resource.Type][]types.Resource{}
	for name, cluster := range clusters {
		all[resource.ListenerType] = append(all[resource.ListenerType], Listener(p.t, name, cluster))
	}
	p.say(all)
}

func (p *Plane) say(all map[resource.Type][]types.Resource) {
	p.t.Helper()
	p.version++
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), all)
	if err == nil {
		err = p.snapshots.SetSnapshot(context.Background(), "", snapshot)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Listener returns what a client asks for with a target "xds:///NAME": all calls go to a cluster.
func Listener(t testing.TB, name, cluster string) *listenerv3.Listener {
	t.Helper()
	text := fmt.Sprintf(`{"name": %q, "api_listener": {"api_listener": {
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"route_config": {"name": "all", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {"cluster": %q}}]}]},
		"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}}`, name, cluster)
	l := new(listenerv3.Listener)
	if err := protojson.Unmarshal([]byte(text), l); err != nil {
		t.Fatal(err)
	}
	return l
}
