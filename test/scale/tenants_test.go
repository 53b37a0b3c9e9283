package scale

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// arrivals are when a data plane was sent changes of health of the first endpoint of each cluster.
type arrivals struct {
	mu   sync.Mutex
	all  map[string][]time.Time
	down map[string]bool
	told map[string]int // how many of them delaysOf has told
}

func (a *arrivals) note(cluster string, at time.Time, statuses []corev3.HealthStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	down := statuses[0] == corev3.HealthStatus_UNHEALTHY
	if a.down[cluster] != down {
		a.down[cluster], a.all[cluster] = down, append(a.all[cluster], at)
	}
}

func (a *arrivals) count(cluster string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all[cluster])
}

// BenchmarkVerdictBesideAFlood is how long a verdict takes from hdsd's decision until a data plane
// has it through the relay: undisturbed, and while another client sends requests that say it has
// 100,000 clusters, on 200 streams every 10 s, and on 200 all the time. Beside it, a client asks the
// control plane through a plain TCP proxy: the machine's own part. HDSD_BINARY is the hdsd to measure.
func BenchmarkVerdictBesideAFlood(b *testing.B) {
	const clusters = 20
	w := newWorld(clusters, 2)
	p := newKindsPlane(b, w, 1)
	s := simulate(b, w, 3, 3, 100*time.Millisecond, "")
	if path := os.Getenv("HDSD_BINARY"); path != "" {
		s.Binary = path
	}
	s.relayTo(p)
	s.Start()
	s.connect()
	got := &arrivals{all: map[string][]time.Time{}, down: map[string]bool{}, told: map[string]int{}}
	ctx, cancel := context.WithCancel(b.Context())
	n := &relayedNode{t: b, id: "honest", said: p.said[0], seen: got.note, synced: make(chan struct{}), ended: make(chan struct{})}
	go n.run(ctx, s.GRPC)
	<-n.synced
	s.until("verdicts", func() bool {
		all := s.Clusters()
		for i := range clusters {
			if isChecked(clusterName(i)) && all[clusterName(i)].Healthy != 2 {
				return false
			}
		}
		return true
	})
	proxy, _ := startProxy(b, p.address)
	b.ResetTimer()
	for b.Loop() {
		delays := map[string][]time.Duration{}
		for _, flood := range []struct {
			name    string
			streams int
			every   time.Duration
		}{{"undisturbed", 0, 0}, {"200-in-10s", 200, 10 * time.Second}, {"200-at-a-time", 200, 0}} {
			flooding, stop := context.WithCancel(b.Context())
			done := claimAll(b, flooding, s.GRPC, flood.streams, flood.every)
			plain := pingAll(b, flooding, proxy)
			for round := range 120 {
				cluster := clusterName(round % 9)
				before := got.count(cluster)
				w.flip(round % 9 * 2)
				s.until("the flip", func() bool { return got.count(cluster) > before })
			}
			stop()
			requests, trips := done(), plain()
			delays[flood.name] = s.delaysOf(b, got)
			all := delays[flood.name]
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, flood.name+"-p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, flood.name+"-p99-ms")
			b.ReportMetric(float64(trips[len(trips)*99/100].Microseconds())/1000, flood.name+"-proxy-p99-ms")
			b.Logf("%s: %d verdicts, %d requests of the flood, worst %v, load %.1f", flood.name, len(all), requests, all[len(all)-1], load(b))
			if base := delays["undisturbed"]; flood.streams > 0 {
				b.ReportMetric(float64(all[len(all)*99/100])/float64(base[len(base)*99/100]), flood.name+"-p99-ratio")
			}
		}
	}
	cancel()
	<-n.ended
}

// delaysOf gives how long each verdict took that has arrived since it was asked last.
func (s *simulation) delaysOf(b *testing.B, got *arrivals) (delays []time.Duration) {
	b.Helper()
	got.mu.Lock()
	defer got.mu.Unlock()
	for cluster, all := range got.all {
		var decided []time.Time
		s.until("the history", func() bool { // it is written later
			decided = s.decisions(b, cluster)
			return len(decided) >= len(all)
		})
		for i := got.told[cluster]; i < len(all); i++ {
			delays = append(delays, all[i].Sub(decided[i]))
		}
		got.told[cluster] = len(all)
	}
	return delays
}

// decisions gives when the health of the first endpoint of a cluster changed, but for the first time.
func (s *simulation) decisions(b *testing.B, cluster string) (all []time.Time) {
	b.Helper()
	for _, transition := range s.Transitions(cluster) {
		at, err := time.Parse(time.RFC3339Nano, transition.Time)
		if err != nil {
			b.Fatal(err)
		}
		if transition.From == "HEALTHY" || transition.From == "UNHEALTHY" {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// claimAll has a client open streams on one connection that each say they have 100,000 clusters, and
// open each again when it is answered or has ended, but not more often than every so long. The
// function waits for its end, and returns how many requests it sent.
func claimAll(b *testing.B, ctx context.Context, server string, streams int, every time.Duration) func() int { //nolint:revive // b comes first
	b.Helper()
	r := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "flood", Cluster: "0"}, TypeUrl: resourcev3.ClusterType, InitialResourceVersions: map[string]string{}}
	for i := range 100_000 {
		r.InitialResourceVersions[fmt.Sprintf("made-up-cluster-%06d", i)] = "1"
	}
	claims, err := proto.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	conn := dialRelay(b, server)
	var all sync.WaitGroup
	var mu sync.Mutex
	requests := 0
	for i := range streams {
		all.Go(func() {
			next := time.NewTimer(every * time.Duration(i) / time.Duration(streams))
			defer next.Stop()
			for {
				select {
				case <-next.C:
				case <-ctx.Done():
					return
				}
				next.Reset(every)
				if err := claimOnce(ctx, conn, claims); err != nil && ctx.Err() == nil {
					b.Errorf("a request of the flood: %v", err)
				}
				mu.Lock()
				requests++
				mu.Unlock()
			}
		})
	}
	return func() int { all.Wait(); _ = conn.Close(); return requests }
}

// pingAll has a client ask the control plane through a plain TCP proxy, again and again. The function
// waits for its end, and returns how long the answers took, in order of that: what the machine makes of
// two processes that have nothing to do with hdsd.
func pingAll(b *testing.B, ctx context.Context, server string) func() []time.Duration { //nolint:revive // b comes first
	b.Helper()
	conn := dialRelay(b, server)
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var trips []time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			begun := time.Now()
			err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "ping", Cluster: "0"}, TypeUrl: "none"})
			if err == nil {
				_, err = s.Recv()
			}
			if err != nil {
				b.Error(err)
				return
			}
			trips = append(trips, time.Since(begun))
			<-tick.C
		}
	}()
	return func() []time.Duration {
		<-done
		_ = conn.Close()
		slices.Sort(trips)
		return trips
	}
}

// claimOnce sends a request on a stream of its own, and waits for what comes of it.
func claimOnce(ctx context.Context, conn *grpc.ClientConn, request []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources", grpc.ForceCodecV2(wire.Codec()))
	if err != nil {
		return err
	}
	out := wire.Bytes(request)
	if err = s.SendMsg(&out); err == nil {
		var in wire.Bytes // not out: what comes would overwrite the request, which all streams send
		err = s.RecvMsg(&in)
	}
	return err
}
