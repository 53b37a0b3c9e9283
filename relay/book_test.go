package relay

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

func added(name string) publish.Update {
	return publish.Update{
		Clusters:    []publish.Cluster{{Name: name, Message: &clusterv3.Cluster{Name: name}, Checked: true}},
		Assignments: []publish.Assignment{{Name: name, Wire: source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name}).Wire()}},
	}
}

// TestTheBookForgetsWhatHasGone: names that come and go leave nothing.
func TestTheBookForgetsWhatHasGone(t *testing.T) {
	b := newBook(true)
	b.changed = func([]subject) {}
	for _, name := range []string{"a", "b", "c"} {
		b.Update(added(name))
		b.Update(publish.Update{RemovedAssignments: []string{name}})
		b.Update(publish.Update{RemovedClusters: []string{name}})
	}
	b.Update(added("d"))
	b.Update(publish.Update{RemovedClusters: []string{"d"}, RemovedAssignments: []string{"d"}})
	if n := len(b.edition) + len(b.sheets) + len(b.readers) + len(b.clusters); n > 0 {
		t.Errorf("%d entries are left: %v", n, b.edition)
	}
}

// TestAnEndpointThatHasMovedKeepsItsHealth while hdsd waits before it follows the move.
func TestAnEndpointThatHasMovedKeepsItsHealth(t *testing.T) {
	b := newBook(true)
	b.changed = func([]subject) {}
	listed := assignmentOf("10.0.0.1", "10.0.0.2", "10.0.0.3")
	b.Update(publish.Update{Assignments: []publish.Assignment{{Name: "web", Wire: source.EncodeAssignment(listed).Wire(), IDs: [][][]health.EndpointID{{{1}, {2}, {}}}}}})
	b.SetHealth([]publish.Health{{ID: 1, Status: health.Unhealthy}, {ID: 2, Status: health.Healthy}})
	for address, want := range map[string]string{
		"10.0.0.1": "UNHEALTHY true", "10.0.0.2": "HEALTHY true", "10.0.0.3": "UNKNOWN false", "10.0.0.4": "UNKNOWN false",
	} {
		moved := assignmentOf(address).GetEndpoints()[0]
		for _, zone := range []string{"", "elsewhere"} {
			moved.Locality = &corev3.Locality{Zone: zone}
			status, decided := b.healthOf([]string{"web"}, nil)(keyOf(moved, moved.GetLbEndpoints()[0]), health.Unknown)
			if got := fmt.Sprint(status, decided); got != want {
				t.Errorf("%s in zone %q: %s, want %s", address, zone, got, want)
			}
		}
	}
}

// TestEditionsAreNotUsedTwice: what was made of a resource while hdsd knew it, or before,
// is never taken for what it is while hdsd knows it again.
func TestEditionsAreNotUsedTwice(t *testing.T) {
	b := newBook(true)
	b.changed = func([]subject) {}
	resource := subject{clusters, "a"}
	seen := map[uint64]bool{b.current(resource): true}
	fresh := func(moment string) {
		t.Helper()
		if edition := b.current(resource); seen[edition] {
			t.Errorf("%s: edition %d again", moment, edition)
		} else {
			seen[edition] = true
		}
	}
	for range 3 {
		b.Update(added("a"))
		fresh("it comes")
		b.Update(publish.Update{RemovedAssignments: []string{"a"}})
		fresh("its endpoints go, and it stays")
		b.Update(added("a"))
		fresh("its endpoints come again")
		b.Update(publish.Update{RemovedClusters: []string{"a"}})
		fresh("it goes, and its endpoints stay")
		b.Update(publish.Update{RemovedAssignments: []string{"a"}})
	}
}
