package scale

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/internal/wire"
	"hdsd/test/fleet"
)

// TestManySilentClientsEnd: crowds of clients say nothing: on HDS streams, on xDS streams
// and on connections. Each is ended, detection goes on beside them, and hdsd needs at most
// 300 MiB more. HDSD_SCALE=full has 5,000, 1,000 and 15,000 of them.
func TestManySilentClientsEnd(t *testing.T) {
	s, d := attacked(t)
	for _, crowd := range []struct {
		name    string
		n       int
		open    func(*testing.T, *simulation, int) *silent
		patient time.Duration // how long hdsd may wait for them
	}{
		{"HDS streams", crowdSize(200, 5000), mute(healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName), 20 * time.Second},
		{"xDS streams", crowdSize(100, 1000), mute(discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName), 45 * time.Second},
		{"connections", crowdSize(200, 15_000), unspoken, 20 * time.Second},
	} {
		t.Run(crowd.name, func(t *testing.T) {
			beside(t)
			undisturbed := d.during(t, time.Duration(crowdSize(1, 10))*time.Second, 100*time.Millisecond)
			rest := usageOf(t, s.PID()).resident
			a := crowd.open(t, s, crowd.n)
			defer a.leave()
			peak := 0
			var crowded delays
			for began := time.Now(); !a.over() && time.Since(began) < 2*crowd.patient; {
				crowded = append(crowded, d.during(t, time.Second, 100*time.Millisecond)...)
				peak = max(peak, usageOf(t, s.PID()).resident)
			}
			took := a.ended()
			if len(took) < crowd.n {
				t.Fatalf("%d of %d ended", len(took), crowd.n)
			}
			slices.Sort(crowded)
			t.Logf("%d ended after %v, the last after %v; RSS %d MiB more than at rest", len(took), took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), (peak-rest)>>20)
			s.compareDelays(undisturbed, crowded)
			if more := (peak - rest) >> 20; full() && more > 300 { // the race detector has memory of its own
				t.Errorf("hdsd needs %d MiB more", more)
			}
			if last := took[len(took)-1]; full() && last > crowd.patient {
				t.Errorf("the last one ended after %v", last)
			}
		})
	}
}

// silent are clients that say nothing, and wait for their end.
type silent struct {
	hangUp  []func() error
	running sync.WaitGroup
	n       int

	mu   sync.Mutex
	took []time.Duration
}

// await waits for the end of one.
func (a *silent) await(end func()) {
	began := time.Now()
	a.n++
	a.running.Go(func() {
		end()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.took = append(a.took, time.Since(began))
	})
}

func (a *silent) over() bool { return len(a.ended()) == a.n }

// ended is after what time each ended so far, sorted.
func (a *silent) ended() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.took)
	return slices.Clone(a.took)
}

func (a *silent) leave() {
	for _, hangUp := range a.hangUp {
		_ = hangUp()
	}
	a.running.Wait()
}

// mute opens streams of a method, 500 on each connection.
func mute(method string) func(*testing.T, *simulation, int) *silent {
	return func(t *testing.T, s *simulation, n int) *silent {
		a := &silent{}
		var on *grpc.ClientConn
		for i := range n {
			if i%500 == 0 {
				var err error
				if on, err = grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec()))); err != nil {
					t.Fatal(err)
				}
				a.hangUp = append(a.hangUp, on.Close)
			}
			stream, err := on.NewStream(context.Background(), &bothWays, method)
			if err != nil {
				t.Fatal(err)
			}
			a.await(func() {
				for message := (wire.Bytes{}); stream.RecvMsg(&message) == nil; {
				}
			})
		}
		return a
	}
}

// unspoken opens connections to the gRPC address.
func unspoken(t *testing.T, s *simulation, n int) *silent {
	a := &silent{}
	for range n {
		one, err := net.Dial("tcp", s.GRPC)
		if err != nil {
			t.Fatal(err)
		}
		a.hangUp = append(a.hangUp, one.Close)
		a.await(func() {
			_ = one.SetReadDeadline(time.Now().Add(fleet.Patience)) // a TCP connection has deadlines
			if _, err := io.Copy(io.Discard, one); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection that says nothing is kept")
			}
		})
	}
	return a
}
