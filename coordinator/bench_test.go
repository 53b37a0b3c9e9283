package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/coordinator/query"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source/sample"
)

// large is a lab of 100,000 endpoints in 1,000 clusters and 100 checkers, with
// a real EDS server.
func large(b *testing.B) (*lab, []*sourceCluster) {
	l := newLab(b)
	clusters := hundreds(1000)
	l.core.publisher.planes = eds.NewServer(eds.Options{})
	for i := range 100 {
		l.join(fmt.Sprintf("c%02d%c", i, 'a'+i%3))
	}
	return l, clusters
}

// hundreds is so many clusters of 100 endpoints.
func hundreds(n int) (clusters []*sourceCluster) {
	for n := range n {
		addresses := make([]string, 100)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.%d.%d.%d:80", n/250, n%250, i)
		}
		clusters = append(clusters, web(fmt.Sprintf("cluster-%04d", n), addresses...))
	}
	return clusters
}

func BenchmarkFirstApply(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		l, clusters := large(b)
		var first catalog.Delivery
		apply := l.deliver
		l.deliver = func(d catalog.Delivery) { first = d }
		l.serve(clusters...)
		b.StartTimer()
		apply(first)
		l.now = l.now.Add(settle)
		l.step(machine.Tick{})
	}
}

func BenchmarkChangeEndpoint(b *testing.B) {
	l, clusters := large(b)
	l.serve(clusters...)
	l.pass(settle + 15*report) // until every cluster is tried
	port := uint32(0)
	apply := l.deliver
	var own time.Duration // the core's
	l.deliver = func(d catalog.Delivery) { began := time.Now(); apply(d); own += time.Since(began) }
	for b.Loop() {
		port++
		clusters[500] = remade(clusters[500])
		sample.Change(clusters[500], func(a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints[0].LbEndpoints[50].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: port%1000 + 1}
		})
		l.setClusters(clusters...)
	}
	b.ReportMetric(float64(own.Microseconds())/float64(b.N), "core-µs/op")
}

func BenchmarkAddAndRemoveCluster(b *testing.B) {
	l, clusters := large(b)
	l.serve(clusters...)
	l.pass(settle + 15*report) // until every cluster is tried
	for b.Loop() {
		l.now = l.now.Add(time.Second)
		l.setClusters(clusters[1:]...)
		l.setClusters(clusters...)
	}
}

func BenchmarkReloadWithoutChange(b *testing.B) {
	l, clusters := large(b)
	l.serve(clusters...)
	l.pass(settle + 15*report) // until every cluster is tried
	for b.Loop() {
		l.intake.restart(l.sets, catalog.NewRules(proto.CloneOf(l.rules)))
	}
}

func BenchmarkReportWithoutChange(b *testing.B) {
	l, clusters := large(b)
	l.serve(clusters...)
	l.pass(settle + 15*report) // until every cluster is tried
	ids := slices.Sorted(maps.Keys(l.checkers))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ { // each in its turn, so that nobody is silent
		l.now = l.now.Add(report / time.Duration(len(ids)))
		l.step(machine.Reported{Checker: ids[n%len(ids)]})
		l.step(machine.Tick{})
	}
}

// BenchmarkReportWithFlip takes one endpoint down and up: from the votes of its checkers to the EDS server
// and the queue of the store.
func BenchmarkReportWithFlip(b *testing.B) {
	var addresses []string
	for i := range 100 {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:80", i))
	}
	l := newLab(b)
	l.core.publisher.planes = eds.NewServer(eds.Options{})
	l.serve(web("web", addresses...))
	l.join("ca", "cb", "cc")
	l.pass(settle + 15*report)
	id := l.idOf(keyOf("web", addresses[50]))
	status := health.Unhealthy
	b.ReportAllocs()
	for b.Loop() {
		l.now = l.now.Add(time.Second)
		for _, checker := range []string{"ca", "cb", "cc"} {
			l.step(machine.Reported{Checker: checker, Votes: []health.Vote{{Endpoint: id, Status: status}}})
		}
		if len(l.transitions) == 0 {
			b.Fatal("no verdict changed")
		}
		l.transitions, l.order = l.transitions[:0], l.order[:0]
		if status == health.Healthy {
			status = health.Unhealthy
		} else {
			status = health.Healthy
		}
	}
}

// countingCore counts the questions.
type countingCore struct {
	query.Core
	asked int
}

func (c *countingCore) Ask(ctx context.Context, question func(query.State)) error {
	c.asked++
	return c.Core.Ask(ctx, question)
}

func BenchmarkFindUnhealthy(b *testing.B) {
	l, clusters := large(b)
	l.serve(clusters...)
	l.pass(settle + 15*report) // until every cluster is tried
	down := health.Unhealthy
	core := &countingCore{Core: l}
	queries := query.New(query.Options{Core: core})
	for b.Loop() {
		if _, _, err := queries.Endpoints(b.Context(), api.EndpointQuery{Limit: 1000, Health: &down}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(core.asked), "µs/step")
}

// BenchmarkListUnchecked lists 100 unchecked endpoints, among a thousand and among 50,000. The cost of a row
// does not depend on the others.
func BenchmarkListUnchecked(b *testing.B) {
	for _, clusters := range []int{10, 500} {
		b.Run(fmt.Sprint(100*clusters), func(b *testing.B) {
			l := newLab(b)
			l.serve(hundreds(clusters)...)
			l.pass(settle + report)
			queries := query.New(query.Options{Core: l})
			for b.Loop() {
				if _, _, err := queries.Endpoints(b.Context(), api.EndpointQuery{Limit: 100}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
