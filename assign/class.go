package assign

import (
	"maps"
	"slices"
	"strconv"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// class is a Class with the checkers that can serve it. The slices are by zone.
type class struct {
	Class
	hash  uint64
	able  []uint64  // bit set of slots with a seat
	total int       // how many those are
	seats []int32   // how many of them in each zone
	mass  []int64   // what they weigh
	odd   []int32   // live ones that do not have the full weight
	pools [][]int32 // those that are live

	rights [][]uint64 // their hashes, for mixed

	version  uint32   // of mass and pools; never 0
	arrivals []uint32 // how often someone came into a pool
	gaps     []int64  // no one in a pool has more room below its ceiling
}

// Class gives the number of a class: the same for equal classes.
func (p *Planner) Class(c Class) ClassID {
	h := c.digest()
	if id, ok := p.classID[h]; ok {
		return id
	}
	id := ClassID(len(p.classes))
	p.classID[h] = id
	p.classes = append(p.classes, class{Class: c, hash: h, version: 1})
	p.outdated = true
	added := &p.classes[id]
	added.grow(p.zones.Len())
	for s := range p.slots {
		if p.slots[s].known {
			p.admitTo(added, &p.slots[s].checker, int32(s))
		}
	}
	return id
}

func (c *Class) digest() uint64 {
	var parts []string
	for _, need := range slices.Compact(slices.Sorted(slices.Values(c.Needs))) {
		parts = append(parts, string(need))
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

// grow makes room for n zones.
func (c *class) grow(n int) {
	for len(c.seats) < n {
		c.seats = append(c.seats, 0)
		c.pools, c.rights = append(c.pools, nil), append(c.rights, nil)
		c.arrivals, c.gaps = append(c.arrivals, 0), append(c.gaps, 0)
		c.mass, c.odd = append(c.mass, 0), append(c.odd, 0)
	}
}

func (c *class) has(s int32) bool {
	word := int(s / 64)
	return word < len(c.able) && c.able[word]>>(s%64)&1 == 1
}

// admitTo counts a checker among those of a class, if it is able.
func (p *Planner) admitTo(c *class, checker *health.Checker, s int32) {
	if !checker.Abilities.Has(c.Needs...) || !c.Reach.Includes(checker) {
		return
	}
	for len(c.able) <= int(s/64) {
		c.able = append(c.able, 0)
	}
	c.able[s/64] |= 1 << (s % 64)
	c.seats[p.home[s]]++
	c.mass[p.home[s]] += p.can[s].Weight
	c.total++
	c.version++
	if p.live[s] {
		p.enlist(c, s)
	}
}

func (p *Planner) expelFrom(c *class, s int32) {
	if !c.has(s) {
		return
	}
	if p.live[s] {
		p.delist(c, s)
	}
	c.able[s/64] &^= 1 << (s % 64)
	c.seats[p.home[s]]--
	c.mass[p.home[s]] -= p.can[s].Weight
	c.total--
	c.version++
}

func (p *Planner) enlist(c *class, s int32) {
	z := p.home[s]
	c.pools[z], c.rights[z] = append(c.pools[z], s), append(c.rights[z], rendezvous.Right(p.hash[s]))
	c.version++
	c.arrivals[z]++
	c.gaps[z] = max(c.gaps[z], p.leeway(s))
	if p.can[s].Weight != quota.FullWeight {
		c.odd[z]++
	}
}

func (p *Planner) delist(c *class, s int32) {
	z := p.home[s]
	at := slices.Index(c.pools[z], s)
	c.pools[z], c.rights[z] = slices.Delete(c.pools[z], at, at+1), slices.Delete(c.rights[z], at, at+1)
	c.version++
	if p.can[s].Weight != quota.FullWeight {
		c.odd[z]--
	}
}
