package tally_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/coordinator/attention"
	"hdsd/coordinator/tally"
	"hdsd/health"
	"hdsd/notify"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fleet is what a test says that there is, and what it was told.
type fleet struct {
	*tally.Tally
	clusters map[string][]tally.Endpoint
	observed map[string]int
	open     map[notify.Key]bool
	t        *testing.T
}

func newFleet(t *testing.T) *fleet {
	return &fleet{Tally: tally.New(), clusters: map[string][]tally.Endpoint{}, observed: map[string]int{}, open: map[notify.Key]bool{}, t: t}
}

func endpoint(cluster, zone string, n int, is health.Status) tally.Endpoint {
	key := health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: zone}, Address: fmt.Sprintf("10.0.0.%d:80", n)}
	if zone == "" {
		key.Locality = health.Locality{}
	}
	return tally.Endpoint{Hash: key.Hash(), Key: &key, Status: is, Since: noon.Add(time.Duration(n) * time.Second), Reason: "because"}
}

func (f *fleet) set(name string, observed int, all ...tally.Endpoint) {
	f.clusters[name], f.observed[name] = all, observed
	f.SetCluster(name, observed, slices.Values(all))
}

func (f *fleet) turn(name string, at int, to health.Status) {
	e := &f.clusters[name][at]
	e.Status = to
	f.SetEndpoint(e)
}

// take takes what changed, and holds that nothing begins or ends twice.
func (f *fleet) take() tally.Effects {
	f.t.Helper()
	e := f.Take()
	for _, c := range e.Conditions {
		if f.open[c.Key] != c.Ended {
			f.t.Fatalf("%+v over %t, open %t", c.Key, c.Ended, f.open[c.Key])
		}
		if f.open[c.Key] = !c.Ended; c.Ended {
			delete(f.open, c.Key)
		}
	}
	return e
}

// told lists what is open, as "KIND cluster zone address".
func (f *fleet) told() []string {
	var all []string
	for k := range f.open {
		all = append(all, fmt.Sprintf("%s %s %s %s", k.Kind, k.Cluster, k.Zone, k.Address))
	}
	slices.Sort(all)
	return all
}

// TestAClusterAndAZoneGoDown: each is told once, with how many and since when, and once when
// it is over.
func TestAClusterAndAZoneGoDown(t *testing.T) {
	f := newFleet(t)
	f.set("web", 3, endpoint("web", "a", 1, health.Healthy), endpoint("web", "a", 2, health.Healthy))
	f.set("api", 1, endpoint("api", "b", 3, health.Healthy))
	if e := f.take(); len(e.Clusters)+len(e.Zones)+len(e.Conditions) != 0 || f.Counts() != (tally.Counts{attention.OK: 2}) {
		t.Fatalf("all is well: %+v, %v", e, f.Counts())
	}
	f.turn("web", 0, health.Unhealthy)
	e := f.take()
	if len(e.Clusters)+len(e.Zones) != 0 || f.Counts() != (tally.Counts{attention.OK: 1, attention.HalfDown: 1}) {
		t.Errorf("half is down: %+v, %v", e, f.Counts())
	}
	f.turn("web", 1, health.Timeout)
	e = f.take()
	if diff := cmp.Diff([]tally.GroupChange{{Name: "web", Endpoints: 2, Down: 2, Since: noon.Add(2 * time.Second)}}, e.Clusters); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]tally.GroupChange{{Name: "eu/a", Endpoints: 2, Down: 2, Since: noon.Add(2 * time.Second)}}, e.Zones); diff != "" {
		t.Error(diff)
	}
	want := []string{"CLUSTER_DOWN web  ", "ENDPOINT_DOWN web eu/a 10.0.0.1:80", "ENDPOINT_DOWN web eu/a 10.0.0.2:80", "ZONE_DOWN  eu/a "}
	if diff := cmp.Diff(want, f.told()); diff != "" {
		t.Error(diff)
	}
	f.turn("web", 1, health.Unhealthy)
	if e = f.take(); len(e.Clusters)+len(e.Zones)+len(e.Conditions) != 0 {
		t.Errorf("it is down in another way: %+v", e)
	}
	f.SetObserved("web", 0)
	if e = f.take(); len(e.Clusters) != 0 || f.Counts() != (tally.Counts{attention.OK: 1, attention.Unobserved: 1}) {
		t.Errorf("nobody sees it: %+v, %v", e, f.Counts())
	}
	f.turn("web", 0, health.Healthy)
	if e = f.take(); len(e.Clusters) != 1 || !e.Clusters[0].Over || e.Clusters[0].Down != 1 || len(e.Zones) != 1 || !e.Zones[0].Over {
		t.Errorf("one is back: %+v", e)
	}
}

// TestTheOnlyZoneIsNotTold, nor one with a single endpoint.
func TestTheOnlyZoneIsNotTold(t *testing.T) {
	f := newFleet(t)
	f.set("web", 2, endpoint("web", "a", 1, health.Unhealthy), endpoint("web", "a", 2, health.Unhealthy), endpoint("web", "", 3, health.Unhealthy))
	if e := f.take(); len(e.Zones) != 0 {
		t.Errorf("%+v", e.Zones)
	}
	f.set("api", 1, endpoint("api", "b", 1, health.Unhealthy))
	if e := f.take(); len(e.Zones) != 1 || e.Zones[0].Name != "eu/a" {
		t.Errorf("there is another: %+v", e.Zones)
	}
	f.Remove("api")
	if e := f.take(); len(e.Zones) != 1 || !e.Zones[0].Over {
		t.Errorf("there is none any more: %+v", e.Zones)
	}
}

// TestManyEndpointsAreFewConditions: of a cluster with 100,000 endpoints that all go down, a
// bounded number are conditions of their own, and the others one together; so are those of
// many clusters.
func TestManyEndpointsAreFewConditions(t *testing.T) {
	f := newFleet(t)
	var all []tally.Endpoint
	for i := range 100_000 {
		all = append(all, endpoint("web", "a", i, health.Unhealthy))
	}
	f.set("web", 0, all...)
	if f.take(); len(f.open) != tally.EachCluster+2 {
		t.Errorf("%d conditions", len(f.open))
	}
	for i := range 1000 {
		name := fmt.Sprint("c", i)
		f.set(name, 0, endpoint(name, "b", 1, health.Unhealthy), endpoint(name, "b", 2, health.Healthy))
	}
	f.take()
	single := 0
	for k := range f.open {
		if k.Address != "" {
			single++
		}
	}
	if single != tally.EachFleet || len(f.open) != tally.EachFleet+3+(1000-tally.EachFleet+tally.EachCluster) {
		t.Errorf("%d single endpoints of %d conditions", single, len(f.open))
	}
	for i := range all {
		all[i].Status = health.Healthy
	}
	f.set("web", 0, all...)
	for i := range 1000 {
		f.Remove(fmt.Sprint("c", i))
	}
	if f.take(); len(f.open) != 0 || f.Counts() != (tally.Counts{attention.Unobserved: 1}) {
		t.Errorf("all is well: %q, %v", f.told(), f.Counts())
	}
}

// TestCountsAreThoseOfAFullCount, whatever happens in whatever order.
func TestCountsAreThoseOfAFullCount(t *testing.T) {
	for seed := range uint64(30) {
		f, random := newFleet(t), rand.New(rand.NewPCG(seed, 1))
		states := []health.Status{health.Healthy, health.Unhealthy, health.Timeout, health.Unknown, health.Unhealthy}
		for range 400 {
			name := fmt.Sprint("c", random.IntN(4))
			switch random.IntN(8) {
			case 0:
				var all []tally.Endpoint
				for n := range random.IntN(15) {
					e := endpoint(name, []string{"a", "b", ""}[random.IntN(3)], n, states[random.IntN(5)])
					e.Overridden = random.IntN(5) == 0
					all = append(all, e)
				}
				f.set(name, random.IntN(2)*len(all), all...)
			case 1:
				f.Remove(name)
				delete(f.clusters, name)
			case 2:
				if len(f.clusters[name]) > 0 {
					f.observed[name] = random.IntN(2)
				}
				f.SetObserved(name, f.observed[name])
			case 3:
				f.take()
				f.compare(seed)
			default:
				if all := f.clusters[name]; len(all) > 0 {
					f.turn(name, random.IntN(len(all)), states[random.IntN(5)])
				}
			}
		}
	}
}

// compare compares with what counting everything gives.
func (f *fleet) compare(seed uint64) {
	f.t.Helper()
	var counts tally.Counts
	down, zones, named := map[string]bool{}, map[string][2]int{}, map[string]bool{}
	for name, all := range f.clusters {
		n, up, overridden := 0, 0, 0
		for _, e := range all {
			if e.Status.Down() {
				n++
			}
			if e.Status.Up() {
				up++
			}
			if e.Overridden {
				overridden++
			}
			if in := e.Key.Locality.Zone; in != "" {
				z := zones[in]
				z[0]++
				if e.Status.Down() {
					z[1]++
				}
				zones[in], named[in] = z, true
			}
		}
		if len(all) > 0 {
			counts[attention.StateOf(len(all), n, up, f.observed[name]+overridden)]++
			down[name] = n == len(all)
		}
	}
	if f.Counts() != counts {
		f.t.Fatalf("seed %d: %v, want %v", seed, f.Counts(), counts)
	}
	for name := range maps.Keys(f.clusters) {
		if f.open[notify.Key{Kind: notify.ClusterDown, Cluster: name}] != down[name] {
			f.t.Fatalf("seed %d: %s is down: %t; told %q", seed, name, down[name], f.told())
		}
	}
	zonesDown := 0
	for k := range f.open {
		if k.Kind == notify.ZoneDown {
			zonesDown++
		}
	}
	if f.ZonesDown() != zonesDown {
		f.t.Fatalf("seed %d: %d zones are down, told %d", seed, f.ZonesDown(), zonesDown)
	}
	for in, z := range zones {
		if want := z[0] == z[1] && z[0] >= 2 && len(named) > 1; f.open[notify.Key{Kind: notify.ZoneDown, Zone: "eu/" + in}] != want {
			f.t.Fatalf("seed %d: zone %s is down: %t; told %q", seed, in, want, f.told())
		}
	}
	for k := range f.open {
		if k.Kind == notify.EndpointDown && k.Address != "" && !slices.ContainsFunc(f.clusters[k.Cluster], func(e tally.Endpoint) bool {
			return e.Key.Address == k.Address && e.Status.Down()
		}) {
			f.t.Fatalf("seed %d: %+v is not down", seed, k)
		}
	}
}

// BenchmarkSetEndpoint is one endpoint of 100,000 that goes down and comes back.
func BenchmarkSetEndpoint(b *testing.B) {
	t := tally.New()
	var all []tally.Endpoint
	for i := range 100_000 {
		all = append(all, endpoint("web", "a", i, health.Healthy))
	}
	t.SetCluster("web", 0, slices.Values(all))
	t.Take()
	b.ReportAllocs()
	for b.Loop() {
		for _, to := range []health.Status{health.Unhealthy, health.Healthy} {
			all[7].Status = to
			t.SetEndpoint(&all[7])
			t.Take()
		}
	}
}
