package coordinator

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/query"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/store"
)

const (
	askedClusters    = 100
	askedEndpoints   = 100 // of each
	askedTransitions = 1_000_000
	askedPeriod      = 30 * day
	day              = 24 * time.Hour
)

// archive is a history of a million transitions, and the present beside it,
// over REST.
type archive struct {
	clusters int
	history  *store.Store
	begun    time.Time
	url      string
	random   *rand.Rand
}

func askedEndpoint(n int) health.Endpoint {
	cluster, i := n/askedEndpoints, n%askedEndpoints
	return health.Endpoint{Cluster: fmt.Sprintf("cluster-%02d", cluster), Address: fmt.Sprintf("10.0.%d.%d:80", cluster, i)}
}

// askedLab has a core that runs, with so many clusters and three votes on each endpoint.
func askedLab(b *testing.B, clusters int) *lab {
	b.Helper()
	l := votedLab(b, clusters)
	stop := make(chan struct{})
	go l.core.run(stop)
	b.Cleanup(func() { close(stop); <-l.core.done })
	return l
}

// votedLab is the same with a core that does not run, so that the votes stay as they are.
func votedLab(b *testing.B, clusters int) *lab {
	b.Helper()
	l := newLab(b)
	var served []*sourceCluster
	for n := range clusters {
		addresses := make([]string, askedEndpoints)
		for i := range addresses {
			addresses[i] = askedEndpoint(n*askedEndpoints + i).Address
		}
		served = append(served, web(askedEndpoint(n*askedEndpoints).Cluster, addresses...))
	}
	for i := range 10 {
		l.join(fmt.Sprintf("c%02d%c", i, 'a'+i%3))
	}
	l.serve(served...)
	l.pass(settle + 2*report)
	return l
}

// newArchive makes an archive of the last period, up to now.
func newArchive(b *testing.B, clusters int, period time.Duration, transition func(a *archive, n int, at time.Time) health.Transition) *archive {
	b.Helper()
	history, err := store.Open(b.Context(), b.TempDir(), store.Options{MaxPending: askedTransitions})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { history.Close() })
	a := &archive{clusters: clusters, history: history, begun: time.Now().Add(-period), random: rand.New(rand.NewPCG(1, 1))}
	for n := 0; n < askedTransitions; {
		var some []health.Transition
		for range 10_000 {
			some = append(some, transition(a, n, a.begun.Add(period/askedTransitions*time.Duration(n))))
			n++
		}
		history.Append(some)
		if err := history.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	l := askedLab(b, clusters)
	none, err := feed.Open(&configv1.Config{}, feed.Options{})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := api.NewService(query.New(query.Options{
		Core: queryCore{l.core}, Store: history, HDS: hds.NewServer(hds.Options{}, sink{l.core}), EDS: eds.NewServer(eds.Options{}), Feed: none,
	})).Handler()
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// transition is one of a random endpoint, with the votes behind it.
func (a *archive) transition(n int, at time.Time) health.Transition {
	e := askedEndpoint(a.random.IntN(a.clusters * askedEndpoints))
	from, to := health.Healthy, health.Unhealthy
	if n%2 == 0 {
		from, to = to, from
	}
	t := health.Transition{Time: at, Endpoint: e, From: from, To: to, Reason: "3 of 3 checkers say " + to.String()}
	for i := range 3 {
		t.Observations = append(t.Observations, health.Observation{Checker: fmt.Sprintf("checker-%d", i), Status: to, HTTPStatusCode: 503, Time: at})
	}
	return t
}

// write appends 1,000 transitions each second until it is stopped.
func (a *archive) write() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		writer := &archive{clusters: a.clusters, random: rand.New(rand.NewPCG(2, 2))}
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				var some []health.Transition
				for range 10 {
					some = append(some, writer.transition(n, now))
					n++
				}
				a.history.Append(some)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// BenchmarkQueries measures each query over REST, with changing parameters. The flag -benchtime 200x makes
// 200 calls.
func BenchmarkQueries(b *testing.B) {
	a := newArchive(b, askedClusters, askedPeriod, (*archive).transition)
	moment := func() string {
		return url.QueryEscape(a.begun.Add(time.Duration(a.random.Int64N(int64(askedPeriod)))).UTC().Format(time.RFC3339Nano))
	}
	endpoint := func() health.Endpoint { return askedEndpoint(a.random.IntN(askedClusters * askedEndpoints)) }
	queries := []struct {
		name string
		path func() string
	}{
		{"endpoints", func() string { return "/v1/endpoints" }},
		{"endpoints-10000", func() string { return "/v1/endpoints?pageSize=10000" }},
		{"endpoints-cluster", func() string { return "/v1/endpoints?cluster=" + endpoint().Cluster }},
		{"endpoints-address", func() string { return "/v1/endpoints?address=" + endpoint().Address }},
		{"endpoints-health", func() string { return "/v1/endpoints?health=UNHEALTHY" }},
		{"endpoints-asOf", func() string { return "/v1/endpoints?asOf=" + moment() }},
		{"endpoints-asOf-10000", func() string { return "/v1/endpoints?pageSize=10000&asOf=" + moment() }},
		{"endpoints-asOf-cluster", func() string { return "/v1/endpoints?cluster=" + endpoint().Cluster + "&asOf=" + moment() }},
		{"endpoints-asOf-address", func() string { return "/v1/endpoints?address=" + endpoint().Address + "&asOf=" + moment() }},
		{"endpoints-asOf-health", func() string { return "/v1/endpoints?health=DRAINING&asOf=" + moment() }},
		{"transitions", func() string { return "/v1/transitions?startTime=" + moment() }},
		{"transitions-10000", func() string { return "/v1/transitions?pageSize=10000&startTime=" + moment() }},
		{"transitions-newest", func() string { return "/v1/transitions?newestFirst=true&endTime=" + moment() }},
		{"transitions-cluster", func() string { return "/v1/transitions?cluster=" + endpoint().Cluster + "&startTime=" + moment() }},
		{"transitions-address", func() string { return "/v1/transitions?address=" + endpoint().Address }},
		{"transitions-unknown-address", func() string { return "/v1/transitions?address=10.9.9.9:1" }},
		{"availability", func() string { return "/v1/availability" }},
		{"availability-10000", func() string { return "/v1/availability?pageSize=10000" }},
		{"availability-since", func() string { return "/v1/availability?startTime=" + moment() }},
		{"availability-cluster", func() string { return "/v1/availability?cluster=" + endpoint().Cluster }},
		{"availability-address", func() string { return "/v1/availability?address=" + endpoint().Address }},
		{"clusters", func() string { return "/v1/clusters" }},
		{"checkers", func() string { return "/v1/checkers" }},
		{"clients", func() string { return "/v1/clients" }},
	}
	for _, busy := range []bool{false, true} {
		name := "quiet"
		if busy {
			name = "written"
		}
		for _, q := range queries {
			b.Run(name+"/"+q.name, func(b *testing.B) {
				if busy {
					defer a.write()()
				}
				a.measure(b, q.path)
			})
		}
	}
}

// BenchmarkYear queries a year of 1,000 endpoints with an outage each minute: 500,000 outages of half a
// minute.
func BenchmarkYear(b *testing.B) {
	last := askedEndpoint(0)
	a := newArchive(b, 10, 365*day, func(a *archive, n int, at time.Time) health.Transition {
		t := a.transition(n+1, at) // down, and up
		if n%2 == 0 {
			last = t.Endpoint
		}
		t.Endpoint = last
		return t
	})
	since := func(past time.Duration) string {
		return "startTime=" + url.QueryEscape(time.Now().Add(-past).UTC().Format(time.RFC3339Nano))
	}
	for _, q := range []struct {
		name string
		path func() string
	}{
		{"availability", func() string { return "/v1/availability?pageSize=1000&" + since(365*day) }},
		{"availability-cluster", func() string { return "/v1/availability?cluster=cluster-03&" + since(365*day) }},
		{"availability-by-cluster", func() string { return "/v1/availability?by=cluster&slo=0.999&" + since(365*day) }},
		{"incidents", func() string { return "/v1/incidents?" + since(7*day) }}, // the longest is the first: it reads the year
		{"incidents-cluster", func() string { return "/v1/incidents?cluster=cluster-03&" + since(7*day) }},
	} {
		b.Run(q.name, func(b *testing.B) { a.measure(b, q.path) })
	}
}

func (a *archive) measure(b *testing.B, path func() string) {
	var took []time.Duration
	size := int64(0)
	for b.Loop() {
		target := a.url + path()
		began := time.Now()
		answer, err := http.Get(target)
		if err != nil {
			b.Fatal(err)
		}
		size, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			b.Fatalf("%s: %v %d", target, err, answer.StatusCode)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[min(int(share*float64(len(took))), len(took)-1)].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "median-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "longest-ms")
	b.ReportMetric(float64(size)/1024, "KiB")
	b.ReportMetric(0, "ns/op")
}
