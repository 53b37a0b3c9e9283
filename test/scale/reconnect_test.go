package scale

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// planes are data planes that subscribe to all assignments, and connect again as soon as their
// stream ends.
type planes struct {
	server  string
	size    int // how many assignments there are
	stop    context.CancelFunc
	running sync.WaitGroup
	synced  atomic.Int64 // how many data planes have all assignments on their present stream
}

func planesOf(s *simulation, n int) *planes {
	ctx, stop := context.WithCancel(context.Background())
	p := &planes{server: s.GRPC, size: s.world.clusters, stop: stop}
	for range n {
		p.running.Go(func() {
			for ctx.Err() == nil {
				p.connection(ctx) // ends when hdsd does
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return p
}

// connection is one stream.
func (p *planes) connection(ctx context.Context) {
	stream, hangUp, err := dial(ctx, p.server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		return
	}
	defer func() { _ = hangUp() }()
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "data-plane"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"*"}}
	seen := map[string]bool{}
	defer func() {
		if len(seen) == p.size {
			p.synced.Add(-1)
		}
	}()
	for {
		var message wire.Bytes
		if stream.SendMsg(request) != nil || stream.RecvMsg(&message) != nil {
			return
		}
		var response discoveryv3.DeltaDiscoveryResponse
		if proto.Unmarshal(message, &response) != nil {
			return
		}
		before := len(seen)
		for _, r := range response.GetResources() {
			seen[r.GetName()] = true
		}
		if before < p.size && len(seen) == p.size {
			p.synced.Add(1)
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

// TestManyReconnectsAtOnce: hdsd is killed, and all data planes connect again at once. Each
// has all assignments again, nothing false goes out, and outages are detected. HDSD_SCALE=full
// has 5,000 data planes, which must have everything within 10 s.
func TestManyReconnectsAtOnce(t *testing.T) {
	beside(t)
	s, n := newSoak(t, 1), crowdSize(200, 5000)
	all := planesOf(s.simulation, n)
	defer all.running.Wait()
	defer all.stop()
	complete := func() bool { return all.synced.Load() == int64(n) }
	s.until("every data plane to have all assignments", complete)
	s.judge.settle(patience)
	rest := usageOf(t, s.PID()).resident
	var began time.Time
	s.interrupted(func() {
		s.Kill()
		s.until("every data plane to have lost its stream", func() bool { return all.synced.Load() == 0 })
		for endpoint := range 10 {
			s.judge.flip(endpoint)
		}
		s.Start()
		began = time.Now()
		s.until("every data plane to have all assignments again", complete)
	})
	took := time.Since(began)
	s.judge.settle(patience)
	t.Logf("%d data planes have everything %v after the start, and all of it is true after %v; RSS %d MiB at most, %d before; load %.1f",
		n, took.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond), usageOf(t, s.PID()).peak>>20, rest>>20, load(t))
	if full() && time.Since(began) > steady {
		t.Errorf("steady only after %v", time.Since(began))
	}
}
