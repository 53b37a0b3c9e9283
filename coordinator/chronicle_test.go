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

// diaryOf is a history that keeps events in memory.
type diaryOf struct {
	events  []store.Event
	unknown string // name of a cluster
}

// AppendEvents implements chronicler.
func (k *diaryOf) AppendEvents(all []store.Event) { k.events = append(k.events, all...) }

// KnownCluster implements chronicler.
func (k *diaryOf) KnownCluster(name string) bool { return name != k.unknown }

// TestTheChronicleHasWhoIsBelieved: doubts of checkers and paths, blindness, and their ends.
func TestTheChronicleHasWhoIsBelieved(t *testing.T) {
	var k diaryOf
	chronicle{&k}.judged(time.Unix(1, 0), &aggregate.Effects{
		Doubts: []aggregate.DoubtChange{
			{Checker: "c1", Doubted: true, Reason: "it disagrees"}, {Checker: "c1"}, {From: "eu/a", To: "eu/b", Doubted: true, Reason: "all of them"}, {From: "eu/a", To: "eu/b"},
		},
		Blindness: []aggregate.BlindnessChange{{Checker: "c2", Blind: true, Reason: "it missed two"}, {Checker: "c2", Reason: "it sees"}},
	})
	chronicle{&k}.follow(time.Unix(2, 0), []fleet.Event{
		{Kind: fleet.Lost, Checkers: []string{"c3"}, Locality: zoneOf("eu/b")}, {Kind: fleet.NewcomerLost, Checkers: []string{"c4"}, Locality: zoneOf("eu/b")}, {Kind: fleet.NoCheckers}, {Kind: fleet.NoCheckersOver, Lasted: 1500 * time.Millisecond},
	})
	var got []string
	for _, e := range k.events {
		got = append(got, fmt.Sprint(e.Time.Unix(), " ", e.Kind, " ", e.Checker, " ", e.Text))
		if to := (health.Locality{Region: "eu", Zone: "b"}); (strings.HasPrefix(e.Kind.String(), "PATH_") || e.Kind.String() == "CHECKER_LOST") && e.Locality != to {
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

// TestTheChronicleIsBounded: of a change of many clusters it has some, and how many there
// were. Only who may see all clusters may see that.
func TestTheChronicleIsBounded(t *testing.T) {
	var all []*catalog.Cluster
	for n := range 3 * chronicled {
		all = append(all, catalog.Prepare(&source.Cluster{Name: fmt.Sprint("web-", n), Source: "mesh"}, catalog.NewRules(&configv1.Config{})))
	}
	var k diaryOf
	chronicle{&k}.changed(time.Unix(1, 0), &machine.ClustersChanged{Changed: all, Conclusive: true})
	if n := len(k.events); n != chronicled+1 {
		t.Fatalf("%d events", n)
	}
	last := k.events[chronicled]
	if !last.Whole || last.Cluster != "" || last.Text != "200 more such changes at the same time" {
		t.Errorf("%+v", last)
	}
	// While hdsd starts, only what was never known is new.
	k.events, k.unknown = nil, "web-7"
	chronicle{&k}.changed(time.Unix(1, 0), &machine.ClustersChanged{Changed: all})
	if len(k.events) != 1 || k.events[0].Cluster != "web-7" {
		t.Errorf("%+v", k.events)
	}
}

// BenchmarkEndpointsCompared is what a change of one endpoint of a large cluster costs the core.
func BenchmarkEndpointsCompared(b *testing.B) {
	const count = 100_000
	addresses := make([]string, count+1)
	for n := range addresses {
		addresses[n] = fmt.Sprintf("10.%d.%d.%d:80", n>>16, n>>8&255, n&255)
	}
	rules := catalog.NewRules(newLab(b).rules)
	k, next := catalog.Prepare(web("web", addresses[:count]...), rules), catalog.Prepare(web("web", addresses[1:]...), rules)
	for b.Loop() {
		if all := endpointEvents(time.Time{}, k, next); len(all) != 2 {
			b.Fatal(all)
		}
	}
}
