package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// leaf is the endpoints of one kind whose hashes begin alike.
type leaf struct {
	trie.Node
	hash  uint64 // the left one of a split keeps its parent's
	first int32  // of its units, one for each zone; the others follow by unit.next

	ranking *ranking
}

// unit is the endpoints of a leaf that have the same own zone, and who checks
// them. Units of one leaf rank zones and checkers alike, so that the checkers
// of a cluster are few.
type unit struct {
	trie.Node
	seats   []int32  // slots, sorted
	ranking *ranking // its leaf's
	hash    uint64   // its leaf's
	kind    int32
	zone    int32               // none where they have none
	touched uint32              // the step in which it became dirty
	visited uint32              // the step in which it was last listed in visits
	next    int32               // in the leaf, by hash of zone; none after the last
	born    bool                // all its endpoints are new in this Apply
	mixed   bool                // some of them are told of one by one in this Apply
	wanted  bool                // listed in Planner.wanted
	members []health.EndpointID // by key
	extra   []int32             // substitutes, sorted
	sum     uint64              // of its endpoints' hashes, for the digest
	before  span                // seats and substitutes at the start of the Apply, if it is dirty
}

// span is a part of what was kept.
type span struct{ from, to int32 }

// all gives seats and substitutes, sorted.
func (u *unit) all() []int32 {
	both := append(append(make([]int32, 0, len(u.seats)+len(u.extra)), u.seats...), u.extra...)
	if len(u.extra) > 0 {
		slices.Sort(both)
	}
	return both
}

// now gives both; they change with the unit.
func (u *unit) now() []int32 {
	if len(u.extra) == 0 {
		return u.seats
	}
	return u.all()
}

func (u *unit) has(s int32) bool { return slices.Contains(u.seats, s) || slices.Contains(u.extra, s) }

func (u *unit) size() int32 { return int32(len(u.members)) }

// insert and without keep a list of slots sorted.
func insert(list []int32, s int32) []int32 {
	list = append(list, s)
	for n := len(list) - 1; n > 0 && list[n-1] > s; n-- {
		list[n], list[n-1] = list[n-1], s
	}
	return list
}

func without(list []int32, s int32) []int32 {
	if at := slices.Index(list, s); at >= 0 {
		return slices.Delete(list, at, at+1)
	}
	return list
}

// seats makes room for a few seats, together with those of other units.
func (p *Planner) seats(n int) []int32 {
	const many = 1 << 12
	if cap(p.chairs)-len(p.chairs) < n {
		p.chairs = make([]int32, 0, many)
	}
	at := len(p.chairs)
	p.chairs = p.chairs[:at+n]
	return p.chairs[at : at : at+n]
}

// keep copies what a unit has until the end of the Apply.
func (p *Planner) keep(u *unit) span {
	at := len(p.scratch.kept)
	p.scratch.kept = append(append(p.scratch.kept, u.seats...), u.extra...)
	if len(u.extra) > 0 {
		slices.Sort(p.scratch.kept[at:])
	}
	return span{int32(at), int32(len(p.scratch.kept))}
}

// kept gives what was kept.
func (p *Planner) kept(s span) []int32 { return p.scratch.kept[s.from:s.to] }

// touch remembers what a unit had before its seats change.
func (p *Planner) touch(i int32) *unit {
	u := &p.units[i]
	if u.touched != p.step {
		u.touched, u.before = p.step, p.keep(u)
		p.dirty = append(p.dirty, i)
	}
	return u
}

// take gives a checker a seat in a unit.
func (p *Planner) take(i, s int32) {
	u := p.touch(i)
	if u.seats == nil {
		u.seats = p.seats(int(min(p.kinds[u.kind].redundancy, 8)))
	}
	u.seats = insert(u.seats, s)
	p.sit(i, s)
}

// stand takes a checker's seat in a unit away.
func (p *Planner) stand(i, s int32) {
	u := p.touch(i)
	u.seats = without(u.seats, s)
	p.rise(i, s)
}

// help makes a checker a substitute in a unit.
func (p *Planner) help(i, s int32) {
	u := p.touch(i)
	u.extra = insert(u.extra, s)
	p.spare[s] += u.size()
	p.sit(i, s)
}

// dismiss sends a substitute away.
func (p *Planner) dismiss(i, s int32) {
	u := p.touch(i)
	u.extra = without(u.extra, s)
	p.spare[s] -= u.size()
	p.rise(i, s)
}

// promote gives a substitute a seat.
func (p *Planner) promote(i, s int32) {
	u := p.touch(i)
	u.extra = without(u.extra, s)
	u.seats = insert(u.seats, s)
	p.spare[s] -= u.size()
}

func (p *Planner) sit(i, s int32) {
	p.book(s, p.units[i].size(), p.units[i].kind)
	p.slots[s].units = append(p.slots[s].units, i)
}

func (p *Planner) rise(i, s int32) {
	p.book(s, -p.units[i].size(), p.units[i].kind)
	list := p.slots[s].units
	if at := slices.Index(list, i); at >= 0 {
		list[at] = list[len(list)-1]
		p.slots[s].units = list[:len(list)-1]
	}
}

// settle puts a new unit's endpoints on the books of those who check it.
func (p *Planner) settle(i int32) {
	u := &p.units[i]
	for _, s := range u.seats {
		p.sit(i, s)
	}
	for _, s := range u.extra {
		p.spare[s] += u.size()
		p.sit(i, s)
	}
}

// dissolve takes a unit off the books. Its number is used again.
func (p *Planner) dissolve(i int32) {
	u := &p.units[i]
	for _, s := range u.seats {
		p.rise(i, s)
	}
	for _, s := range u.extra {
		p.spare[s] -= u.size()
		p.rise(i, s)
	}
	*u = unit{kind: none}
	p.freeUnits = append(p.freeUnits, i)
}
