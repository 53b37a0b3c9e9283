package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/api"
	"hdsd/coordinator/attention"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/notify"
	"hdsd/source"
	"hdsd/source/sample"
)

// zoned is a cluster in one zone.
func zoned(name, zone string, addresses ...string) *source.Cluster {
	c := web(name, addresses...)
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) { a.Endpoints[0].Locality = &corev3.Locality{Zone: zone} })
	return c
}

// wantTally holds that the running count is what counting everything gives.
func (l *lab) wantTally() {
	l.t.Helper()
	n := l.core.alarms.tally.Counts()
	got := api.ClusterCounts{
		OK: n[attention.OK], SomeDown: n[attention.SomeDown], HalfDown: n[attention.HalfDown], AllDown: n[attention.AllDown], Unobserved: n[attention.Unobserved],
		NoneHealthy: n[attention.NoneHealthy], Unchecked: n[attention.Unchecked],
	}
	if want := l.status().Clusters; got != want {
		l.t.Fatalf("the tally has %+v, a full count %+v", got, want)
	}
}

// conditions returns a function that lists the changes of conditions of a kind from now on.
func (l *lab) conditions() func(notify.Kind) []notify.Change {
	var all []notify.Change
	l.core.alarms.notify = func(changes []notify.Change) { all = append(all, changes...) }
	return func(kind notify.Kind) (found []notify.Change) {
		for _, c := range all {
			if c.Kind == kind {
				found = append(found, c)
			}
		}
		return found
	}
}

// TestLogOfDownClustersAndZones covers one line for each, with the number of endpoints and the time.
func TestLogOfDownClustersAndZones(t *testing.T) {
	l := newLab(t)
	var log strings.Builder
	l.core.eventLog.log = zerolog.New(&log)
	l.core.alarms.log = l.core.eventLog.log
	told := map[notify.Key]bool{}
	l.core.alarms.notify = func(all []notify.Change) {
		for _, c := range all {
			told[c.Key] = !c.Ended
		}
	}
	l.serve(zoned("web", "a", "10.0.0.1:80", "10.0.0.2:80"), zoned("api", "b", "10.0.1.1:80"))
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	if strings.Contains(log.String(), "_down") || len(told) != 0 {
		t.Fatalf("all is well, and the log is %s; told %v", log.String(), told)
	}
	l.truth["10.0.0.1:80"], l.truth["10.0.0.2:80"] = health.Unhealthy, health.Unhealthy
	l.pass(20 * time.Second)
	l.wantPublished("web", "10.0.0.2:80", health.Unhealthy)
	for _, key := range []notify.Key{
		{Kind: notify.ClusterDown, Cluster: "web"}, {Kind: notify.ZoneDown, Zone: "/a"},
		{Kind: notify.EndpointDown, Cluster: "web", Zone: "a", Address: "10.0.0.1:80"},
	} {
		if !told[key] {
			t.Errorf("%+v is not told: %v", key, told)
		}
	}
	if n := testutil.ToFloat64(l.core.metrics.states.zones); n != 1 {
		t.Errorf("hdsd_zones_down is %v", n)
	}
	l.truth["10.0.0.1:80"] = health.Healthy
	l.pass(20 * time.Second)
	for _, want := range []string{
		`{"level":"error","event":"cluster_down","cluster":"web","endpoints":2,"since":"2026-`, `"event":"cluster_down_over","cluster":"web","endpoints":2,"down":1,`,
		`{"level":"error","event":"zone_down","zone":"/a","endpoints":2,"since":"2026-`, `"event":"zone_down_over","zone":"/a","endpoints":2,"down":1,`,
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s is there %d times in %s", want, strings.Count(log.String(), want), log.String())
		}
	}
	if told[notify.Key{Kind: notify.ClusterDown, Cluster: "web"}] || !told[notify.Key{Kind: notify.EndpointDown, Cluster: "web", Zone: "a", Address: "10.0.0.2:80"}] {
		t.Errorf("one is back: %v", told)
	}
}

// TestTallyFollowsChanges covers overrides, sources and restarts.
func TestTallyFollowsChanges(t *testing.T) {
	l := newLab(t)
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.2.%d:80", i)
	}
	l.serve(web("web", "10.0.0.1:80", "10.0.0.2:80"), web("many", many...))
	l.pass(settle + time.Second)
	l.join("c0a", "c1b", "c2c")
	l.pass(10 * time.Second)
	drain := log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Unhealthy, Reason: "disk", Author: "carl"}
	if _, err := l.override(drain); err != nil {
		t.Fatal(err)
	}
	l.pass(time.Second)
	for _, id := range []string{"c0a", "c1b", "c2c"} {
		l.lose(id)
	}
	l.pass(20 * time.Second) // web is observed by its override
	l.setClusters(web("web", "10.0.0.2:80", "10.0.0.3:80"), web("new", "10.0.3.1:80"))
	l.pass(20 * time.Second)
	l.join("c0a", "c1b", "c2c")
	l.truth["10.0.3.1:80"] = health.Unhealthy
	l.pass(20 * time.Second)
	if n := l.core.alarms.tally.Counts(); n[attention.AllDown] != 2 {
		t.Errorf("%v", n)
	}
	l.restart()
	l.serve(web("web", "10.0.0.2:80", "10.0.0.3:80"), web("new", "10.0.3.1:80"))
	l.pass(settle + 10*time.Second)
	l.join("c0a", "c1b", "c2c")
	l.pass(20 * time.Second)
	if n := l.core.alarms.tally.Counts(); n[attention.AllDown] != 2 {
		t.Errorf("after a restart: %v", n)
	}
}

// TestSeriesAreLimited covers the series of the configured clusters, up to the limit, with their present
// values.
func TestSeriesAreLimited(t *testing.T) {
	l := newLab(t)
	l.serve(web("pay-1", "10.0.0.1:80"), web("pay-2", "10.0.0.2:80"), web("pay-3", "10.0.0.3:80"), web("web", "10.0.0.4:80"))
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	shown := func(want string) {
		t.Helper()
		l.step(machine.Tick{})
		registry := prometheus.NewRegistry()
		registry.MustRegister(l.core.metrics.states.series)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hdsd_cluster_endpoints", "hdsd_cluster_endpoints_down", "hdsd_clusters_without_series"); err != nil {
			t.Error(err)
		}
	}
	const endpoints = "# HELP hdsd_cluster_endpoints Endpoints of a cluster of metrics.cluster_name_globs.\n# TYPE hdsd_cluster_endpoints gauge\n"
	const down = "# HELP hdsd_cluster_endpoints_down Endpoints of it that are down.\n# TYPE hdsd_cluster_endpoints_down gauge\n"
	const leftOut = "# HELP hdsd_clusters_without_series Clusters of metrics.cluster_name_globs beyond metrics.max_clusters.\n# TYPE hdsd_clusters_without_series gauge\n"
	shown(leftOut + "hdsd_clusters_without_series 0\n")
	l.core.alarms.follow(&configv1.Metrics{ClusterNameGlobs: []string{"pay-*"}, MaxClusters: 2})
	l.truth["10.0.0.2:80"] = health.Unhealthy
	l.pass(10 * time.Second)
	shown(endpoints + "hdsd_cluster_endpoints{cluster=\"pay-1\"} 1\nhdsd_cluster_endpoints{cluster=\"pay-2\"} 1\n" +
		down + "hdsd_cluster_endpoints_down{cluster=\"pay-1\"} 0\nhdsd_cluster_endpoints_down{cluster=\"pay-2\"} 1\n" + leftOut + "hdsd_clusters_without_series 1\n")
	l.setClusters(web("pay-2", "10.0.0.2:80"))
	shown(endpoints + "hdsd_cluster_endpoints{cluster=\"pay-2\"} 1\n" + down + "hdsd_cluster_endpoints_down{cluster=\"pay-2\"} 1\n" + leftOut + "hdsd_clusters_without_series 0\n")
	l.core.alarms.follow(nil)
	shown(leftOut + "hdsd_clusters_without_series 0\n")
}
