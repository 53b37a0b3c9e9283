package query

import (
	"slices"
	"strings"
	"time"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/coordinator/attention"
	"hdsd/health"
)

// Snapshot is the present state, summed up by cluster, as of the core's latest pass. It is
// immutable, so any goroutine may read it. Each cluster is as of one time, but not all of the
// same.
type Snapshot struct {
	rows     []*row    // all clusters, by name
	checkers []Checker // by id
	lagging  map[string]bool
	paths    []api.Path
	crew     Crew
	frozen   bool
}

// find returns the row of a cluster, or nil.
func (s *Snapshot) find(name string) *row {
	if index, ok := slices.BinarySearchFunc(s.rows, name, (*row).compare); ok {
		return s.rows[index]
	}
	return nil
}

// versions returns the rows of clusters with a name, as hdsd's own or the outside one.
func (s *Snapshot) versions(name string) (found []*row) {
	if r := s.find(name); r != nil {
		found = append(found, r)
	}
	for _, r := range s.behind(name + "#") {
		if !strings.HasPrefix(r.name(), name+"#") {
			break
		}
		if r.cluster.Source.Outside() == name {
			found = append(found, r)
		}
	}
	return found
}

// behind returns the rows behind a name.
func (s *Snapshot) behind(name string) []*row {
	index, ok := slices.BinarySearchFunc(s.rows, name, (*row).compare)
	if ok {
		index++
	}
	return s.rows[index:]
}

// row is a snapshot's record of a cluster. It is small because it stays.
type row struct {
	cluster    *catalog.Cluster
	places     []place // by locality
	voters     [4]int  // endpoints by believed votes, 3 or more in the last
	observed   int     // endpoints with a believed vote or an override
	overridden int
	held       int
	heldSince  time.Time // of the first; zero if none is held

	blocked  string            // reason why no checker gets the cluster
	stranded []api.Quarantined // endpoints that no checker can check, or all if there is no address
	panics   attention.Named   // why Envoys are in panic for it, and since when
	lacks    attention.Named   // why it is not checked in full; it may have a time and no reason yet
}

// place counts the endpoints of a cluster in a locality.
type place struct {
	locality  *health.Locality
	counts    [health.Degraded + 1]int // by status
	downSince time.Time                // when the last one that is down went down
	lastUp    time.Time                // when the last of the others was up
}

// newRow looks at all endpoints of a cluster.
func newRow(state State, k *catalog.Cluster) *row {
	r := &row{cluster: k, blocked: state.BlockedReason(k)}
	r.lacks.Name, r.panics.Name = k.Source.Name, k.Source.Name
	r.lacks.Version, r.panics.Version = k.Version(), k.Version()
	r.panics.Reason, r.panics.Since = state.Panic(k)
	r.lacks.Reason, r.lacks.Since = state.NotChecked(k)
	for i := range k.Endpoints {
		e := &k.Endpoints[i]
		condition := state.Condition(e)
		r.placeOf(e.Locality()).add(&condition)
		r.voters[condition.Voters]++
		if condition.Overridden {
			r.overridden++
		}
		if condition.Voters > 0 || condition.Overridden {
			r.observed++
		}
		if !condition.HeldSince.IsZero() {
			if r.held++; r.held == 1 || condition.HeldSince.Before(r.heldSince) {
				r.heldSince = condition.HeldSince
			}
		}
		if condition.Stranded {
			r.stranded = append(r.stranded, api.Quarantined{Address: e.Address(), Reason: state.StrandedReason(k, e)})
		}
	}
	otherReason := func(q api.Quarantined) bool { return q.Reason != r.stranded[0].Reason }
	if len(r.stranded) > 0 && len(r.stranded) == len(k.Endpoints) && !slices.ContainsFunc(r.stranded, otherReason) {
		r.stranded = []api.Quarantined{{Reason: r.stranded[0].Reason}}
	}
	return r
}

func (r *row) name() string { return r.cluster.Source.Name }

func (r *row) compare(name string) int { return strings.Compare(r.name(), name) }

// placeOf returns the place of the next endpoint. They are sorted by locality.
func (r *row) placeOf(locality *health.Locality) *place {
	if n := len(r.places); n == 0 || *r.places[n-1].locality != *locality {
		r.places = append(r.places, place{locality: locality})
	}
	return &r.places[len(r.places)-1]
}

// isOpen reports whether the row may change without a change of its endpoints: obstacles to
// checking a cluster depend on the time and on all checkers.
func (r *row) isOpen() bool {
	return r.blocked != "" || len(r.stranded) > 0 || r.lacks.Reason != "" || !r.lacks.Since.IsZero()
}

func (p *place) add(c *Condition) {
	p.counts[c.Status]++
	if c.Status.Down() && c.Since.After(p.downSince) {
		p.downSince = c.Since
	}
	if !c.Status.Up() && c.Since.After(p.lastUp) {
		p.lastUp = c.Since
	}
}

// addTo adds a place to the counts of a group.
func (p *place) addTo(g *attention.Group) {
	for status, n := range p.counts {
		g.Endpoints += n
		switch s := health.Status(status); {
		case s.Down():
			g.Down += n
		case s.Up():
			g.Up += n
		case s == health.Unknown:
			g.Unknown += n
		}
	}
	if p.lastUp.After(g.LastUp) {
		g.LastUp = p.lastUp
	}
	if p.downSince.After(g.Since) {
		g.Since = p.downSince
	}
}
