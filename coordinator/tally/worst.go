package tally

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/coordinator/attention"
	"hdsd/health"
)

// Row is how a cluster is, by zone.
type Row struct {
	Cluster         string
	State           attention.State
	Endpoints, Down int
	Zones           map[health.Locality]Cell // without sub-zones
}

// Cell counts the endpoints of a cluster in a zone.
type Cell struct{ Endpoints, Down int }

// badness orders states.
var badness = map[attention.State]int{
	attention.AllDown: 0, attention.HalfDown: 1, attention.SomeDown: 2, attention.Unobserved: 3, attention.OK: 4,
}

// Worst returns up to limit clusters that are worst off, of those that the caller may see,
// and how many others there are. The cost is a look at each cluster, and at the zones and
// the endpoints down of those that are returned.
func (t *Tally) Worst(limit int, may func(cluster string) bool) (worst []Row, others int) {
	sort := func() {
		slices.SortFunc(worst, worse)
		worst = worst[:min(limit, len(worst))]
	}
	all, full := 0, false
	for name, k := range t.clusters {
		if k.endpoints == 0 || !may(name) {
			continue
		}
		all++
		row := Row{Cluster: name, State: attention.StateOf(k.endpoints, k.down, k.observed+k.overridden), Endpoints: k.endpoints, Down: k.down}
		if full && (limit == 0 || worse(worst[limit-1], row) < 0) {
			continue
		}
		if worst = append(worst, row); len(worst) > 2*limit {
			sort()
			full = true
		}
	}
	sort()
	for i := range worst {
		worst[i].Zones = t.clusters[worst[i].Cluster].cells()
	}
	return worst, all - len(worst)
}

// worse orders rows.
func worse(a, b Row) int {
	return cmp.Or(
		cmp.Compare(badness[a.State], badness[b.State]),
		cmp.Compare(b.Down*a.Endpoints, a.Down*b.Endpoints), // by share
		cmp.Compare(b.Down, a.Down),
		cmp.Compare(a.Cluster, b.Cluster),
	)
}

func (k *cluster) cells() map[health.Locality]Cell {
	cells := make(map[health.Locality]Cell, len(k.places))
	for in, n := range k.places {
		cells[in] = Cell{Endpoints: n}
	}
	for m := range maps.Values(k.marks) {
		if m.down {
			c := cells[m.zone]
			c.Down++
			cells[m.zone] = c
		}
	}
	return cells
}
