//go:build !race || soak

package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/api"
	"hdsd/coordinator/query"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/notify"
	"hdsd/source"
	"hdsd/store"
)

// TestGrantIncludesVersions covers own names of versions. A grant does not include a cluster whose name only
// has the form of a version.
func TestGrantIncludesVersions(t *testing.T) {
	l := newLab(t)
	version := func(own, outside string) *source.Cluster {
		k := web(outside, "10.0.0.1:80")
		k.Name, k.ServiceName = own, own
		return k
	}
	l.serve(web("web", "10.0.0.1:80"), version("web#2", "web"), version("web#3", "web#3"), version("db#2", "db"))
	ctx := grantedWeb(t)
	names := func() (all []string) {
		t.Helper()
		clusters, _, err := l.backend().Clusters(ctx, api.ClusterQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range clusters {
			all = append(all, clusters[i].Name)
		}
		found, _, err := l.backend().Endpoints(ctx, api.EndpointQuery{Limit: 10})
		if err != nil || len(found) != len(clusters) {
			t.Errorf("%d endpoints of %v, %v", len(found), all, err)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"web", "web#2"}) {
		t.Errorf("it sees %v", got)
	}
	l.setClusters(web("web", "10.0.0.1:80"), version("web#2", "web#2"))
	if got := names(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("web#2 is another cluster now, and it sees %v", got)
	}
}

// TestQueriesByOutsideName covers all versions of a cluster in lists, in a watch and in metrics.
func TestQueriesByOutsideName(t *testing.T) {
	l := newLab(t)
	version := func(own, outside string) *source.Cluster {
		k := web(outside, "10.0.0.1:80")
		k.Name, k.ServiceName = own, own
		return k
	}
	l.serve(web("a", "10.0.0.1:80"), web("web", "10.0.0.1:80"), version("web#2", "web"), version("web#3", "web#3"), version("web#4", "web"), web("web!", "10.0.0.1:80"))
	l.join("c0a", "c1b", "c2c")
	l.core.alarms.follow(&configv1.Metrics{ClusterNameGlobs: []string{"web"}, MaxClusters: 10})
	l.pass(settle + 10*time.Second)
	find := func(name string, limit int) (rows, endpoints []string) {
		t.Helper()
		after, more := "", true
		for more {
			var clusters []api.Cluster
			var err error
			if clusters, more, err = l.backend().Clusters(t.Context(), api.ClusterQuery{Cluster: name, Limit: limit, After: after}); err != nil {
				t.Fatal(err)
			}
			for i := range clusters {
				after = clusters[i].Name
				rows = append(rows, after)
			}
		}
		var last *health.Endpoint
		for more = true; more; {
			var found []api.EndpointHealth
			var err error
			if found, more, err = l.backend().Endpoints(t.Context(), api.EndpointQuery{Cluster: name, Limit: limit, After: last}); err != nil {
				t.Fatal(err)
			}
			for i := range found {
				last = &found[i].Endpoint
				endpoints = append(endpoints, last.Cluster)
			}
		}
		return rows, endpoints
	}
	want := func(name string, want ...string) {
		t.Helper()
		for limit := 1; limit <= 4; limit++ {
			if rows, endpoints := find(name, limit); !slices.Equal(rows, want) || !slices.Equal(endpoints, want) {
				t.Errorf("under %s, %d at a time, there are clusters %v and endpoints of %v; want %v", name, limit, rows, endpoints, want)
			}
		}
	}
	series := func(want string) {
		t.Helper()
		l.step(machine.Tick{})
		registry := prometheus.NewRegistry()
		registry.MustRegister(l.core.metrics.states.series)
		want = "# HELP hdsd_cluster_endpoints Endpoints of a cluster of metrics.cluster_name_globs.\n# TYPE hdsd_cluster_endpoints gauge\n" + want
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hdsd_cluster_endpoints"); err != nil {
			t.Error(err)
		}
	}
	want("web", "web", "web#2", "web#4")
	want("web#2", "web#2")
	want("web#3", "web#3")
	series("hdsd_cluster_endpoints{cluster=\"web\"} 3\n")
	l.setClusters(version("web#2", "web"), version("web#3", "web#3"))
	want("web", "web#2")
	series("hdsd_cluster_endpoints{cluster=\"web\"} 1\n")
}

// TestAlarmsHaveOutsideNames covers the outside name and the version in notifications and in the log, also
// for a removed version.
func TestAlarmsHaveOutsideNames(t *testing.T) {
	l := newLab(t)
	var log strings.Builder
	l.core.alarms.log = zerolog.New(&log)
	l.core.eventLog.transitions.bounded, l.core.eventLog.log = zerolog.New(&log), zerolog.New(&log)
	var told []notify.Change
	l.core.alarms.notify = func(changes []notify.Change) { told = append(told, changes...) }
	second := web("web", "10.0.0.1:80")
	second.Name, second.ServiceName = "web#1111111111111111", "web#1111111111111111"
	l.serve(web("web", "10.0.0.1:80"), second)
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	l.truth["10.0.0.1:80"] = health.Unhealthy
	l.pass(20 * time.Second)
	want := func(over bool, keys ...notify.Key) {
		t.Helper()
		found := map[notify.Key]bool{}
		for i := range told {
			found[told[i].Key] = true
			if told[i].Ended != over || strings.Contains(told[i].Text, "web#") {
				t.Errorf("told %+v", told[i])
			}
			if text := told[i].Text; !over && strings.Contains(text, "cluster web (version 1111111111111111)") != (told[i].Version != "") {
				t.Errorf("of version %q it says %q", told[i].Version, text)
			}
		}
		for _, key := range keys {
			if !found[key] {
				t.Errorf("%+v (over: %t) is not told: %+v", key, over, told)
			}
		}
		told = nil
	}
	want(false, notify.Key{Kind: notify.ClusterDown, Cluster: "web"}, notify.Key{Kind: notify.ClusterDown, Cluster: "web", Version: "1111111111111111"},
		notify.Key{Kind: notify.EndpointDown, Cluster: "web", Version: "1111111111111111", Zone: "eu/a", Address: "10.0.0.1:80"})
	l.setClusters(web("web", "10.0.0.1:80"))
	l.pass(time.Second)
	want(true, notify.Key{Kind: notify.ClusterDown, Cluster: "web", Version: "1111111111111111"},
		notify.Key{Kind: notify.EndpointDown, Cluster: "web", Version: "1111111111111111", Zone: "eu/a", Address: "10.0.0.1:80"})
	for _, line := range []string{
		`"event":"cluster_down","cluster":"web","endpoints":1`, `"event":"cluster_down","cluster":"web","cluster_version":"1111111111111111","endpoints":1`,
		`"event":"cluster_down_over","cluster":"web","cluster_version":"1111111111111111","endpoints"`,
		`"event":"clusters_taken_over","count":2,"clusters":["web","web (version 1111111111111111)"]`,
		`"event":"transition","cluster":"web","address"`, `"event":"transition","cluster":"web","cluster_version":"1111111111111111","address"`,
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %s", line)
		}
	}
	if strings.Contains(log.String(), "web#") {
		t.Errorf("the log has hdsd's own name: %s", log.String())
	}
	l.core.names.names.Range(func(own, _ any) bool { t.Errorf("%v is still known", own); return true })
}

// TestRowsHaveVersions covers that the first version has none.
func TestRowsHaveVersions(t *testing.T) {
	l := newLab(t)
	second := web("web", "10.0.0.1:80")
	second.Name, second.ServiceName = "web#1111111111111111", "web#1111111111111111"
	l.serve(web("web", "10.0.0.1:80"), second)
	clusters, _, err := l.backend().Clusters(t.Context(), api.ClusterQuery{Cluster: "web", Limit: 10})
	if err != nil || len(clusters) != 2 || clusters[0].Version != "" || clusters[1].Version != "1111111111111111" {
		t.Errorf("%+v, %v", clusters, err)
	}
	endpoints, _, err := l.backend().Endpoints(t.Context(), api.EndpointQuery{Cluster: "web", Limit: 10})
	if err != nil || len(endpoints) != 2 || endpoints[0].Version != "" || endpoints[1].Version != "1111111111111111" {
		t.Errorf("%+v, %v", endpoints, err)
	}
}

// TestAttentionHasOutsideNames covers the outside name and the version. The proposed command has the own
// name.
func TestAttentionHasOutsideNames(t *testing.T) {
	l := newLab(t)
	second := web("web", "10.0.0.1:80")
	second.Name, second.ServiceName = "web#1111111111111111", "web#1111111111111111"
	l.serve(web("web", "10.0.0.1:80"), second)
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	l.truth["10.0.0.1:80"] = health.Unhealthy
	l.pass(20 * time.Second)
	now, err := l.backend().Status(t.Context())
	if err != nil || len(now.Attention) != 2 {
		t.Fatalf("%+v, %v", now.Attention, err)
	}
	for i, want := range []api.Attention{
		{Kind: "CLUSTER_DOWN", Cluster: "web", Text: "cluster web: 1 of 1 endpoint down", Command: "hdsd describe cluster web"},
		{Kind: "CLUSTER_DOWN", Cluster: "web#1111111111111111", Version: "1111111111111111", Text: "cluster web (version 1111111111111111): 1 of 1 endpoint down", Command: "hdsd describe cluster 'web#1111111111111111'"},
	} {
		if want.Since = now.Attention[i].Since; now.Attention[i] != want {
			t.Errorf("%+v, want %+v", now.Attention[i], want)
		}
	}
	worst, err := l.backend().Overview(t.Context(), 10)
	if err != nil || len(worst.Clusters) != 2 || worst.Clusters[0].Version != "" || worst.Clusters[1].Version != "1111111111111111" {
		t.Errorf("%+v, %v", worst, err)
	}
}

// TestVersionsOfPresentAndPast covers a cluster whose name only has the form of an own name: it has no
// version.
func TestVersionsOfPresentAndPast(t *testing.T) {
	const own, real, gone = "web#1111111111111111", "web#2222222222222222", "web#3333333333333333"
	l := newLab(t)
	second := web("web", "10.0.0.1:80")
	second.Name, second.ServiceName = own, own
	l.serve(web("web", "10.0.0.1:80"), second, web(real, "10.0.0.1:80"))
	want := func(all map[string]string) {
		t.Helper()
		for name, version := range all {
			if got := (queryCore{l.core}).Version(name); got != version {
				t.Errorf("%s is version %q, want %q", name, got, version)
			}
			if got := (view{l.core}).ExplainGone(health.Endpoint{Cluster: name}).Version; got != version {
				t.Errorf("an endpoint of %s that has gone is of version %q, want %q", name, got, version)
			}
		}
	}
	want(map[string]string{"web": "", own: "1111111111111111", real: "", gone: "3333333333333333", "web#4": ""})
	l.setClusters(web("web", "10.0.0.1:80"))
	l.step(machine.Tick{})
	want(map[string]string{"web": "", own: "1111111111111111", real: "2222222222222222"})
	l.core.names.names.Range(func(own, _ any) bool { t.Errorf("%v is still known", own); return true })
}

// TestGrantIncludesHistoryOfVersions covers removed versions of granted clusters. A grant does not include a
// present cluster whose name only has the form of a version.
func TestGrantIncludesHistoryOfVersions(t *testing.T) {
	const own, real = "web#1111111111111111", "web#2222222222222222"
	l := newLab(t)
	history, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer history.Close()
	second := web("web", "10.0.0.1:80")
	second.Name, second.ServiceName = own, own
	l.serve(web("web", "10.0.0.1:80"), second, web(real, "10.0.0.1:80"))
	for _, name := range []string{"web", own, real, "zoo#1111111111111111"} {
		history.Append([]health.Transition{{Time: time.Now(), Endpoint: keyOf(name, "10.0.0.1:80"), To: health.Unhealthy}})
	}
	if err := history.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := grantedWeb(t)
	b := query.New(query.Options{Core: l, Outside: queryCore{l.core}.Outside, Version: queryCore{l.core}.Version, Store: history, HDS: hds.NewServer(hds.Options{}, sink{l.core})})
	for _, present := range []bool{true, false} {
		if !present {
			l.setClusters(web("web", "10.0.0.1:80"), web(real, "10.0.0.1:80"))
			l.step(machine.Tick{})
		}
		for _, name := range []string{"", "web"} {
			found, _, err := b.Transitions(ctx, api.TransitionQuery{Cluster: name, Limit: 10})
			if err != nil || len(found) != 2 || found[0].Endpoint.Cluster != "web" || found[1].Endpoint.Cluster != own {
				t.Errorf("of %q it sees %v, %v", name, found, err)
			}
		}
	}
}
