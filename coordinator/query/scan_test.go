package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
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
			want = append(want, e.Key())
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
}

// TestFilteredLists of endpoints and clusters.
func TestFilteredLists(t *testing.T) {
	f := newFake(sample.Web("api", "10.0.0.1:80", "10.0.0.2:80"), sample.Web("web", "10.0.1.1:80"), sample.Web("worn", "10.0.2.1:80"))
	at := func(cluster string, i int) health.Endpoint { return f.clusters[cluster].Endpoints[i].Key() }
	f.status[at("api", 0)], f.status[at("api", 1)], f.status[at("web", 0)], f.status[at("worn", 0)] = health.Timeout, health.Healthy, health.Healthy, health.Degraded
	unhealthy := health.Filter{Unhealthy: true}
	if got, _ := pages(t, f, api.EndpointQuery{Limit: 10, Filter: unhealthy}, 1); !slices.Equal(got, []health.Endpoint{at("api", 0)}) {
		t.Errorf("unhealthy endpoints: %v", got)
	}
	if got, _ := pages(t, f, api.EndpointQuery{Limit: 10, Filter: health.Filter{Locality: health.Locality{Zone: "nowhere"}}}, 1); len(got) != 0 {
		t.Errorf("endpoints in no zone: %v", got)
	}
	b := backendOf(t, f)
	list := func(q api.ClusterQuery) (found []api.Cluster) {
		for {
			q.Limit = 1
			some, more, err := b.Clusters(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if found = append(found, some...); !more {
				return found
			}
			q.After = found[len(found)-1].Name
		}
	}
	all := list(api.ClusterQuery{})
	if len(all) != 3 || len(all[0].HealthChecks) != 0 || all[0].Timeout != 1 || all[2].Degraded != 1 || all[2].Healthy != 1 {
		t.Errorf("all clusters: %+v", all)
	}
	if got := list(api.ClusterQuery{Filter: unhealthy}); len(got) != 1 || got[0].Name != "api" {
		t.Errorf("unhealthy clusters: %+v", got)
	}
	f.stranded = map[string]string{"10.0.1.1:80": "nobody can"}
	if got := list(api.ClusterQuery{Filter: unhealthy}); len(got) != 2 || got[1].Name != "web" {
		t.Errorf("unhealthy clusters, one of which is not checked: %+v", got)
	}
	if got := list(api.ClusterQuery{Cluster: "web"}); len(got) != 1 || len(got[0].HealthChecks) != 1 {
		t.Errorf("one cluster: %+v", got)
	}
	if _, _, err := b.Clusters(t.Context(), api.ClusterQuery{Cluster: "nope", Limit: 1}); !errors.Is(err, api.ErrUnknownCluster) {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

// pages reads pages until there are enough endpoints.
func pages(t *testing.T, f *fake, q api.EndpointQuery, enough int) (found []health.Endpoint, steps int) {
	t.Helper()
	for {
		s := scan{query: q, cluster: q.Cluster, visible: access.AllClusters()}
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
	if got := newRow(f, f.clusters["web"]).describe(false); got.Healthy != 1 || got.Unhealthy != 1 || got.Unknown != 1 || got.Overridden != 1 || got.Endpoints != 3 {
		t.Errorf("counted %+v", got)
	}
	reasons := func() string {
		var all []string
		for _, q := range newRow(f, f.clusters["web"]).describe(false).Quarantined {
			all = append(all, q.Address+" "+strings.SplitN(q.Reason, ":", 2)[0])
		}
		return strings.Join(all, ", ")
	}
	const named = "db.internal:80 not published, since clients refuse all that comes with it"
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
