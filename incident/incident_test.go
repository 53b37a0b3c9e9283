package incident

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/health"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// day is a simulated day: it records transitions.
type day struct {
	*Log
	place uint64
}

func newDay() *day { return &day{Log: NewLog()} }

func at(cluster string, n int, zone string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Address: fmt.Sprintf("10.0.0.%d:80", n), Locality: health.Locality{Region: "eu", Zone: zone}}
}

func (d *day) becomes(second float64, e health.Endpoint, to health.Status, reason string) {
	d.place++
	d.Add(d.place, &health.Transition{Time: noon.Add(time.Duration(second * float64(time.Second))), Endpoint: e, To: to, Reason: reason})
}

func (d *day) down(second float64, endpoints ...health.Endpoint) {
	for _, e := range endpoints {
		d.becomes(second, e, health.Unhealthy, "2 of 3 checkers say UNHEALTHY")
	}
}

func (d *day) up(second float64, endpoints ...health.Endpoint) {
	for _, e := range endpoints {
		d.becomes(second, e, health.Healthy, "")
	}
}

func everything(string) bool { return true }

func (d *day) listed(t *testing.T, want ...string) []Incident {
	t.Helper()
	found, more := d.List(Query{Visible: everything})
	var got []string
	for _, i := range found {
		got = append(got, fmt.Sprint(i.ID, " ", []string{"ENDPOINT", "CLUSTER", "ZONE", "OPERATOR", "SEVERAL", "NETWORK", "CHECKERS"}[i.Cause], ": ", i.Summary()))
	}
	if more || !slices.Equal(got, want) {
		t.Errorf("there are, more %t:\n%q\nwant\n%q", more, got, want)
	}
	return found
}

// TestDays holds the rule that groups, on simulated days.
func TestDays(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(d *day)
		want    []string
	}{
		"one endpoint": {func(d *day) {
			d.down(0, at("web", 1, "a"))
			d.up(12, at("web", 1, "a"))
		}, []string{"1 ENDPOINT: 10.0.0.1:80 of web in zone a went down; over after 12s"}},
		"a cluster, one endpoint after the other": {func(d *day) {
			d.down(0, at("web", 1, "a"))
			d.down(50, at("web", 2, "b"))
			d.down(100, at("web", 3, ""))
			d.up(130, at("web", 1, "a"), at("web", 2, "b"))
		}, []string{"1 CLUSTER: 3 endpoints of web in 2 zones went down, 1 still is, since 2026-11-23T12:00:00Z"}},
		"a zone": {func(d *day) {
			d.down(0, at("web", 1, "a"), at("pay", 2, "a"))
			d.down(30, at("log", 3, "a"))
			d.up(40, at("web", 1, "a"), at("pay", 2, "a"), at("log", 3, "a"))
		}, []string{"1 ZONE: 3 endpoints of 3 clusters in zone a went down; over after 40s"}},
		"a host": {func(d *day) {
			d.down(0, at("web", 1, "a"), at("pay", 1, "a"))
		}, []string{"1 ENDPOINT: 2 endpoints of 2 clusters in zone a went down, 2 still are, since 2026-11-23T12:00:00Z"}},
		"one that flaps": {func(d *day) {
			for n := range 5 {
				d.down(float64(30*n), at("web", 1, "a"))
				d.up(float64(30*n+10), at("web", 1, "a"))
			}
		}, []string{"1 ENDPOINT: 10.0.0.1:80 of web in zone a went down; over after 2m10s"}},
		"far apart": {func(d *day) {
			d.down(0, at("web", 1, "a"))
			d.down(61, at("web", 2, "a"))
			d.up(70, at("web", 2, "a"))
		}, []string{
			"2 ENDPOINT: 10.0.0.2:80 of web in zone a went down; over after 9s",
			"1 ENDPOINT: 10.0.0.1:80 of web in zone a went down, 1 still is, since 2026-11-23T12:00:00Z",
		}},
		"another zone at the same time": {func(d *day) {
			d.down(0, at("web", 1, "a"))
			d.down(1, at("pay", 2, "b"))
		}, []string{
			"2 ENDPOINT: 10.0.0.2:80 of pay in zone b went down, 1 still is, since 2026-11-23T12:00:01Z",
			"1 ENDPOINT: 10.0.0.1:80 of web in zone a went down, 1 still is, since 2026-11-23T12:00:00Z",
		}},
		"a zone with some failure every 50 s is no endless incident": {func(d *day) {
			for n := range 4 {
				e := at(fmt.Sprint("c", n), n+1, "a")
				d.down(float64(50*n), e)
				d.up(float64(50*n+5), e)
			}
		}, []string{
			"5 ZONE: 2 endpoints of 2 clusters in zone a went down; over after 55s",
			"1 ZONE: 2 endpoints of 2 clusters in zone a went down; over after 55s",
		}},
		"an operator": {func(d *day) {
			d.becomes(0, at("web", 1, "a"), health.Unhealthy, "forced unhealthy by ann: repair")
			d.becomes(3, at("web", 1, "a"), health.Draining, "drained by ann: repair")
		}, []string{"1 OPERATOR: an operator's override: 10.0.0.1:80 of web in zone a went down; over after 3s"}},
		"a timeout after a failure, and what was never known": {func(d *day) {
			d.up(0, at("web", 1, "a"))
			d.down(1, at("web", 1, "a"))
			d.becomes(2, at("web", 1, "a"), health.Timeout, "")
			d.becomes(3, at("web", 1, "a"), health.Unknown, "")
			d.becomes(4, at("web", 1, "a"), health.Unknown, "")
		}, []string{"2 ENDPOINT: 10.0.0.1:80 of web in zone a went down; over after 2s"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay()
			test.happens(d)
			d.listed(t, test.want...)
		})
	}
}

// TestAMoveIsNoChange: an endpoint of which only the locality changes neither ends an incident nor
// begins one, and counts once.
func TestAMoveIsNoChange(t *testing.T) {
	d := newDay()
	here, there, healthy := at("web", 1, "a"), at("web", 1, "b"), at("web", 2, "a")
	move := func(second float64, from, to health.Endpoint, status health.Status) {
		when := noon.Add(time.Duration(second * float64(time.Second)))
		d.place += 2
		d.Add(d.place-1, &health.Transition{Time: when, Endpoint: from, From: status, Moved: &to.Locality})
		d.Add(d.place, &health.Transition{Time: when, Endpoint: to, To: status, Moved: &from.Locality})
	}
	d.down(0, here)
	d.up(0, healthy)
	move(10, here, there, health.Unhealthy)
	move(10, healthy, at("web", 2, "b"), health.Healthy)
	d.listed(t, "1 ENDPOINT: 10.0.0.1:80 of web in zone a went down, 1 still is, since 2026-11-23T12:00:00Z")
	d.up(20, there)
	d.down(30, there)
	d.up(40, there)
	if found := d.listed(t, "1 ENDPOINT: 10.0.0.1:80 of web in 2 zones went down; over after 40s"); found[0].Endpoints != 1 {
		t.Errorf("%d endpoints", found[0].Endpoints)
	}
	move(5000, here, there, health.Unhealthy) // it went down before the history begins
	d.listed(t, "1 ENDPOINT: 10.0.0.1:80 of web in 2 zones went down; over after 40s")
}

func TestQueries(t *testing.T) {
	d := newDay()
	for n := range 10 {
		d.down(float64(1000*n), at(fmt.Sprint("c", n%2), n, "a"), at("both", n, "a"))
		if n < 9 {
			d.up(float64(1000*n+100), at(fmt.Sprint("c", n%2), n, "a"), at("both", n, "a"))
		}
	}
	yes, no := true, false
	count := func(q Query) int {
		if q.Visible == nil {
			q.Visible = everything
		}
		found, _ := d.List(q)
		return len(found)
	}
	for _, test := range []struct {
		q    Query
		want int
	}{
		{Query{}, 10}, {Query{Cluster: "c0"}, 5}, {Query{Cluster: "nowhere"}, 0}, {Query{Open: &yes}, 1}, {Query{Open: &no}, 9},
		{Query{Start: noon.Add(1050 * time.Second), End: noon.Add(2000 * time.Second)}, 1}, {Query{Start: noon.Add(1100 * time.Second), End: noon.Add(1101 * time.Second)}, 1},
		{Query{Start: noon.Add(20_000 * time.Second)}, 1}, {Query{End: noon}, 0}, {Query{ID: "1"}, 1},
		{Query{Visible: func(cluster string) bool { return cluster == "c1" }}, 5},
	} {
		if got := count(test.q); got != test.want {
			t.Errorf("%+v finds %d, want %d", test.q, got, test.want)
		}
	}
	if i, _ := d.List(Query{Visible: func(cluster string) bool { return cluster == "c1" }, Limit: 1}); !slices.Equal(i[0].Clusters, []string{"c1"}) || i[0].Endpoints != 1 || i[0].First.Endpoint.Cluster != "c1" {
		t.Errorf("who may see c1 only sees %+v", i[0])
	}
	var paged []Incident
	q := Query{Visible: everything, Limit: 3}
	for more := true; more; {
		var page []Incident
		page, more = d.List(q)
		paged = append(paged, page...)
		q.After = &Position{page[len(page)-1].Start, page[len(page)-1].ID}
	}
	if all, _ := d.List(Query{Visible: everything}); len(paged) != 10 || paged[9].ID != all[9].ID || paged[0].ID != all[0].ID {
		t.Errorf("%d on pages", len(paged))
	}
}

// TestOthersClustersStayUnseen: who may see one cluster does not learn that another one is down,
// nor when, nor why.
func TestOthersClustersStayUnseen(t *testing.T) {
	d := newDay()
	d.becomes(0, at("secret", 1, "a"), health.Unhealthy, "forced unhealthy by ann: repair")
	d.down(10, at("web", 2, "a"))
	d.up(20, at("web", 2, "a"))
	mine := func(cluster string) bool { return cluster == "web" }
	found, _ := d.List(Query{Visible: mine})
	if len(found) != 1 || found[0].Cause != Endpoint || !found[0].Start.Equal(noon.Add(10*time.Second)) || !found[0].End.Equal(noon.Add(20*time.Second)) || found[0].Down != 0 {
		t.Errorf("seen: %+v", found)
	}
	open := true
	if found, _ := d.List(Query{Visible: mine, Open: &open}); len(found) != 0 {
		t.Errorf("seen as open: %+v", found)
	}
	if found, _ := d.List(Query{Visible: mine, Cluster: "secret"}); len(found) != 0 && slices.Contains(found[0].Clusters, "secret") {
		t.Errorf("seen by name: %+v", found)
	}
}

// TestGone: what a source took away while it was down is over.
func TestGone(t *testing.T) {
	d := newDay()
	d.down(0, at("web", 1, "a"), at("web", 2, "a"))
	if stale := d.Stale(noon); len(stale) != 0 {
		t.Errorf("%v are stale at once", stale)
	}
	stale := d.Stale(noon.Add(time.Minute))
	d.Remove(stale, noon.Add(time.Minute))
	d.Remove(stale, noon.Add(time.Hour))
	d.up(4000, at("web", 1, "a"))
	if found := d.listed(t, "1 CLUSTER: 2 endpoints of web in zone a went down; over after 1m0s"); len(stale) != 2 || found[0].Down != 0 {
		t.Errorf("%d stale, %+v", len(stale), found)
	}
}

// TestTheLogIsBounded, keeps what goes on, and is the same whatever is read in one go.
func TestTheLogIsBounded(t *testing.T) {
	d, random := newDay(), rand.New(rand.NewPCG(1, 2))
	d.down(0, at("first", 1, ""))
	for n := range 5 * kept {
		e := at(fmt.Sprint("c", random.IntN(1000)), n%200, "")
		second := float64(100 * (n + 1))
		d.down(second, e)
		d.up(second+1, e)
	}
	found, _ := d.List(Query{Visible: everything})
	if len(found) < kept || len(found) > 2*kept || len(d.byCluster) > 1001 {
		t.Errorf("%d incidents, %d clusters", len(found), len(d.byCluster))
	}
	if last := found[len(found)-1]; last.ID != "1" || last.Down != 1 {
		t.Errorf("the one that goes on has become %+v", last)
	}
}

// TestVersionsAreOneCluster: an incident is of the clusters that users know, whatever versions they have.
func TestVersionsAreOneCluster(t *testing.T) {
	version := func(own string) string {
		_, version := health.SplitVersion(own)
		return version
	}
	const first, other = "web", "web#1111111111111111"
	for _, c := range []struct {
		clusters []string
		want     string
		cause    Cause
	}{
		{[]string{first, other}, "4 endpoints of web in zone a went down; over after 10s", Cluster},
		{[]string{other}, "2 endpoints of web (version 1111111111111111) in zone a went down; over after 10s", Cluster},
		{[]string{other, "db"}, "4 endpoints of 2 clusters in zone a went down; over after 10s", Zone},
	} {
		d := newDay()
		for _, name := range c.clusters {
			d.down(0, at(name, 1, "a"), at(name, 2, "a"))
		}
		for _, name := range c.clusters {
			d.up(10, at(name, 1, "a"), at(name, 2, "a"))
		}
		found, _ := d.List(Query{Visible: everything, Version: version})
		if len(found) != 1 || found[0].Summary() != c.want || found[0].Cause != c.cause || slices.Contains(found[0].Clusters, other) {
			t.Errorf("of %v: %+v", c.clusters, found)
		}
	}
}
