package assign

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// fleet holds the checkers that have a seat, by slot. A slot numbers a checker while
// it has a seat; no decision depends on the number.
type fleet struct {
	members []member
	hashes  []uint64 // hashes of the node ids
	zones   []int32  // none while unknown
	weights []int64  // in thousandths
	active  []bool   // no substitute replaces it
	held    []bool   // it is live, but its stream is gone: it gets no seats
	doubt   []bool   // it is not live because it is doubted
	unseen  []bool   // it is not live because it is blind
	slots   map[string]int32
	free    []int32
	seated  int
	lives   int     // number of live checkers
	holds   int     // number of held checkers
	waiting []int32 // checkers that have not pulled their share yet
}

// member is a checker with a seat.
type member struct {
	id      string
	checker health.Checker // its latest description
	seated  bool           // false if the slot is free, or given up in this Apply
	known   bool           // has joined: its abilities and zone are known
	fresh   bool           // has not pulled its share yet
}

func newFleet() *fleet { return &fleet{slots: map[string]int32{}} }

// len is greater than every slot. size counts the checkers with a seat, alive those
// that are live, and attending those that are present.
func (f *fleet) len() int       { return len(f.members) }
func (f *fleet) size() int      { return f.seated }
func (f *fleet) alive() int     { return f.lives }
func (f *fleet) attending() int { return f.lives - f.holds }

func (f *fleet) hash(s int32) uint64    { return f.hashes[s] }
func (f *fleet) zone(s int32) int32     { return f.zones[s] }
func (f *fleet) weight(s int32) int64   { return f.weights[s] }
func (f *fleet) live(s int32) bool      { return f.active[s] }
func (f *fleet) present(s int32) bool   { return f.active[s] && !f.held[s] }
func (f *fleet) doubted(s int32) bool   { return f.doubt[s] }
func (f *fleet) blind(s int32) bool     { return f.unseen[s] }
func (f *fleet) id(s int32) string      { return f.members[s].id }
func (f *fleet) isSeated(s int32) bool  { return f.members[s].seated }
func (f *fleet) isKnown(s int32) bool   { return f.members[s].known }
func (f *fleet) compare(a, b int32) int { return cmp.Compare(f.hashes[a], f.hashes[b]) }

// checker returns a checker's description, if it is known.
func (f *fleet) checker(s int32) *health.Checker { return &f.members[s].checker }

// find returns the slot of a checker.
func (f *fleet) find(id string) (int32, bool) {
	s, ok := f.slots[id]
	return s, ok
}

// ids lists the checkers that have a seat.
func (f *fleet) ids() []string { return slices.Collect(maps.Keys(f.slots)) }

// open gives a seat to a checker that has none.
func (f *fleet) open(id string) int32 {
	var s int32
	if n := len(f.free); n > 0 {
		s, f.free = f.free[n-1], f.free[:n-1]
	} else {
		s = int32(len(f.members))
		f.members, f.hashes = append(f.members, member{}), append(f.hashes, 0)
		f.zones, f.weights = append(f.zones, none), append(f.weights, 0)
		f.active, f.doubt, f.unseen = append(f.active, false), append(f.doubt, false), append(f.unseen, false)
		f.held = append(f.held, false)
	}
	f.members[s] = member{id: id, seated: true}
	f.hashes[s], f.zones[s], f.weights[s] = rendezvous.Hash(id), none, quota.FullWeight
	f.slots[id] = s
	f.seated++
	return s
}

// close removes a checker's seat. The checker keeps its slot until vacate.
func (f *fleet) close(s int32) {
	f.suspend(s)
	f.doubt[s], f.unseen[s] = false, false
	m := &f.members[s]
	delete(f.slots, m.id)
	m.seated, m.known, m.fresh = false, false, false
	f.weights[s] = quota.FullWeight
	f.seated--
}

// vacate empties a slot. Another checker may get it if reuse is true.
func (f *fleet) vacate(s int32, reuse bool) {
	f.members[s], f.zones[s] = member{}, none
	if reuse {
		f.free = append(f.free, s)
	}
}

// describe stores a checker's description of itself.
func (f *fleet) describe(s int32, c *health.Checker, zone int32) {
	f.members[s].checker, f.members[s].known = *c, true
	f.zones[s], f.weights[s] = zone, quota.CapacityOf(c).Weight
}

// capacity returns how much a checker can take.
func (f *fleet) capacity(s int32) quota.Capacity {
	if !f.members[s].known {
		return quota.Default
	}
	return quota.CapacityOf(&f.members[s].checker)
}

// isAs reports whether a checker's description gives the same plan as the stored one.
func (f *fleet) isAs(s int32, c *health.Checker) bool {
	m, stored := &f.members[s], &f.members[s].checker
	return m.known && stored.Locality == c.Locality && quota.CapacityOf(stored) == quota.CapacityOf(c) &&
		maps.Equal(stored.Abilities, c.Abilities) && maps.Equal(stored.Metadata, c.Metadata)
}

// revive makes a checker present, and returns whether it was not.
func (f *fleet) revive(s int32) bool {
	if f.present(s) {
		return false
	}
	f.suspend(s)
	f.active[s], f.doubt[s], f.unseen[s] = true, false, false
	f.lives++
	return true
}

// hold makes a present checker held.
func (f *fleet) hold(s int32) {
	f.held[s] = true
	f.holds++
}

// suspend makes a checker not live, and returns whether it was.
func (f *fleet) suspend(s int32) bool {
	if !f.active[s] {
		return false
	}
	f.active[s] = false
	f.lives--
	if f.held[s] {
		f.held[s] = false
		f.holds--
	}
	return true
}

// setDoubted records whether a checker that is not live is doubted.
func (f *fleet) setDoubted(s int32, doubted bool) { f.doubt[s] = doubted }

// setBlind marks a checker that is not live as blind, and returns whether it was not.
func (f *fleet) setBlind(s int32) bool {
	blind := f.unseen[s]
	f.unseen[s] = true
	return !blind
}

// refresh lets a checker pull its share.
func (f *fleet) refresh(s int32) {
	if !f.members[s].fresh {
		f.members[s].fresh = true
		f.waiting = append(f.waiting, s)
	}
}

// newcomers removes from the waiting list the present checkers that have not pulled their share
// yet, and returns them by hash.
func (f *fleet) newcomers() []int32 {
	var ready, later []int32
	for _, s := range f.waiting {
		switch {
		case !f.members[s].fresh:
		case f.present(s):
			f.members[s].fresh = false
			ready = append(ready, s)
		default:
			later = append(later, s)
		}
	}
	f.waiting = later
	slices.SortFunc(ready, f.compare)
	return ready
}
