package assign

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// class is a Class with the checkers that can serve it. The slices after total are
// by zone.
type class struct {
	Class
	id    ClassID
	hash  uint64
	able  []uint64 // bit set of slots with a seat
	total int      // number of able checkers

	seats    []int32    // number of able checkers in each zone
	mass     []int64    // their total weight
	odd      []int32    // present checkers below full weight
	pools    [][]int32  // present checkers
	rights   [][]uint64 // their hashes, prepared for scores
	arrivals []uint32   // how often a checker joined a pool
	gaps     []int64    // upper bound of the room below a ceiling of any checker in a pool

	version uint32 // version of mass and pools; never 0
}

// worker is a checker as the classes see it.
type worker struct {
	slot, zone int32
	hash       uint64
	weight     int64
	present    bool // live, and not held
}

// has reports whether a checker can serve the class.
func (c *class) has(s int32) bool {
	word := int(s / 64)
	return word < len(c.able) && c.able[word]>>(s%64)&1 == 1
}

// grow makes room for n zones.
func (c *class) grow(n int) {
	for len(c.seats) < n {
		c.seats = append(c.seats, 0)
		c.pools, c.rights = append(c.pools, nil), append(c.rights, nil)
		c.arrivals, c.gaps = append(c.arrivals, 0), append(c.gaps, 0)
		c.mass, c.odd = append(c.mass, 0), append(c.odd, 0)
	}
}

// admit adds a checker if it is able; leeway is its room below its ceiling.
func (c *class) admit(w worker, checker *health.Checker, leeway int64) {
	if c.Withheld || !checker.Abilities.Has(c.Needs...) || !c.Reach.Includes(checker) {
		return
	}
	for len(c.able) <= int(w.slot/64) {
		c.able = append(c.able, 0)
	}
	c.able[w.slot/64] |= 1 << (w.slot % 64)
	c.seats[w.zone]++
	c.mass[w.zone] += w.weight
	c.total++
	c.version++
	if w.present {
		c.enlist(w, leeway)
	}
}

// expel removes a checker.
func (c *class) expel(w worker) {
	if !c.has(w.slot) {
		return
	}
	if w.present {
		c.delist(w)
	}
	c.able[w.slot/64] &^= 1 << (w.slot % 64)
	c.seats[w.zone]--
	c.mass[w.zone] -= w.weight
	c.total--
	c.version++
}

// enlist adds a present checker to its zone's pool.
func (c *class) enlist(w worker, leeway int64) {
	z := w.zone
	c.pools[z], c.rights[z] = append(c.pools[z], w.slot), append(c.rights[z], rendezvous.Right(w.hash))
	c.version++
	c.arrivals[z]++
	c.gaps[z] = max(c.gaps[z], leeway)
	if w.weight != quota.FullWeight {
		c.odd[z]++
	}
}

// delist removes a checker from its zone's pool.
func (c *class) delist(w worker) {
	z := w.zone
	index := slices.Index(c.pools[z], w.slot)
	c.pools[z], c.rights[z] = slices.Delete(c.pools[z], index, index+1), slices.Delete(c.rights[z], index, index+1)
	c.version++
	if w.weight != quota.FullWeight {
		c.odd[z]--
	}
}

// narrow computes anew the largest room of any checker in a zone.
func (c *class) narrow(z int32, r *room) {
	c.gaps[z] = 0
	for _, s := range c.pools[z] {
		c.gaps[z] = max(c.gaps[z], r.leeway(s))
	}
}

// mayFitIn reports whether a checker in a zone may have room for a cost.
func (c *class) mayFitIn(z int32, cost int64) bool { return cost <= c.gaps[z] }

// mayFit reports whether any checker may have room for a cost.
func (c *class) mayFit(cost int64) bool {
	for z, gap := range c.gaps {
		if gap >= cost && len(c.pools[z]) > 0 {
			return true
		}
	}
	return false
}

// classes holds the classes that endpoints can want. It never forgets one.
type classes struct {
	list []*class
	ids  map[uint64]ClassID // by hash
}

// find returns the class equal to c, and makes it if there is none.
func (cs *classes) find(c Class) (found *class, isNew bool) {
	h := c.digest()
	if id, ok := cs.ids[h]; ok {
		return cs.list[id], false
	}
	found = &class{Class: c, id: ClassID(len(cs.list)), hash: h, version: 1}
	cs.ids[h] = found.id
	cs.list = append(cs.list, found)
	return found, true
}

func (cs *classes) len() int               { return len(cs.list) }
func (cs *classes) byID(id ClassID) *class { return cs.list[id] }

// grow makes room for n zones.
func (cs *classes) grow(n int) {
	for _, c := range cs.list {
		c.grow(n)
	}
}

// bits returns the classes that a checker can serve, one bit each.
func (cs *classes) bits(s int32) string {
	bits := make([]byte, (len(cs.list)+7)/8)
	for i, c := range cs.list {
		if c.has(s) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return string(bits)
}

// admit adds a checker to every class that it is able to serve.
func (cs *classes) admit(w worker, checker *health.Checker, leeway int64) {
	for _, c := range cs.list {
		c.admit(w, checker, leeway)
	}
}

// expel removes a checker from every class.
func (cs *classes) expel(w worker) {
	for _, c := range cs.list {
		c.expel(w)
	}
}

// enlist adds a checker that becomes present to the pools of its classes.
func (cs *classes) enlist(w worker, leeway int64) {
	for _, c := range cs.list {
		if c.has(w.slot) {
			c.enlist(w, leeway)
		}
	}
}

// delist removes a checker that is no longer present from the pools of its classes.
func (cs *classes) delist(w worker) {
	for _, c := range cs.list {
		if c.has(w.slot) {
			c.delist(w)
		}
	}
}

// widen records that a checker has more room below its ceiling.
func (cs *classes) widen(s, zone int32, leeway int64) {
	for _, c := range cs.list {
		if c.has(s) {
			c.gaps[zone] = max(c.gaps[zone], leeway)
		}
	}
}

// byScarcity returns the rank of each class, fewest able checkers first.
func (cs *classes) byScarcity() []int32 {
	order := slices.Clone(cs.list)
	slices.SortFunc(order, func(a, b *class) int {
		return cmp.Or(cmp.Compare(a.total, b.total), cmp.Compare(a.hash, b.hash))
	})
	place := make([]int32, len(order))
	for n, c := range order {
		place[c.id] = int32(n)
	}
	return place
}

// digest returns a hash of the class.
func (c *Class) digest() uint64 {
	var parts []string
	for _, need := range slices.Compact(slices.Sorted(slices.Values(c.Needs))) {
		parts = append(parts, string(need))
	}
	if c.Withheld {
		parts = append(parts, "withheld", "")
	}
	if r := c.Reach; r != nil {
		parts = append(parts, "localities", strconv.Itoa(len(r.Localities)))
		for _, l := range slices.SortedFunc(slices.Values(r.Localities), health.Locality.Compare) {
			parts = append(parts, l.Region, l.Zone, l.SubZone)
		}
		parts = append(parts, "metadata", strconv.Itoa(len(r.Metadata)))
		for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
			parts = append(parts, k, r.Metadata[k])
		}
	}
	return rendezvous.Hash(parts...)
}
