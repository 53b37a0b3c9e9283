package scale

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/internal/wire"
)

// fault is something that goes wrong during a soak. It draws from a source of chance of
// its own lane.
type fault struct {
	name    string
	happens func(*soak, *rand.Rand)
}

// lanes are faults of which one happens at a time; those of different lanes happen at
// once. In a lane, all are drawn with the same probability.
var lanes = [][]fault{
	{
		{"nothing happens to hdsd for 5 s", func(*soak, *rand.Rand) { time.Sleep(5 * time.Second) }},
		{"five SIGHUPs", (*soak).reload},
		{"hdsd stands still for 2 s (SIGSTOP)", (*soak).stall},
		{"hdsd is killed (SIGKILL)", (*soak).kill},
		{"hdsd is stopped and started (SIGTERM)", (*soak).terminate},
	},
	{
		{"a checker restarts", (*soak).restartChecker},
		{"a zone loses its checkers for 3 s", (*soak).loseZone},
		{"a checker says that all is up", func(s *soak, r *rand.Rand) { s.lie(r, false) }},
		{"a checker says that all is down", func(s *soak, r *rand.Rand) { s.lie(r, true) }},
		{"ten checkers that nobody knows come and go", (*soak).strangers},
	},
	{
		{"reports as fast as hdsd takes them", (*soak).flood},
		{"50 subscribers that never read", (*soak).deaf},
		{"20 callers ask for 10,000 rows each", (*soak).crowd},
		{"reports that are none", (*soak).garbage},
	},
}

func (s *soak) anyChecker(random *rand.Rand) *checker {
	return s.checkers[random.IntN(len(s.checkers))]
}

func (s *soak) restartChecker(random *rand.Rand) {
	k := s.anyChecker(random)
	k.stop()
	k.start()
}

func (s *soak) loseZone(random *rand.Rand) {
	zone := s.inZone(random.IntN(s.zones))
	for _, k := range zone {
		k.stop()
	}
	time.Sleep(3 * time.Second) // the fault itself
	for _, k := range zone {
		k.start()
	}
}

// lie has a checker say the same of all endpoints for 5 s.
func (s *soak) lie(random *rand.Rand, down bool) {
	k := s.anyChecker(random)
	k.stop()
	fiction := newWorld(s.world.clusters, len(s.world.addresses)/s.world.clusters)
	for i := range fiction.failing {
		fiction.failing[i].Store(down)
	}
	liar := &checker{id: k.id, zone: k.zone, server: k.server, world: fiction, interval: k.interval, phase: k.phase, failed: k.failed}
	liar.start()
	time.Sleep(5 * time.Second) // the fault itself
	liar.stop()
	k.start()
}

func (s *soak) strangers(*rand.Rand) {
	var all []*checker
	for i := range 10 {
		k := s.checkers[i%len(s.checkers)]
		stranger := &checker{id: "stranger-" + string(rune('a'+i)), zone: k.zone, server: k.server, world: k.world, interval: k.interval, phase: k.phase, failed: k.failed}
		stranger.start()
		all = append(all, stranger)
	}
	time.Sleep(2 * time.Second) // the fault itself
	for _, k := range all {
		k.stop()
	}
}

// briefly runs many callers at once for a time. What becomes of them is hdsd's affair.
func briefly(callers int, lasts time.Duration, call func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { _ = call(ctx) })
	}
	running.Wait()
}

// flood reports as fast as hdsd takes it.
func (s *soak) flood(*rand.Rand) {
	briefly(1, 2*time.Second, func(ctx context.Context) error {
		stream, hangUp, err := dial(ctx, s.GRPC, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
		if err != nil {
			return err
		}
		defer func() { _ = hangUp() }()
		flooder := checker{id: "flooder", zone: "a"}
		if err := stream.SendMsg(flooder.hello()); err != nil {
			return err
		}
		empty := &healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{
			EndpointHealthResponse: &healthv3.EndpointHealthResponse{},
		}}
		for {
			if err := stream.SendMsg(empty); err != nil {
				return err
			}
		}
	})
}

func (s *soak) deaf(*rand.Rand) {
	briefly(50, 3*time.Second, func(ctx context.Context) error {
		stream, hangUp, err := dial(ctx, s.GRPC, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
		if err != nil {
			return err
		}
		defer func() { _ = hangUp() }()
		request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "deaf"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
		if err := stream.SendMsg(request); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
}

func (s *soak) crowd(*rand.Rand) {
	briefly(20, 2*time.Second, func(ctx context.Context) error {
		client := http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+"/v1/transitions?pageSize=10000", nil)
			if err != nil {
				return err
			}
			answer, err := client.Do(request)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	})
}

func (s *soak) garbage(*rand.Rand) {
	briefly(5, time.Second, func(ctx context.Context) error {
		stream, hangUp, err := dial(ctx, s.GRPC, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
		if err != nil {
			return err
		}
		defer func() { _ = hangUp() }()
		garbage := wire.Bytes(strings.Repeat("\x12\xff", 1000))
		if err := stream.SendMsg(&garbage); err != nil {
			return err
		}
		return stream.RecvMsg(&garbage)
	})
}

func (s *soak) reload(*rand.Rand) {
	for range 5 {
		s.Signal(syscall.SIGHUP)
		time.Sleep(50 * time.Millisecond) // the fault itself
	}
}

func (s *soak) stall(*rand.Rand) {
	s.interrupted(func() {
		s.Signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Second) // the fault itself
		s.Signal(syscall.SIGCONT)
	})
}

func (s *soak) kill(*rand.Rand) {
	s.interrupted(func() {
		s.Kill()
		s.Start()
	})
}

func (s *soak) terminate(*rand.Rand) {
	s.interrupted(func() {
		if status, took := s.Terminate(); status != 0 || took > 10*time.Second {
			s.t.Errorf("hdsd stopped with status %d after %v", status, took)
		}
		s.Start()
	})
}
