package xds

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
)

// script is a management server that a test speaks for.
type script struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t     testing.TB
	state chan *statePeer
	delta chan *deltaPeer
}

type (
	statePeer = peer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaPeer = peer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

// peer is the server's end of a stream.
type peer[Req, Res any] struct {
	t        testing.TB
	stream   grpc.BidiStreamingServer[Req, Res]
	requests chan *Req
	end      context.CancelCauseFunc
}

func newScript(t testing.TB) *script {
	t.Helper()
	return &script{t: t, state: make(chan *statePeer, 100), delta: make(chan *deltaPeer, 100)}
}

func (s *script) register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s)
	clusterservice.RegisterClusterDiscoveryServiceServer(r, &scriptedClusters{script: s})
	endpointservice.RegisterEndpointDiscoveryServiceServer(r, &scriptedEndpoints{script: s})
}

func (s *script) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return play(s.t, stream, s.state)
}

func (s *script) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return play(s.t, stream, s.delta)
}

type scriptedClusters struct {
	clusterservice.UnimplementedClusterDiscoveryServiceServer
	*script
}

func (s *scriptedClusters) StreamClusters(stream clusterservice.ClusterDiscoveryService_StreamClustersServer) error {
	return play(s.t, stream, s.state)
}

func (s *scriptedClusters) DeltaClusters(stream clusterservice.ClusterDiscoveryService_DeltaClustersServer) error {
	return play(s.t, stream, s.delta)
}

type scriptedEndpoints struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer
	*script
}

func (s *scriptedEndpoints) StreamEndpoints(stream endpointservice.EndpointDiscoveryService_StreamEndpointsServer) error {
	return play(s.t, stream, s.state)
}

func (s *scriptedEndpoints) DeltaEndpoints(stream endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return play(s.t, stream, s.delta)
}

// play hands a stream to the test until that ends it.
func play[Req, Res any](t testing.TB, stream grpc.BidiStreamingServer[Req, Res], to chan *peer[Req, Res]) error {
	ctx, end := context.WithCancelCause(stream.Context())
	p := &peer[Req, Res]{t: t, stream: stream, requests: make(chan *Req, 10_000), end: end}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				end(err)
				return
			}
			p.requests <- m
		}
	}()
	to <- p
	<-ctx.Done()
	return context.Cause(ctx)
}

var errEnough = errors.New("enough")

// next returns what the test waits for, which comes without time passing.
func next[T any](t testing.TB, from chan T) T {
	t.Helper()
	synctest.Wait()
	select {
	case one := <-from:
		return one
	default:
		t.Fatalf("no %T came", *new(T))
		return *new(T)
	}
}

// reconnect returns the next stream, which comes after a while.
func reconnect[T any](t testing.TB, from chan T) T {
	t.Helper()
	for range 40 {
		synctest.Wait()
		select {
		case one := <-from:
			return one
		default:
			time.Sleep(time.Second)
		}
	}
	t.Fatalf("no %T came again", *new(T))
	return *new(T)
}

func (p *peer[Req, Res]) next() *Req {
	p.t.Helper()
	return next(p.t, p.requests)
}

func (p *peer[Req, Res]) quiet() {
	p.t.Helper()
	synctest.Wait()
	select {
	case m := <-p.requests:
		p.t.Fatalf("unexpected request: %v", m)
	default:
	}
}

func (p *peer[Req, Res]) send(m *Res) {
	p.t.Helper()
	if err := p.stream.Send(m); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}
