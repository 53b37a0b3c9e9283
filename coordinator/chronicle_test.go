//go:build !race || soak

package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/fleet"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/store"
)

// memoryEvents stores events in memory.
type memoryEvents struct {
	events  []store.Event
	unknown string // the one cluster that the history does not know
}

// AppendEvents implements eventStore.
func (m *memoryEvents) AppendEvents(added []store.Event) { m.events = append(m.events, added...) }

// KnownCluster implements eventStore.
func (m *memoryEvents) KnownCluster(name string) bool { return name != m.unknown }

// TestChronicleAddsFindings covers doubts of checkers and of paths, blind checkers, and lost checkers.
func TestChronicleAddsFindings(t *testing.T) {
	var history memoryEvents
	chronicle{&history}.addFindings(time.Unix(1, 0), &aggregate.Effects{
		Doubts: []aggregate.DoubtChange{
			{Checker: "c1", Doubted: true, Reason: "it disagrees"}, {Checker: "c1"}, {From: "eu/a", To: "eu/b", Doubted: true, Reason: "all of them"}, {From: "eu/a", To: "eu/b"},
		},
		Blindness: []aggregate.BlindnessChange{{Checker: "c2", Blind: true, Reason: "it missed two"}, {Checker: "c2", Reason: "it sees"}},
	})
	chronicle{&history}.addFleetEvents(time.Unix(2, 0), []fleet.Event{
		{Kind: fleet.Lost, Checkers: []string{"c3"}, Locality: parseZone("eu/b")}, {Kind: fleet.NewcomerLost, Checkers: []string{"c4"}, Locality: parseZone("eu/b")}, {Kind: fleet.NoCheckers}, {Kind: fleet.NoCheckersOver, Lasted: 1500 * time.Millisecond},
	})
	var got []string
	for _, e := range history.events {
		got = append(got, fmt.Sprint(e.Time.Unix(), " ", e.Kind, " ", e.Checker, " ", e.Text))
		if zone := (health.Locality{Region: "eu", Zone: "b"}); (strings.HasPrefix(e.Kind.String(), "PATH_") || e.Kind.String() == "CHECKER_LOST") && e.Locality != zone {
			t.Errorf("%s: locality %v", e.Kind, e.Locality)
		}
	}
	want := []string{
		"1 CHECKER_DOUBTED c1 it disagrees", "1 CHECKER_BELIEVED c1 no longer doubted",
		"1 PATH_DOUBTED  from eu/a to eu/b: all of them", "1 PATH_BELIEVED  from eu/a to eu/b: no longer doubted",
		"1 CHECKER_BLIND c2 it missed two", "1 CHECKER_SEES c2 it sees",
		"2 CHECKER_LOST c3 disconnected; its seats are kept for the grace period", "2 CHECKER_LOST c4 disconnected; it was on probation and had no seats",
		"2 NO_CHECKERS  no checker is connected: nothing is checked, and health stays what it was last", "2 NO_CHECKERS_OVER  a checker is connected again, after 1.5s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestChronicleLimitsClusterEvents covers a change of many clusters: the last event counts the rest, and is
// for callers that may see all clusters.
func TestChronicleLimitsClusterEvents(t *testing.T) {
	var clusters []*catalog.Cluster
	for n := range 3 * maxClusterEvents {
		clusters = append(clusters, catalog.Prepare(&source.Cluster{Name: fmt.Sprint("web-", n), Source: "mesh"}, catalog.NewRules(&configv1.Config{})))
	}
	var history memoryEvents
	chronicle{&history}.addClusterEvents(time.Unix(1, 0), &machine.ClustersChanged{Changed: clusters, Conclusive: true})
	if n := len(history.events); n != maxClusterEvents+1 {
		t.Fatalf("%d events", n)
	}
	last := history.events[maxClusterEvents]
	if !last.Whole || last.Cluster != "" || last.Text != "200 more such changes at the same time" {
		t.Errorf("%+v", last)
	}
	// During the start, a cluster that the history knows is not new.
	history.events, history.unknown = nil, "web-7"
	chronicle{&history}.addClusterEvents(time.Unix(1, 0), &machine.ClustersChanged{Changed: clusters})
	if len(history.events) != 1 || history.events[0].Cluster != "web-7" {
		t.Errorf("%+v", history.events)
	}
}

// BenchmarkEndpointEvents measures a change of one endpoint of a large cluster.
func BenchmarkEndpointEvents(b *testing.B) {
	const count = 100_000
	addresses := make([]string, count+1)
	for n := range addresses {
		addresses[n] = fmt.Sprintf("10.%d.%d.%d:80", n>>16, n>>8&255, n&255)
	}
	rules := catalog.NewRules(newLab(b).rules)
	k, next := catalog.Prepare(web("web", addresses[:count]...), rules), catalog.Prepare(web("web", addresses[1:]...), rules)
	for b.Loop() {
		if events := endpointEvents(time.Time{}, k, next); len(events) != 2 {
			b.Fatal(events)
		}
	}
}
