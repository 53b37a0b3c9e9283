package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/notify"
)

// status is what /v1/status shows of the lab.
func (l *lab) status() api.Status {
	l.t.Helper()
	now, err := l.backend().Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return now
}

// attentionOf lists what needs attention, as "KIND cluster".
func attentionOf(s *api.Status) (all []string) {
	for _, a := range s.Attention {
		all = append(all, a.Kind+" "+a.Cluster+a.Zone)
	}
	return all
}

// TestStatusFollowsEvents covers a healthy fleet, a cluster that goes down and returns, and the loss and
// return of the last checkers.
func TestStatusFollowsEvents(t *testing.T) {
	l := newLab(t)
	l.serve(web("api", "10.0.1.1:80"), web("web", "10.0.0.1:80", "10.0.0.2:80"))
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	want := func(when string, clusters api.ClusterCounts, items ...string) api.Status {
		t.Helper()
		s := l.status()
		if got := attentionOf(&s); s.Clusters != clusters || !slices.Equal(got, items) {
			t.Errorf("%s: %+v, attention %q, want %+v, %q", when, s.Clusters, got, clusters, items)
		}
		return s
	}
	s := want("all is well", api.ClusterCounts{OK: 2})
	if s.Endpoints != (api.EndpointCounts{HealthCounts: api.HealthCounts{Healthy: 3}, Voters: [4]int{3: 3}}) || s.Checkers != (api.CheckerCounts{Connected: 3}) || s.Version != "1.2.3" {
		t.Errorf("all is well: %+v", s)
	}

	drain := log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Unhealthy, Reason: "disk", Author: "carl"}
	drain.Scope.Address = "10.0.0.1:80"
	if _, err := l.override(drain); err != nil {
		t.Fatal(err)
	}
	want("half of it is down", api.ClusterCounts{OK: 1, HalfDown: 1}, "CLUSTER_HALF_DOWN web")
	all := drain
	all.Scope.Address = ""
	down := l.now
	if _, err := l.override(all); err != nil {
		t.Fatal(err)
	}
	s = want("all of it is down", api.ClusterCounts{OK: 1, AllDown: 1}, "CLUSTER_DOWN web")
	if a := s.Attention; len(a) != 1 || a[0].Since.Before(down.Add(-time.Second)) || a[0].Since.After(l.now) || a[0].Command != "hdsd describe cluster web" {
		t.Errorf("it went down at %s: %+v", down, a)
	}
	for _, scope := range []health.Endpoint{drain.Scope, all.Scope} {
		if _, err := l.clear(scope, false); err != nil {
			t.Fatal(err)
		}
	}
	want("it is up again", api.ClusterCounts{OK: 2})

	lost := l.now
	l.lose("c0a")
	l.lose("c1b")
	l.lose("c2c")
	l.pass(20 * time.Second)
	s = want("nobody checks", api.ClusterCounts{Unobserved: 2}, "NO_CHECKERS ")
	if s.Endpoints != (api.EndpointCounts{HealthCounts: api.HealthCounts{Healthy: 3}, Held: 3, Voters: [4]int{3}}) || s.Checkers != (api.CheckerCounts{Lost: 3}) {
		t.Errorf("nobody checks: %+v, %+v", s.Endpoints, s.Checkers)
	}
	if a := s.Attention; len(a) != 1 || a[0].Since.Before(lost) || a[0].Since.After(lost.Add(10*time.Second)) {
		t.Errorf("nobody checks since %s: %+v", lost, a)
	}
	l.join("c0a", "c1b")
	l.pass(20 * time.Second)
	if s = want("two are back", api.ClusterCounts{OK: 2}); s.Checkers != (api.CheckerCounts{Connected: 2, Lost: 1}) {
		t.Errorf("two are back: %+v", s.Checkers)
	}
	l.pass(machine.LostExpiry)
	if s = l.status(); s.Checkers.Lost != 0 {
		t.Errorf("a day later %d are lost", s.Checkers.Lost)
	}
}

// TestClustersWithoutHealthyEndpoint covers a draining cluster and a cluster that hdsd must not check, in the
// status, the overview, the metrics and the attention.
func TestClustersWithoutHealthyEndpoint(t *testing.T) {
	l := newLab(t)
	told := l.conditions()
	l.serve(web("api", "10.0.1.1:80"), web("web", "10.0.0.1:80", "10.0.0.2:80"), aside(web("odd", "10.0.2.1:80")))
	l.join("c0a", "c1b", "c2c")
	l.pass(settle + 10*time.Second)
	want := func(when string, clusters api.ClusterCounts, worst string, items ...string) {
		t.Helper()
		s := l.status()
		if got := attentionOf(&s); s.Clusters != clusters || !slices.Equal(got, items) {
			t.Errorf("%s: %+v, attention %q, want %+v, %q", when, s.Clusters, got, clusters, items)
		}
		overview, err := l.backend().Overview(t.Context(), 10)
		if err != nil || len(overview.Clusters) != 3 || overview.Clusters[0].Cluster+" "+overview.Clusters[0].State != worst {
			t.Errorf("%s: %+v, %v, want %s first", when, overview.Clusters, err, worst)
		}
		for state, n := range map[attention.State]int{attention.NoneHealthy: clusters.NoneHealthy, attention.Unchecked: clusters.Unchecked, attention.OK: clusters.OK} {
			if got := testutil.ToFloat64(l.core.metrics.states.states[state]); got != float64(n) {
				t.Errorf("%s: hdsd_clusters_by_state of %s is %v, want %d", when, state, got, n)
			}
		}
	}
	want("none of odd may be checked", api.ClusterCounts{OK: 2, Unchecked: 1}, "odd UNCHECKED", "NOT_CHECKED odd")
	if a := l.attentionOf("NOT_CHECKED"); len(a) != 1 || !strings.HasPrefix(a[0].Text, "cluster odd: none of its endpoints may be checked: ") {
		t.Errorf("none of odd may be checked: %+v", a)
	}
	drain := log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Draining, Reason: "moving", Author: "carl"}
	if _, err := l.override(drain); err != nil {
		t.Fatal(err)
	}
	drained := l.now
	l.pass(time.Second)
	want("all of web drain", api.ClusterCounts{OK: 1, NoneHealthy: 1, Unchecked: 1}, "web NONE_HEALTHY", "NO_HEALTHY_ENDPOINT web", "PANIC web", "NOT_CHECKED odd")
	if a := l.attentionOf("NO_HEALTHY_ENDPOINT"); len(a) != 1 || a[0].Since.Before(drained.Add(-time.Second)) || a[0].Text != "cluster web: no healthy endpoint: 2 of 2 endpoints draining, 0 down" {
		t.Errorf("all of web drain since %s: %+v", drained, a)
	}
	if _, err := l.clear(drain.Scope, false); err != nil {
		t.Fatal(err)
	}
	l.serve(web("api", "10.0.1.1:80"), web("web", "10.0.0.1:80", "10.0.0.2:80"), web("odd", "10.0.2.1:80"))
	l.pass(10 * time.Second)
	want("all is well", api.ClusterCounts{OK: 3}, "api OK")
	reason := "cluster odd: none of its endpoints may be checked: "
	if all := told(notify.NotChecked); len(all) != 2 || all[0].Ended || all[0].Cluster != "odd" || !strings.HasPrefix(all[0].Text, reason) || all[0].Since.IsZero() || !all[1].Ended {
		t.Errorf("odd was not checked, and is again: %+v", all)
	}
}
