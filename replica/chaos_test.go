package replica

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/replica/clusters"
)

// change gives a replica other clusters: new versions, fewer clusters, clusters of other replicas. The paths are those
// of their checks.
func (l *lab) change(id string, paths ...string) {
	var next []*catalog.Cluster
	for _, k := range l.variants[id] {
		switch name := k.Source.Name; l.IntN(4) {
		case 0:
			first := map[string]int{"pay": 1, "shop": 6, "web": 12, "new": 40, "more": 30}[name]
			next = append(next, prepare(web(name, paths[l.IntN(len(paths))], first, 2+l.IntN(4)))...)
		case 1:
			if len(l.variants[id]) == 1 {
				next = append(next, k)
			}
		default:
			next = append(next, k)
		}
	}
	if l.IntN(2) == 0 {
		other := l.variants[fmt.Sprint("r", 1+l.IntN(3))]
		for _, k := range other {
			if !slices.ContainsFunc(next, func(n *catalog.Cluster) bool { return n.Source.Name == k.Source.Name }) {
				next = append(next, prepare(k.Source)...)
			}
		}
	}
	l.variants[id] = next
	if p := l.processes[id]; p != nil {
		l.schedule(l.between(0, 2*time.Second), p.deliver)
	}
}

// TestChangingReplicasSurviveFaults covers random faults of everything while the clusters of each replica change, and
// sources answer late. Half of the fleets have changes of the checks, too, which come so often that checkers have no time
// for a probe: their verdicts may be wrong until they come less often.
func TestChangingReplicasSurviveFaults(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newUnion(t, seed)
			l.slow = seed%3 > 0
			paths := []string{"/", "/b"}
			if seed%2 == 0 {
				paths = paths[:1]
				l.variants["r3"][1] = prepare(web("web", "/", 12, 2))[0]
			}
			for range 40 {
				if l.IntN(3) > 0 {
					l.change(fmt.Sprint("r", 1+l.IntN(3)), paths...)
				} else {
					l.fault()
				}
				l.pass(l.between(50*time.Millisecond, 4*time.Second))
			}
			l.repair()
			l.age()
			l.pass(90 * reportInterval)
			l.settledOwn("at the end")
			if len(paths) == 1 {
				l.explained()
			}
			l.checkOrders()
			l.checkHistory()
			l.checkLeft()
		})
	}
}

// age lets all replicas have run for long, so that they know which others are lost.
func (l *lab) age() {
	for _, p := range l.running() {
		p.replica.view.since = l.now.Add(-clusters.Patience)
	}
}

// checkLeft checks that the health in the log is that of the endpoints that some replica has.
func (l *lab) checkLeft() {
	l.Helper()
	present := map[string]bool{}
	for _, p := range l.running() {
		for name, k := range p.clusters {
			for i := range k.Hashes {
				present[name+" "+k.Checked.Key(i).Address] = true
			}
		}
	}
	for _, p := range l.running() {
		for _, hash := range slices.Sorted(maps.Keys(p.replica.Follower.State.Current)) {
			held := p.replica.Follower.State.Current[hash]
			if key := held.Endpoint.Cluster + " " + held.Endpoint.Address; !present[key] {
				l.Errorf("%s has %v of %s, which is in no source", p.id, held.Status, key)
			}
		}
	}
}
