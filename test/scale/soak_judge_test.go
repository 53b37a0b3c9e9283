package scale

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/internal/wire"
)

const (
	// fresh is for how long after a flip a data plane may have the health before it.
	fresh = 10 * time.Second

	// detected is how soon an outage must be published while hdsd works: ten rounds, which
	// one liar may hold it, and the wait budget.
	detected = 30 * time.Second
)

// judge is a data plane that knows the truth. It connects again whenever its stream ends.
type judge struct {
	t      *testing.T
	world  *world
	server string

	mu        sync.Mutex
	since     []time.Time // by endpoint: when it last failed or recovered
	published map[int]corev3.HealthStatus
	works     time.Time // since when hdsd does; zero: it does not
	flipped   int
	worst     time.Duration // the longest time between a flip and its publication
	updates   int
}

func newJudge(t *testing.T, s *simulation) *judge {
	j := &judge{t: t, world: s.world, server: s.GRPC, since: make([]time.Time, len(s.world.addresses)), published: map[int]corev3.HealthStatus{}, works: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			_ = j.listen(ctx) // hdsd may be down
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	running.Go(func() { j.look(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return j
}

// listen is one stream.
func (j *judge) listen(ctx context.Context) error {
	stream, hangUp, err := dial(ctx, j.server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		return err
	}
	defer func() { _ = hangUp() }()
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "judge"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
	for {
		if err := stream.SendMsg(request); err != nil {
			return err
		}
		var message wire.Bytes
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		var response discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(message, &response); err != nil {
			return err
		}
		if len(response.GetRemovedResources()) > 0 {
			j.t.Errorf("%v were removed", response.GetRemovedResources())
		}
		for _, r := range response.GetResources() {
			var assignment endpointv3.ClusterLoadAssignment
			if err := r.GetResource().UnmarshalTo(&assignment); err != nil {
				return err
			}
			j.take(&assignment)
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

// take holds an assignment against the truth: nothing goes down that is up, and no health
// is forgotten.
func (j *judge) take(assignment *endpointv3.ClusterLoadAssignment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, group := range assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			endpoint, now := j.world.index[envoy.Address(e.GetEndpoint().GetAddress())], e.GetHealthStatus()
			if j.published[endpoint] == now {
				continue
			}
			if now == corev3.HealthStatus_UNKNOWN {
				j.t.Errorf("the health of %s is no longer known", j.world.addresses[endpoint])
			}
			j.published[endpoint] = now
			j.updates++
			if up := !j.world.failing[endpoint].Load(); up && isDown(now) && time.Since(j.since[endpoint]) > fresh {
				j.t.Errorf("%s became %v, and has been up for %v", j.world.addresses[endpoint], now, time.Since(j.since[endpoint]).Round(time.Second))
			} else if up != isDown(now) && !j.since[endpoint].IsZero() {
				j.worst = max(j.worst, time.Since(j.since[endpoint]))
			}
		}
	}
}

func isDown(s corev3.HealthStatus) bool {
	return s == corev3.HealthStatus_UNHEALTHY || s == corev3.HealthStatus_TIMEOUT
}

// look holds every second that nothing stays up that is down, nor the other way round.
func (j *judge) look(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		j.mu.Lock()
		if !j.works.IsZero() && time.Since(j.works) > detected {
			for _, endpoint := range j.wrong() {
				if age := time.Since(j.since[endpoint]); age > detected {
					j.t.Errorf("%s is published as %v, and has been otherwise for %v", j.world.addresses[endpoint], j.published[endpoint], age.Round(time.Second))
				}
			}
		}
		j.mu.Unlock()
	}
}

// wrong returns the endpoints whose published health is not the truth. The caller holds
// the lock.
func (j *judge) wrong() (all []int) {
	for endpoint := range j.world.failing {
		if j.world.failing[endpoint].Load() != isDown(j.published[endpoint]) {
			all = append(all, endpoint)
		}
	}
	return all
}

// flip has an endpoint fail or recover, unless it did so a moment ago.
func (j *judge) flip(endpoint int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.since[endpoint]) > fresh {
		j.since[endpoint] = time.Now()
		j.flipped++
		j.world.flip(endpoint)
	}
}

func (j *judge) flips() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flipped
}

func (j *judge) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.works = time.Time{}
}

func (j *judge) resume() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.works = time.Now()
}

// settle waits until all that is published is true.
func (j *judge) settle(within time.Duration) {
	j.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		j.mu.Lock()
		wrong := j.wrong()
		j.mu.Unlock()
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(end) {
			j.t.Fatalf("%d endpoints are published wrongly %v after the last fault, %s for one", len(wrong), within, j.world.addresses[wrong[0]])
		}
	}
}

// String says what the judge saw.
func (j *judge) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("%d updates of health, the latest %v after its cause", j.updates, j.worst.Round(10*time.Millisecond))
}
