package coordinator

import (
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/coordinator/tally"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/notify"
	"hdsd/source"
	"hdsd/source/sample"
)

// wantPanics compares the panics that hdsd keeps up to date with a full count.
func (l *lab) wantPanics() {
	l.t.Helper()
	counted := alarms{panics: tally.NewPanics(), onPanicChange: func(string) {}}
	counted.publishAll(l.core.Rulings, l.core.Rulings.Clusters())
	for k := range l.core.Rulings.Clusters() {
		got, _ := l.core.alarms.panics.Explain(k.Source.Name)
		if want, _ := counted.panics.Explain(k.Source.Name); got != want {
			l.t.Fatalf("cluster %s: %q, a full count gives %q", k.Source.Name, got, want)
		}
	}
}

// wantPanic checks the attention item, the description and the metric of a panic.
func (l *lab) wantPanic(cluster, text string) {
	l.t.Helper()
	l.wantPanics()
	found := l.attentionOf("PANIC")
	shown := l.describe(cluster)
	gauge := testutil.ToFloat64(l.core.metrics.states.panics)
	switch {
	case shown.Panic != text:
		l.t.Errorf("cluster %s: %q, want %q", cluster, shown.Panic, text)
	case text == "" && (len(found) > 0 || gauge != 0 || !shown.PanicSince.IsZero()):
		l.t.Errorf("no panic, and %+v; %v clusters; since %v", found, gauge, shown.PanicSince)
	case text != "" && (len(found) != 1 || found[0].Text != "cluster "+cluster+": "+text || found[0].Since.IsZero() || !found[0].Since.Equal(shown.PanicSince) || gauge != 1):
		l.t.Errorf("want %q: %+v; %v clusters", text, found, gauge)
	}
}

// wantPreview checks the preview of an override.
func (l *lab) wantPreview(scope health.Endpoint, to health.Status, endpoints int, panics string) {
	l.t.Helper()
	p, err := l.core.Rulings.PreviewOverride(log.Override{Scope: scope, Status: to})
	if err != nil || p.Endpoints != endpoints || strings.Join(p.Panics, "\n") != panics {
		l.t.Errorf("%v of %v: %d endpoints, %q, %v; want %d, %q", to, scope, p.Endpoints, p.Panics, err, endpoints, panics)
	}
}

// threshold sets the panic threshold of a cluster, in percent.
func threshold(c *source.Cluster, percent float64) *source.Cluster {
	c.Config = proto.CloneOf(c.Config)
	c.Config.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: percent}}
	return c
}

// TestPanicNeedsAttention covers too few healthy endpoints for several reasons.
func TestPanicNeedsAttention(t *testing.T) {
	l := newLab(t)
	var log strings.Builder
	l.core.alarms.log = zerolog.New(&log)
	told := map[string]int{}
	l.core.alarms.notify = func(all []notify.Change) {
		for _, c := range all {
			if c.Kind == notify.Panic && !c.Ended {
				told[c.Cluster]++
			} else if c.Kind == notify.Panic {
				told[c.Cluster]--
			}
		}
	}
	l.serve(web("web", a1, a2, a3))
	l.joinAll()
	l.pass(settle + 10*report)
	l.wantPanic("web", "")
	l.truth[a1] = down
	l.pass(3 * report)
	l.wantPanic("web", "")
	l.truth[a2] = down
	l.pass(3 * report)
	const third = "Envoy sends traffic to all 3 endpoints: 33 % healthy is below its threshold of 50 %"
	l.wantPanic("web", third)
	if told["web"] != 1 || strings.Count(log.String(), `"event":"cluster_panic"`) != 1 || !strings.Contains(log.String(), third) {
		t.Errorf("told %v; the log is %s", told, log.String())
	}

	// A cluster that is wholly down is CLUSTER_DOWN alone.
	l.truth[a3] = down
	l.pass(3 * report)
	if found := l.attentionOf("PANIC"); len(found) > 0 || told["web"] != 0 || !strings.Contains(log.String(), `"event":"cluster_panic_over"`) {
		t.Errorf("all is down: %+v; told %v; the log is %s", found, told, log.String())
	}
	if shown := l.describe("web").Panic; !strings.Contains(shown, "0 % healthy") {
		t.Errorf("all is down: %q", shown)
	}
	l.truth[a3] = up
	l.pass(10 * report)
	l.wantPanic("web", third)

	// A freeze and its end; another threshold.
	l.freeze(api.Freeze{Reason: "x", Author: "ann"})
	l.pass(report)
	l.wantPanic("web", "")
	l.unfreeze("ann")
	l.pass(report)
	l.wantPanic("web", third)
	l.setClusters(threshold(web("web", a1, a2, a3), 33))
	l.pass(report)
	l.wantPanic("web", "")
	l.setClusters(threshold(web("web", a1, a2, a3), 34))
	l.pass(report)
	l.wantPanic("web", strings.Replace(third, "50 %", "34 %", 1))
	l.truth[a1], l.truth[a2] = up, up
	l.pass(10 * report)
	l.wantPanic("web", "")

	// Draining endpoints do not count, so to drain all of them drains none.
	l.drain(keyOf("web", a1))
	l.wantPreview(keyOf("web", a2), drained, 1, "")
	l.drain(keyOf("web", a2))
	l.pass(report)
	l.wantPanic("web", "")
	l.wantPreview(health.Endpoint{Cluster: "web"}, drained, 1, "cluster web: Envoy would send traffic to all 3 endpoints: 0 % healthy (all drain) is below its threshold of 34 %")
	l.wantPreview(keyOf("web", a3), down, 1, "cluster web: Envoy would send traffic to all 3 endpoints: 0 % healthy (without 2 that drain) is below its threshold of 34 %")
	l.wantPreview(keyOf("web", a2), up, 1, "")
	l.drain(health.Endpoint{Cluster: "web"})
	l.pass(report)
	l.wantPanic("web", "Envoy sends traffic to all 3 endpoints: 0 % healthy (all drain) is below its threshold of 34 %")
	l.setClusters()
	l.pass(report)
	if n := testutil.ToFloat64(l.core.metrics.states.panics); n != 0 || told["web"] != 0 {
		t.Errorf("the cluster is gone: hdsd_clusters_in_panic is %v, told %v", n, told)
	}
}

// TestPanicByPriority covers traffic that spills to the next priority first.
func TestPanicByPriority(t *testing.T) {
	l := newLab(t)
	k := web("web", a1, a2, a3)
	sample.Change(k, func(a *endpointv3.ClusterLoadAssignment) {
		first := a.Endpoints[0]
		second := proto.CloneOf(first)
		first.LbEndpoints, second.LbEndpoints, second.Priority, second.Locality = first.LbEndpoints[:1], first.LbEndpoints[1:], 1, &corev3.Locality{Zone: "other"}
		a.Endpoints = append(a.Endpoints, second)
	})
	l.serve(k)
	l.joinAll()
	l.pass(settle + 10*report)
	l.truth[a1] = down
	l.pass(3 * report)
	l.wantPanic("web", "")
	l.truth[a2] = down
	l.pass(3 * report)
	l.wantPanic("web", "") // the second priority offers 70 %, and half of it is healthy
	if _, err := l.override(log.Override{Scope: health.Endpoint{Cluster: "web", Locality: health.Locality{Zone: "other"}}, Status: drained, Reason: "x", Author: "ann"}); err != nil {
		t.Fatal(err)
	}
	l.pass(report)
	l.wantPanic("web", "Envoy sends traffic to the only endpoint of priority 0: 0 % healthy is below its threshold of 50 %; to all 2 endpoints of priority 1: 0 % healthy (all drain)")
}

// TestPanicFollowsPublishedHealth covers the health of the source in shadow mode, initial_health before a
// verdict, and the worst health of clusters that share an assignment.
func TestPanicFollowsPublishedHealth(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{shadowing("pay", configv1.Mode_SHADOW)}
	l.truth[a1], l.truth[a2] = down, down
	other := web("other", a1, a2, a3)
	shared := web("web", a1, a2, a3)
	for _, c := range []*source.Cluster{other, shared} {
		sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) { a.ClusterName = "both" })
		c.ServiceName = "both"
	}
	shared.HealthChecks[0].GetHttpHealthCheck().Path = "/other"
	l.serve(web("pay", a1, a2, a3), shared, other)
	l.joinAll()
	l.pass(settle + 10*report)
	l.wantPanics()
	if found := l.attentionOf("PANIC"); len(found) != 2 {
		t.Errorf("two clusters have one assignment: %+v; %+v", found, l.describe("web"))
	}
	if shown := l.describe("pay").Panic; shown != "" {
		t.Errorf("in the shadow: %q", shown)
	}
	l.reload(func(c *configv1.Config) { c.Verdict = &configv1.Verdict{InitialHealth: corev3.HealthStatus_UNHEALTHY} })
	l.setClusters(web("pay", a1, a2, a3), shared, other, web("new", "10.0.0.9:80", "10.0.0.8:80"))
	l.wantPanics()
	l.pass(time.Minute)
	l.wantPanics()
	l.reload(func(c *configv1.Config) { c.Verdict = nil })
	l.wantPanics()
}
