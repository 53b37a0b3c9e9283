package xds

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	minimumv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/config/validators/minimum_clusters/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy/rules"
	"hdsd/source"
)

func rateSettings(most uint32, fill float64) *corev3.RateLimitSettings {
	return &corev3.RateLimitSettings{MaxTokens: wrapperspb.UInt32(most), FillRate: wrapperspb.Double(fill)}
}

func TestRateLimit(t *testing.T) {
	from := grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one")
	from.GetApiConfigSource().RateLimitSettings = rateSettings(3, 2)
	scripted(t, from, func(t *testing.T, s *script, _ *running) {
		p := next(t, s.delta)
		p.next()
		for i := range 5 {
			p.send(change(rules.Cluster, fmt.Sprint(i), wrap("a", fmt.Sprint(i), inline("a"))))
		}
		p.next()
		p.next()
		p.quiet() // three tokens are gone
		for range 3 {
			time.Sleep(490 * time.Millisecond)
			p.quiet()
			time.Sleep(10 * time.Millisecond)
			p.next()
		}
	})
}

func TestRateLimitDefaults(t *testing.T) {
	b, now := newLimiter(&corev3.RateLimitSettings{}), time.Unix(0, 0)
	for range 100 {
		equal(t, "wait", take(b, now), 0)
	}
	equal(t, "wait", take(b, now), 100*time.Millisecond)
	equal(t, "none", take(newLimiter(nil), now), 0)
	slow := newLimiter(rateSettings(1, 1e-30))
	take(slow, now)
	equal(t, "once a year", take(slow, now).Round(time.Hour), 365*24*time.Hour)
}

// TestFlood: a server that sends without end is made to wait, and only the
// latest is handed on.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := newNetwork(t), newScript(t)
		stop := n.serve("one", s.register)
		source, err := New(Options{Name: "upstream", Node: &corev3.Node{Id: "hdsd-test"}, ConfigSource: limited(deltaSource)})
		if err != nil {
			t.Fatal(err)
		}
		source.dialer = n.dial
		r := n.start(source)
		defer func() {
			r.stop()
			stop()
			synctest.Wait()
		}()
		p := next(t, s.delta)
		const floods = 5000
		sent := make(chan int, floods)
		go func() {
			for i := range floods {
				if p.stream.Send(change(rules.Cluster, fmt.Sprint(i), wrap("a", fmt.Sprint(i), inline("a", fmt.Sprint(i))))) != nil {
					break
				}
				sent <- i
			}
			close(sent)
		}()
		synctest.Wait()
		source.mu.Lock()
		version := source.clusters.entries["a"].good.version
		source.mu.Unlock()
		equal(t, "taken while no answer can be sent", version, fmt.Sprint(maxBacklog))
		if len(sent) == floods {
			t.Error("the server never had to wait")
		}
		for start := time.Now(); time.Since(start) < 2*time.Hour && last(r) != fmt.Sprint("a=", floods-1); {
			time.Sleep(time.Second)
		}
		equal(t, "latest", last(r), fmt.Sprint("a=", floods-1))
	})
}

// limited lets a request pass each 10 ms.
func limited(from *corev3.ConfigSource) *corev3.ConfigSource {
	from = clone(from)
	from.GetApiConfigSource().RateLimitSettings = rateSettings(1, 100)
	return from
}

// last is what the last set that was handed on says.
func last(r *running) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return said(&source.Set{Clusters: r.Source.latest.clusters})
}

// TestLargeResponse: one of more than gRPC takes by itself.
func TestLargeResponse(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", strings.Repeat("x", 6<<20)))))
		equal(t, "endpoints", len(said(r.latest())), 6<<20+2)
	})
}

// TestPace: one change is handed on at once, and of many only the latest.
func TestPace(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		for i := range 50 {
			time.Sleep(time.Second)
			before := time.Now()
			p.send(change(rules.Cluster, "n", wrap("a", fmt.Sprint(i), inline("a", fmt.Sprint(i)))))
			equal(t, "set", said(next(t, r.sets)), fmt.Sprint("a=", i))
			equal(t, "took", time.Since(before), 0)
		}
		time.Sleep(time.Second)
		for i := range 100 {
			p.send(change(rules.Cluster, "n", wrap("a", fmt.Sprint(i), inline("a", fmt.Sprint("x", i)))))
			synctest.Wait()
		}
		time.Sleep(deliveryPause)
		synctest.Wait()
		equal(t, "sets", len(r.sets), 2)
		equal(t, "first", said(next(t, r.sets)), "a=x0")
		equal(t, "latest", said(next(t, r.sets)), "a=x99")
	})
}

func TestInitialFetchTimeout(t *testing.T) {
	waiting := func(timeout *durationpb.Duration) *corev3.ConfigSource {
		from := clone(deltaSource)
		from.InitialFetchTimeout = timeout
		return from
	}
	t.Run("nothing said", func(t *testing.T) {
		scripted(t, waiting(nil), func(t *testing.T, s *script, r *running) {
			time.Sleep(15*time.Second - 1)
			r.notYet()
			time.Sleep(time.Nanosecond)
			set := r.latest()
			equal(t, "set", said(set), "unread")
			has(t, "problem", set.Problems[0].String(), "the management server has not sent its clusters within 15s")
			p := next(t, s.delta)
			p.send(change(rules.Cluster, "n1"))
			equal(t, "said that there are none", said(r.latest()), "")
		})
	})
	t.Run("no endpoints", func(t *testing.T) {
		scripted(t, waiting(durationpb.New(4*time.Second)), func(t *testing.T, s *script, r *running) {
			p := next(t, s.delta)
			time.Sleep(2 * time.Second)
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1")), wrap("web", "1", eds("web", ""))))
			time.Sleep(4*time.Second - 1)
			r.notYet() // the endpoints have their own time
			time.Sleep(time.Nanosecond)
			set := r.latest()
			equal(t, "without endpoints", said(set), "a=10.0.0.1 web=none")
			has(t, "problem", set.Problems[0].String(), `web: it has no endpoints: the management server has not sent the ClusterLoadAssignment "web" within 4s`)
			p.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.2"))))
			set = r.latest()
			equal(t, "set", said(set), "a=10.0.0.1 web=10.0.0.2")
			equal(t, "problems", len(set.Problems), 0)
		})
	})
	t.Run("no endpoints yet, after the server was given up", func(t *testing.T) {
		scripted(t, waiting(nil), func(t *testing.T, s *script, r *running) {
			time.Sleep(15 * time.Second)
			equal(t, "set", said(r.latest()), "unread")
			p := next(t, s.delta)
			p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
			time.Sleep(time.Second)
			r.nothing() // else the cluster would seem to be gone
			p.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.2"))))
			equal(t, "set", said(r.latest()), "web=10.0.0.2")
		})
	})
	t.Run("none", func(t *testing.T) {
		scripted(t, waiting(durationpb.New(0)), func(t *testing.T, s *script, r *running) {
			time.Sleep(time.Hour)
			r.nothing()
			p := next(t, s.delta)
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1")), wrap("web", "1", eds("web", ""))))
			time.Sleep(time.Hour)
			r.nothing()
			p.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.2"))))
			equal(t, "set", said(r.latest()), "a=10.0.0.1 web=10.0.0.2")
		})
	})
}

// TestChangedClusterWaitsForItsEndpoints: until they are there, it stays what
// it was.
func TestChangedClusterWaitsForItsEndpoints(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("web", "1", inline("web", "10.0.0.1"))))
		first := r.latest()
		p.send(change(rules.Cluster, "n2", wrap("web", "2", eds("web", "svc"))))
		r.nothing()
		p.send(change(rules.Assignment, "n3", wrap("svc", "1", endpoints("svc", "10.0.0.2"))))
		set := r.latest()
		equal(t, "set", said(set), "web=10.0.0.2")
		equal(t, "another", set.Clusters[0] != first.Clusters[0], true)
	})
}

func TestMinimumClusters(t *testing.T) {
	minimum := func(from *corev3.ConfigSource) *corev3.ConfigSource {
		from = clone(from)
		from.GetApiConfigSource().ConfigValidators = []*corev3.TypedExtensionConfig{{
			Name: minimumName, TypedConfig: pack(&minimumv3.MinimumClustersValidator{MinClustersNum: 2}),
		}}
		return from
	}
	t.Run("delta", func(t *testing.T) {
		scripted(t, minimum(deltaSource), func(t *testing.T, s *script, r *running) {
			p := next(t, s.delta)
			p.next()
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1"))))
			has(t, "detail", p.next().GetErrorDetail().GetMessage(), "refused as a whole: it would leave 1 clusters, and "+minimumName+" asks for 2")
			r.nothing()
			p.send(change(rules.Cluster, "n2", wrap("a", "1", inline("a", "10.0.0.1")), wrap("b", "1", inline("b", "10.0.0.2"))))
			equal(t, "ack", p.next().GetErrorDetail() == nil, true)
			equal(t, "set", said(r.latest()), "a=10.0.0.1 b=10.0.0.2")
			response := removal(rules.Cluster, "n3", "b")
			response.Resources = append(response.Resources, wrap("a", "2", inline("a", "10.0.0.7")))
			p.send(response)
			has(t, "detail", p.next().GetErrorDetail().GetMessage(), "refused as a whole")
			set := r.latest()
			equal(t, "last good", said(set), "a=10.0.0.1 b=10.0.0.2")
			has(t, "problem", set.Problems[0].String(), "refused as a whole")
		})
	})
	t.Run("state of the world", func(t *testing.T) {
		scripted(t, minimum(grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one")), func(t *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state(rules.Cluster, "1", "n1", inline("a", "10.0.0.1"), inline("b", "10.0.0.2")))
			p.next()
			p.send(state(rules.Cluster, "2", "n2", inline("a", "10.0.0.7")))
			nack := p.next()
			equal(t, "version", nack.GetVersionInfo(), "1")
			has(t, "detail", nack.GetErrorDetail().GetMessage(), "refused as a whole")
			equal(t, "last good", said(r.latest()), "a=10.0.0.1 b=10.0.0.2")
		})
	})
}
