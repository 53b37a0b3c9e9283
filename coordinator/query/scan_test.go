package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hdsd/access"
	"hdsd/api"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/sample"
)

func TestAListOfEndpointsIsCompleteHoweverManyStepsItTakes(t *testing.T) {
	var clusters []*source.Cluster
	for n, size := range []int{3, 0, stepCost + 5, 5, stepCost / 2, 1} {
		addresses := make([]string, size)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.%d.%d.%d:80", n, i/250, i%250)
		}
		clusters = append(clusters, sample.Web(fmt.Sprintf("c%d", n), addresses...))
	}
	f := newFake(clusters...)
	var want []health.Endpoint
	for _, name := range f.Names() {
		for _, e := range f.clusters[name].Endpoints {
			want = append(want, *e.Key)
		}
	}
	healthy := health.Healthy
	for limit, enough := range map[int]int{7: 500, 10_000: len(want), 2 * len(want): len(want)} {
		got, steps := pages(t, f, api.EndpointQuery{Limit: limit}, enough)
		if len(got) < enough || !slices.Equal(got, want[:len(got)]) {
			t.Errorf("by %d: %d endpoints in %d steps, want %d in order", limit, len(got), steps, enough)
		}
	}
	if got, steps := pages(t, f, api.EndpointQuery{Limit: 10, Health: &healthy}, 1); len(got) > 0 || steps < 2 {
		t.Errorf("%d endpoints are healthy, after %d steps", len(got), steps)
	}
	if got, _ := pages(t, f, api.EndpointQuery{Limit: 10, Address: want[len(want)-1].Address}, 1); !slices.Equal(got, want[len(want)-1:]) {
		t.Errorf("by address: %v", got)
	}
	if got, _ := pages(t, f, api.EndpointQuery{Limit: 10, Cluster: "c3"}, 9); len(got) != 5 {
		t.Errorf("by cluster: %v", got)
	}
	s := clusterScan{limit: 100, may: access.AllClusters()}
	steps := 0
	for ; !s.finished; steps++ {
		s.step(f)
	}
	if len(s.found) != 6 || s.more || steps < 2 {
		t.Errorf("%d clusters in %d steps, more: %v", len(s.found), steps, s.more)
	}
}

// pages reads pages until there are enough endpoints.
func pages(t *testing.T, f *fake, q api.EndpointQuery, enough int) (found []health.Endpoint, steps int) {
	t.Helper()
	for {
		s := scan{query: q, cluster: q.Cluster, may: access.AllClusters()}
		if q.After != nil {
			s.cluster, s.after = q.After.Cluster, q.After
		}
		for ; !s.finished; steps++ {
			s.step(f)
			if s.cost > 2*stepCost {
				t.Fatalf("a step costs %d", s.cost)
			}
		}
		for _, e := range s.found {
			found = append(found, e.Endpoint)
		}
		if !s.more || len(found) >= enough {
			return found, steps
		}
		last := found[len(found)-1]
		q.After = &last
	}
}

// TestQuarantinedEndpointsAreListedWithTheirReasons: if nobody can check any
// endpoint, for one reason, the cluster has that reason once.
func TestQuarantinedEndpointsAreListedWithTheirReasons(t *testing.T) {
	f := newFake(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80", "db.internal:80"))
	f.status[endpoint("web", "10.0.0.1:80")] = health.Healthy
	f.status[endpoint("web", "10.0.0.2:80")] = health.Timeout
	f.overridden = map[string]bool{"10.0.0.2:80": true}
	if got := describe(f, f.clusters["web"]); got.Healthy != 1 || got.Unhealthy != 1 || got.Unknown != 1 || got.Overridden != 1 || got.Endpoints != 3 {
		t.Errorf("counted %+v", got)
	}
	reasons := func() string {
		var all []string
		for _, q := range describe(f, f.clusters["web"]).Quarantined {
			all = append(all, q.Address+" "+strings.SplitN(q.Reason, ":", 2)[0])
		}
		return strings.Join(all, ", ")
	}
	const named = "db.internal:80 endpoint.address.socket_address.address"
	if got := reasons(); got != named {
		t.Errorf("quarantined: %s", got)
	}
	f.blocked = "blocked"
	f.stranded = map[string]string{"10.0.0.1:80": "far"}
	if got := reasons(); got != named+",  blocked, 10.0.0.1:80 far" {
		t.Errorf("quarantined: %s", got)
	}
	f.stranded = map[string]string{"10.0.0.1:80": "far", "10.0.0.2:80": "far", "db.internal:80": "far"}
	if got := reasons(); got != named+",  blocked,  far" {
		t.Errorf("quarantined: %s", got)
	}
	f.stranded["10.0.0.2:80"] = "full"
	if got := reasons(); got != named+",  blocked, 10.0.0.1:80 far, 10.0.0.2:80 full, db.internal:80 far" {
		t.Errorf("quarantined: %s", got)
	}
}
