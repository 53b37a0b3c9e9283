package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// plane is a data plane that reads all assignments, and so knows what it was told of each
// endpoint. It shows that hdsd listened.
type plane struct {
	world *scale.World

	mu      sync.Mutex   // guards the fields below
	down    []bool       // by endpoint
	changed []time.Time  // by endpoint, when it was told of the latest change
	known   map[int]bool // what it was told of at all
	want    map[int]bool
	told    chan time.Time // when nothing of want is left
	latest  int            // bytes of the last response
	err     error
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// newPlane subscribes to everything, until leave.
func newPlane(server string, w *scale.World) (*plane, error) { return subscribe(server, w, "*") }

// subscribe is newPlane for some clusters.
func subscribe(server string, w *scale.World, clusters ...string) (*plane, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, hangUp, err := scale.Dial(ctx, server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		cancel()
		return nil, err
	}
	p := &plane{world: w, down: make([]bool, w.Size()), changed: make([]time.Time, w.Size()), known: map[int]bool{}, cancel: cancel}
	p.running.Go(func() {
		err := p.receive(stream, clusters)
		_ = hangUp() // err says more
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = err
	})
	return p, nil
}

func (p *plane) leave() { p.cancel(); p.running.Wait() }

func (p *plane) receive(stream grpc.ClientStream, clusters []string) error {
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "plane"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: clusters}
	var message wire.Bytes
	for {
		if err := stream.SendMsg(request); err != nil {
			return err
		}
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		now := time.Now()
		response := &discoveryv3.DeltaDiscoveryResponse{}
		if err := proto.Unmarshal(message, response); err != nil {
			return err
		}
		if err := p.read(response, len(message), now); err != nil {
			return err
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

func (p *plane) read(response *discoveryv3.DeltaDiscoveryResponse, size int, at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = size
	for _, r := range response.GetResources() {
		var a endpointv3.ClusterLoadAssignment
		if err := r.GetResource().UnmarshalTo(&a); err != nil {
			return err
		}
		for _, group := range a.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				if err := p.note(e, at); err != nil {
					return err
				}
			}
		}
	}
	if p.told != nil && len(p.want) == 0 {
		p.told <- at
		p.told = nil
	}
	return nil
}

func (p *plane) note(e *endpointv3.LbEndpoint, at time.Time) error {
	address := envoy.Address(e.GetEndpoint().GetAddress())
	endpoint, known := p.world.Find(address)
	if !known {
		return fmt.Errorf("a data plane was told of %s, which is no endpoint", address)
	}
	if now := e.GetHealthStatus() == corev3.HealthStatus_UNHEALTHY; now != p.down[endpoint] || !p.known[endpoint] {
		p.down[endpoint], p.changed[endpoint] = now, at
	}
	p.known[endpoint] = true
	if down, wanted := p.want[endpoint]; wanted && down == p.down[endpoint] {
		delete(p.want, endpoint)
	}
	return nil
}

// toldDown is when it was told that an endpoint is down; zero if it was not.
func (p *plane) toldDown(endpoint int) (change time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down[endpoint] {
		change = p.changed[endpoint]
	}
	return change
}

// expect returns what waits until it was told that these endpoints are down, or up. That
// returns when it was.
func (p *plane) expect(endpoints []int, down bool) (wait func() (time.Time, error)) {
	told := make(chan time.Time, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = map[int]bool{}
	for _, e := range endpoints {
		if p.down[e] != down || !p.known[e] {
			p.want[e] = down
		}
	}
	p.told = told
	if len(p.want) == 0 {
		told <- time.Now()
		p.told = nil
	}
	return func() (time.Time, error) {
		select {
		case push := <-told:
			return push, nil
		case <-time.After(patience):
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Time{}, fmt.Errorf("a data plane was not told of %d of %d flips, so hdsd did not listen: %w (%w)",
			len(p.want), len(endpoints), errPatience, p.err)
	}
}
