package replicas

import (
	"context"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// plane is a data plane of one replica. It tells the judge each health that it gets.
type plane struct {
	replica, server string
	judge           *judge

	mu        sync.Mutex
	latest    map[int]corev3.HealthStatus // what this replica has published, by endpoint; guarded by mu
	connected bool                        // guarded by mu
	behind    bool                        // the replica may have to catch up, so what it publishes is no decision of now; guarded by mu
}

// run connects the data plane again and again, until ctx ends.
func (p *plane) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.converse(ctx)
		p.mu.Lock()
		p.connected = false
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *plane) converse(ctx context.Context) {
	stream, hangUp, err := scale.Dial(ctx, p.server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		return
	}
	defer hangUp() //nolint:errcheck // the stream has ended
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "plane-" + p.replica}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
	for stream.SendMsg(request) == nil {
		var message wire.Bytes
		if stream.RecvMsg(&message) != nil {
			return
		}
		now := time.Now()
		var response discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(message, &response); err != nil {
			p.judge.t.Error(err)
			return
		}
		for _, r := range response.GetResources() {
			p.take(now, r)
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

// take takes the assignment of a cluster.
func (p *plane) take(now time.Time, r *discoveryv3.Resource) {
	var assignment endpointv3.ClusterLoadAssignment
	if err := r.GetResource().UnmarshalTo(&assignment); err != nil {
		p.judge.t.Error(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connected = true
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			endpoint, ok := p.judge.world.Find(envoy.Address(e.GetEndpoint().GetAddress()))
			if !ok {
				p.judge.t.Errorf("%s publishes %v, which is no endpoint", p.replica, e.GetEndpoint())
				continue
			}
			status := e.GetHealthStatus()
			if previous, known := p.latest[endpoint]; known && previous == status {
				continue
			}
			p.latest[endpoint] = status
			p.judge.take(now, p.replica, endpoint, status, p.behind)
		}
	}
}

// has returns what the replica has published of an endpoint.
func (p *plane) has(endpoint int) (status corev3.HealthStatus, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest[endpoint], p.connected
}

// setBehind notes whether the replica may have to catch up.
func (p *plane) setBehind(behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = behind
}
