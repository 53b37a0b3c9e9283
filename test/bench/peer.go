package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
)

// everybody is one node group for SnapshotCache.
type everybody struct{}

// ID implements cache.NodeHash.
func (everybody) ID(*corev3.Node) string { return "everybody" }

// xdsPeer is a cache of go-control-plane, and what it serves.
type xdsPeer struct {
	linear    *cache.LinearCache // nil: snapshots
	snapshots cache.SnapshotCache

	mu          sync.Mutex // guards the fields below
	assignments map[string]types.Resource
	version     int
}

// servePeer serves go-control-plane's linear or snapshot cache, or decodes reports, until
// the process ends. A cache takes an assignment by POST, at the address after the space.
func servePeer(kind string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if kind == "unmarshal" {
		server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
		healthv3.RegisterHealthDiscoveryServiceServer(server, &decodingPeer{})
		fmt.Println(listener.Addr())
		return server.Serve(listener)
	}
	p := &xdsPeer{assignments: map[string]types.Resource{}}
	var all cache.Cache
	switch kind {
	case "linear":
		p.linear = cache.NewLinearCache(resourcev3.EndpointType)
		all = p.linear
	case "snapshot":
		p.snapshots = cache.NewSnapshotCache(true, everybody{}, nil)
		all = p.snapshots
	default:
		return fmt.Errorf("there is no peer %q", kind)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(context.Background(), all, nil))
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { panic(http.Serve(control, p)) }() // until the process ends
	fmt.Println(listener.Addr(), control.Addr())
	return server.Serve(listener)
}

// ServeHTTP takes one assignment.
func (p *xdsPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		a := &endpointv3.ClusterLoadAssignment{}
		if err = proto.Unmarshal(body, a); err == nil {
			err = p.set(a, r.URL.Path == "/last")
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// set publishes an assignment, and with a snapshot all that came before.
func (p *xdsPeer) set(a *endpointv3.ClusterLoadAssignment, publish bool) error {
	if p.linear != nil {
		return p.linear.UpdateResource(a.GetClusterName(), a)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assignments[a.GetClusterName()] = a
	if !publish {
		return nil
	}
	p.version++
	s, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resourcev3.Type][]types.Resource{
		resourcev3.EndpointType: slices.Collect(maps.Values(p.assignments)),
	})
	if err != nil {
		return err
	}
	return p.snapshots.SetSnapshot(context.Background(), "everybody", s)
}

// decodingPeer decodes each report, and keeps the health of each endpoint in a map.
type decodingPeer struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer
}

// StreamHealthCheck implements the service. It answers the marker.
func (*decodingPeer) StreamHealthCheck(stream healthv3.HealthDiscoveryService_StreamHealthCheckServer) error {
	health := map[string]corev3.HealthStatus{}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetRequestType() == nil {
			if err := stream.Send(&healthv3.HealthCheckSpecifier{}); err != nil {
				return err
			}
		}
		for _, e := range m.GetEndpointHealthResponse().GetEndpointsHealth() {
			health[envoy.Address(e.GetEndpoint().GetAddress())] = e.GetHealthStatus()
		}
	}
}
