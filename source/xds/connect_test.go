package xds

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// inNetwork runs a test with a network of its own, in a bubble.
func inNetwork(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newNetwork(t))
		synctest.Wait()
	})
}

// TestSeveralServers: the next is tried when one fails, in order, and what was
// known stays.
func TestSeveralServers(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		one, two := newScript(t), newScript(t)
		stopTwo := n.serve("two", two.register)
		r := n.run(grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one", "two"))
		defer r.stop()
		p := next(t, two.delta) // at once, as there was one more to try
		status := r.Status().Types[0]
		equal(t, "server", status.Server, "passthrough:///two")
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "a=10.0.0.1")
		equal(t, "connected", r.Status().Types[0].Connected, true)

		stopOne := n.serve("one", one.register)
		defer stopOne()
		lost := time.Now()
		stopTwo()
		p = reconnect(t, one.delta)
		equal(t, "versions", p.next().GetInitialResourceVersions()["a"], "1")
		time.Sleep(standsAfter) // there is nothing new to say
		synctest.Wait()
		equal(t, "server", r.Status().Types[0].Server, "passthrough:///one")
		equal(t, "since", r.Status().Types[0].Since.After(lost), true)
		r.nothing()
	})
}

// TestBackoff: attempts come more and more rarely, and often again after a
// good response.
func TestBackoff(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		var mu sync.Mutex
		var attempts []time.Time
		source, err := New(Options{Name: "upstream", ConfigSource: deltaSource})
		if err != nil {
			t.Fatal(err)
		}
		source.dialer = func(ctx context.Context, address string) (net.Conn, error) {
			mu.Lock()
			attempts = append(attempts, time.Now())
			mu.Unlock()
			return n.dial(ctx, address)
		}
		r := n.start(source)
		defer r.stop()
		time.Sleep(3 * time.Minute)
		mu.Lock()
		least, jittered := leastBackoff, false
		for i := 1; i < len(attempts); i++ {
			wait := attempts[i].Sub(attempts[i-1])
			if wait < least/2 || wait > least {
				t.Errorf("attempt %d came after %s, want %s to %s", i, wait, least/2, least)
			}
			jittered = jittered || wait < least
			least = min(2*least, mostBackoff)
		}
		equal(t, "jittered", jittered, true)
		mu.Unlock()
		status := r.Status().Types[0]
		equal(t, "connected", status.Connected, false)
		has(t, "error", status.LastError, "nobody is at one")

		s := newScript(t)
		stop := n.serve("one", s.register)
		defer stop()
		p := reconnect(t, s.delta)
		p.end(errEnough) // without a response
		gone := time.Now()
		p = reconnect(t, s.delta)
		if waited := time.Since(gone); waited < 14*time.Second {
			t.Errorf("tried again after %s, though nothing was said", waited)
		}
		p.send(change(rules.Cluster, "n1"))
		synctest.Wait()
		p.end(errEnough)
		gone = time.Now()
		reconnect(t, s.delta)
		if waited := time.Since(gone); waited > 2*time.Second {
			t.Errorf("tried again only after %s", waited)
		}
	})
}

// TestSilentConnection: one that does not come about in time is given up.
func TestSilentConnection(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		n.listen("one") // and nobody accepts
		s := newScript(t)
		stop := n.serve("two", s.register)
		defer stop()
		from := grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one", "two")
		from.GetApiConfigSource().GetGrpcServices()[0].Timeout = durationpb.New(3 * time.Second)
		r := n.run(from)
		defer r.stop()
		time.Sleep(3*time.Second - 1)
		synctest.Wait()
		equal(t, "too early", len(s.delta), 0)
		time.Sleep(time.Nanosecond)
		next(t, s.delta)
	})
}

// TestStuckServer: one that takes no requests is given up.
func TestStuckServer(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		s := &deaf{streams: make(chan discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer, 10)}
		stop := n.serve("one", func(r grpc.ServiceRegistrar) { discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s) })
		defer stop()
		r := n.run(grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"))
		defer r.stop()
		stream := next(t, s.streams)
		var clusters []proto.Message
		for i := range 5000 {
			clusters = append(clusters, eds(fmt.Sprintf("%s-%d", strings.Repeat("long", 60), i), ""))
		}
		for _, version := range []string{"1", "2"} { // the first list of names is buffered
			if err := stream.Send(state(rules.Cluster, version, "n"+version, clusters...)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(sendTimeout - 1)
		synctest.Wait()
		equal(t, "too early", r.Status().Types[0].Connected, true)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		has(t, "error", r.Status().Types[0].LastError, "the server has not taken a request within 30s")
		time.Sleep(10 * time.Second)
		next(t, s.streams)
	})
}

// deaf never receives.
type deaf struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	streams chan discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer
}

func (d *deaf) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	d.streams <- stream
	<-stream.Context().Done()
	return nil
}
