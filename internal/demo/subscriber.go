package demo

import (
	"context"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"hdsd/envoy"
)

const endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// subscriber subscribes to one assignment over ADS, in place of a data plane. Its
// goroutine ends with close.
type subscriber struct {
	id     string
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	healths map[string]string // by address; guarded by mu
}

func subscribe(connection *grpc.ClientConn, id, cluster string) *subscriber {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscriber{id: id, cancel: cancel, done: make(chan struct{}), healths: map[string]string{}}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			_ = s.run(ctx, connection, cluster) // only the received health counts
		}
	}()
	return s
}

func (s *subscriber) run(ctx context.Context, connection *grpc.ClientConn, cluster string) error {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	request := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: s.id}, TypeUrl: endpointType, ResourceNames: []string{cluster}}
	for {
		if err := stream.Send(request); err != nil {
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, resource := range response.GetResources() {
			var assignment endpointv3.ClusterLoadAssignment
			if err := resource.UnmarshalTo(&assignment); err != nil {
				return err
			}
			s.apply(&assignment)
		}
		request = &discoveryv3.DiscoveryRequest{
			TypeUrl: endpointType, ResourceNames: []string{cluster},
			VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce(),
		}
	}
}

func (s *subscriber) apply(assignment *endpointv3.ClusterLoadAssignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			s.healths[envoy.Address(e.GetEndpoint().GetAddress())] = e.GetHealthStatus().String()
		}
	}
}

func (s *subscriber) name() string { return "subscriber " + s.id }

func (s *subscriber) published(address string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healths[address]
}

func (s *subscriber) traffic() (sent, failed int) { return 0, 0 }

func (s *subscriber) close() {
	s.cancel()
	<-s.done
}
