package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/source"
	"hdsd/source/sample"
)

// inZones is a cluster with an endpoint in each of some zones, which may be "".
func inZones(name string, zones ...string) *source.Cluster {
	c := sample.Web(name)
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints = nil
		for i, zone := range zones {
			group := &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{sample.Endpoint(fmt.Sprintf("10.0.0.%d:80", i+1))}}
			if zone != "" {
				group.Locality = &corev3.Locality{Region: "eu", Zone: zone, SubZone: fmt.Sprint(i % 2)}
			}
			a.Endpoints = append(a.Endpoints, group)
		}
	})
	return c
}

// turn sets the status of a cluster's endpoint with an address that ends so.
func (f *fake) turn(cluster string, index int, to health.Status) {
	for i := range f.clusters[cluster].Endpoints {
		if e := &f.clusters[cluster].Endpoints[i]; e.Address() == fmt.Sprintf("10.0.0.%d:80", index+1) {
			f.status[e.Key()] = to
		}
	}
}

// worstOf lists the clusters that are worst off, as text.
func worstOf(t *testing.T, f *fake, limit int) (all []string, others int) {
	t.Helper()
	found, err := backendOf(t, f).Overview(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Clusters {
		text := fmt.Sprint(c.Cluster, " ", c.State, " ", c.Down, "/", c.Endpoints)
		for _, z := range c.Zones {
			text += fmt.Sprint(" ", z.Zone.Zone, ":", z.Down, "/", z.Endpoints)
		}
		all = append(all, text)
	}
	return all, found.Further
}

// TestWorst holds the order, the zones, and the bound.
func TestWorst(t *testing.T) {
	f := newFake(
		inZones("all", "a", "b"), inZones("half", "a", ""), inZones("third", "a", "a", "b"), inZones("quarter", "a", "a", "a", "a"),
		inZones("unseen", "a"), inZones("well", "a"), inZones("empty"),
	)
	for cluster, health := range map[string][]health.Status{
		"all": {health.Unhealthy, health.Timeout}, "half": {health.Unhealthy, health.Healthy},
		"third":   {health.Unhealthy, health.Healthy, health.Degraded},
		"quarter": {health.Unhealthy, health.Healthy, health.Healthy, health.Draining}, "well": {health.Healthy},
	} {
		for i, is := range health {
			f.turn(cluster, i, is)
		}
	}
	want := []string{
		"all ALL_DOWN 2/2 a:1/1 b:1/1", "half HALF_DOWN 1/2 :0/1 a:1/1", "third SOME_DOWN 1/3 a:1/2 b:0/1", "quarter SOME_DOWN 1/4 a:1/4",
		"unseen UNOBSERVED 0/1 a:0/1", "well OK 0/1 a:0/1",
	}
	for limit := range len(want) + 2 {
		got, others := worstOf(t, f, limit)
		if !slices.Equal(got, want[:min(limit, len(want))]) || others != max(len(want)-limit, 0) {
			t.Errorf("of %d, %d others:\n%s", limit, others, cmp.Diff(want, got))
		}
	}
	f.turn("all", 0, health.Healthy)
	f.turn("well", 0, health.Timeout)
	delete(f.clusters, "half")
	if got, _ := worstOf(t, f, 2); !slices.Equal(got, []string{"well ALL_DOWN 1/1 a:1/1", "all HALF_DOWN 1/2 a:0/1 b:1/1"}) {
		t.Errorf("after changes: %q", got)
	}
}

// TestWorstIsTheSameForAnyLimit: fewer clusters are the first of more.
func TestWorstIsTheSameForAnyLimit(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var clusters []*source.Cluster
		for c := range 40 {
			zones := make([]string, 1+random.IntN(6))
			for i := range zones {
				zones[i] = []string{"", "a", "b"}[random.IntN(3)]
			}
			clusters = append(clusters, inZones(fmt.Sprint("c", c), zones...))
		}
		f := newFake(clusters...)
		for _, k := range f.clusters {
			for i := range k.Endpoints {
				f.status[k.Endpoints[i].Key()] = []health.Status{health.Healthy, health.Unhealthy, health.Timeout, health.Draining}[random.IntN(4)]
			}
		}
		now, _ := f.Snapshot(t.Context())
		worst, all := now.worst(100, access.AllClusters())
		if len(worst) != 40 || all != 40 {
			t.Fatalf("seed %d: %d of %d clusters", seed, len(worst), all)
		}
		for limit := range 20 {
			some, _ := now.worst(limit, access.AllClusters())
			for i := range some {
				if some[i].row != worst[i].row {
					t.Fatalf("seed %d: of %d, cluster %d is %s, not %s", seed, limit, i, some[i].Name, worst[i].Name)
				}
			}
		}
	}
}

// TestCountsOfARow are those of all its endpoints, by locality.
func TestCountsOfARow(t *testing.T) {
	f := newFake(inZones("web", "b", "a", "b", "", "a"))
	for i, is := range []health.Status{health.Healthy, health.Unhealthy, health.Timeout, health.Draining} {
		f.turn("web", i, is)
	}
	b := backendOf(t, f)
	got, _, err := b.Clusters(t.Context(), api.ClusterQuery{Limit: 1})
	if err != nil || len(got) != 1 || got[0].Healthy != 1 || got[0].Unhealthy != 2 || got[0].Timeout != 1 || got[0].Draining != 1 || got[0].Unknown != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	now, err := b.Status(t.Context())
	want := api.EndpointCounts{HealthCounts: api.HealthCounts{Healthy: 1, Unhealthy: 2, Timeout: 1, Draining: 1, Unknown: 1}, Voters: [4]int{1, 0, 0, 4}}
	if err != nil || now.Endpoints != want {
		t.Errorf("%+v, %v", now.Endpoints, err)
	}
}

// TestStatusAndClustersCountAlike: what the status counts is what the clusters add up to, and all
// endpoints.
func TestStatusAndClustersCountAlike(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		var clusters []*source.Cluster
		for c := range 10 {
			clusters = append(clusters, inZones(fmt.Sprint("c", c), make([]string, 1+random.IntN(8))...))
		}
		f := newFake(clusters...)
		for _, k := range f.clusters {
			for i := range k.Endpoints {
				f.status[k.Endpoints[i].Key()] = health.Status(random.IntN(int(health.Degraded) + 1))
			}
		}
		b := backendOf(t, f)
		now, err := b.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := b.Clusters(t.Context(), api.ClusterQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var sum api.HealthCounts
		endpoints := 0
		for i := range all {
			k := &all[i].HealthCounts
			sum.Healthy += k.Healthy
			sum.Degraded += k.Degraded
			sum.Unhealthy += k.Unhealthy
			sum.Timeout += k.Timeout
			sum.Draining += k.Draining
			sum.Unknown += k.Unknown
			endpoints += all[i].Endpoints
		}
		if sum != now.Endpoints.HealthCounts || sum.Healthy+sum.Unhealthy+sum.Draining+sum.Unknown != endpoints {
			t.Errorf("seed %d: the clusters have %+v of %d endpoints, the status %+v", seed, sum, endpoints, now.Endpoints)
		}
	}
}

// narrow is a caller that may see some clusters.
type narrow struct {
	access.Permit
	clusters access.Clusters
}

// Clusters implements access.Permit.
func (n narrow) Clusters() access.Clusters { return n.clusters }

// TestWhoMaySeeSomeClustersSeesNoReasons: neither names of sources, nor why checkers are not
// believed, which may name clusters of others.
func TestWhoMaySeeSomeClustersSeesNoReasons(t *testing.T) {
	const secret = "down in cluster other of source hidden"
	web := inZones("web", "a")
	web.Source = secret
	f := newFake(web)
	f.checkers = []Checker{{
		Checker:     api.Checker{Checker: health.Checker{ID: "c1"}, Connected: true, BlindReason: secret, CutPaths: []api.CutPath{{To: "eu/b", Reason: secret}}},
		DoubtReason: secret,
	}}
	b := backendOf(t, f)
	b.Process = func() Process { return Process{NotReady: secret} }
	for _, may := range []access.Clusters{access.AllClusters(), {}} {
		ctx := access.With(t.Context(), narrow{access.FromContext(t.Context()), may})
		checkers, err := b.Checkers(ctx)
		if err != nil || len(checkers) != 1 || checkers[0].Trusted || checkers[0].BlindReason == "" {
			t.Fatalf("%+v, %v", checkers, err)
		}
		status, err := b.Status(ctx)
		if err != nil || status.Checkers.Doubted != 1 || status.NotReady == "" {
			t.Fatalf("%+v, %v", status, err)
		}
		clusters, _, err := b.Clusters(ctx, api.ClusterQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%+v %+v %+v", checkers, status, clusters); strings.Contains(text, secret) != may.All() {
			t.Errorf("who may see all: %t; sees %s", may.All(), text)
		}
	}
	if f.checkers[0].CutPaths[0].Reason != secret {
		t.Error("the snapshot is changed")
	}
}

// BenchmarkWorst is what one look at 10,000 clusters takes, 50 of which are down.
func BenchmarkWorst(b *testing.B) {
	var clusters []*source.Cluster
	for c := range 10_000 {
		clusters = append(clusters, inZones(fmt.Sprint("c", c), "a", "b", "c", "a", "b", "c", "a", "b", "c", "a"))
	}
	f := newFake(clusters...)
	for c := range 50 {
		for i := range 10 {
			f.turn(fmt.Sprint("c", c), i, health.Unhealthy)
		}
	}
	now, _ := f.Snapshot(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		now.worst(50, access.AllClusters())
	}
}
