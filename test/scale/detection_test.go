package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/internal/wire"
)

// detector is a data plane that notes when it is told of each endpoint's health.
type detector struct {
	world *world

	mu     sync.Mutex
	health map[int]corev3.HealthStatus
	asked  map[int]expected // flips that are not detected yet
	took   []time.Duration
}

// expected is a flip: when it happened, and the health that it leads to.
type expected struct {
	at     time.Time
	health corev3.HealthStatus
}

// detect subscribes to all assignments, until the test ends.
func (s *simulation) detect() *detector {
	s.t.Helper()
	d := &detector{world: s.world, health: map[int]corev3.HealthStatus{}, asked: map[int]expected{}}
	ctx, cancel := context.WithCancel(context.Background())
	stream, hangUp, err := dial(ctx, s.GRPC, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.receive(stream); err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() { cancel(); _ = hangUp(); running.Wait() })
	return d
}

func (d *detector) receive(stream grpc.ClientStream) error {
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "detector"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
	for {
		if err := stream.SendMsg(request); err != nil {
			return err
		}
		var message wire.Bytes
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		now := time.Now()
		var response discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(message, &response); err != nil {
			return err
		}
		for _, r := range response.GetResources() {
			var assignment endpointv3.ClusterLoadAssignment
			if err := r.GetResource().UnmarshalTo(&assignment); err != nil {
				return err
			}
			d.take(&assignment, now)
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

func (d *detector) take(assignment *endpointv3.ClusterLoadAssignment, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, group := range assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			endpoint := d.world.index[envoy.Address(e.GetEndpoint().GetAddress())]
			d.health[endpoint] = e.GetHealthStatus()
			if asked, ok := d.asked[endpoint]; ok && asked.health == e.GetHealthStatus() {
				d.took = append(d.took, now.Sub(asked.at))
				delete(d.asked, endpoint)
			}
		}
	}
}

// flip has an endpoint fail or recover, unless it did so a moment ago.
func (d *detector) flip(endpoint int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.asked[endpoint]; ok {
		return
	}
	becomes := corev3.HealthStatus_UNHEALTHY
	if d.health[endpoint] == becomes {
		becomes = corev3.HealthStatus_HEALTHY
	}
	d.asked[endpoint] = expected{time.Now(), becomes}
	d.world.flip(endpoint)
}

// pending counts the flips that are not detected yet.
func (d *detector) pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

// delays are sorted times from flip to detection.
type delays []time.Duration

func (d delays) at(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(int(share*float64(len(d))), len(d)-1)]
}

func (d delays) String() string {
	return fmt.Sprintf("%d detections, p50 %v, p99 %v, worst %v", len(d), d.at(0.5).Round(time.Millisecond), d.at(0.99).Round(time.Millisecond), d.at(1).Round(time.Millisecond))
}

// during flips endpoints chosen by chance, one each pause, for a time, and gives how
// long each detection took.
func (d *detector) during(t testing.TB, length, pause time.Duration) delays {
	t.Helper()
	d.mu.Lock()
	d.took = nil
	d.mu.Unlock()
	random := rand.New(rand.NewPCG(5, 6))
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); {
		<-tick.C
		d.flip(random.IntN(len(d.world.addresses)))
	}
	for end := time.Now().Add(patience); d.pending() > 0; {
		<-tick.C
		if time.Now().After(end) {
			t.Errorf("%d flips are not detected after %v", d.pending(), patience)
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.took)
	return slices.Clone(d.took)
}
