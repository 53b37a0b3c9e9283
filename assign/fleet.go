package assign

import (
	"cmp"
	"maps"
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// slot is a checker's seat.
type slot struct {
	units   []int32 // where it sits, as a substitute too
	seated  bool    // false: free, or given up in this Apply
	known   bool    // has joined; its abilities and zone are known
	fresh   bool    // has not pulled its share yet
	stuck   uint32  // the step in which it could not make room any more
	jammed  jam     // for whom nobody would go elsewhere
	id      string
	checker health.Checker // as it joined last
}

// open makes a seat for a checker that has none.
func (p *Planner) open(id string) int32 {
	var s int32
	if n := len(p.free); n > 0 {
		s, p.free = p.free[n-1], p.free[:n-1]
	} else {
		s = int32(len(p.slots))
		p.slots = append(p.slots, slot{})
		p.hash, p.home = append(p.hash, 0), append(p.home, 0)
		p.load, p.spare = append(p.load, 0), append(p.spare, 0)
		p.rate, p.part = append(p.rate, 0), append(p.part, 0)
		p.can = append(p.can, quota.Default)
		p.live, p.doubt, p.blind = append(p.live, false), append(p.doubt, false), append(p.blind, false)
	}
	p.slots[s] = slot{id: id, seated: true}
	p.hash[s], p.home[s] = rendezvous.Hash(id), none
	p.endow(s, quota.Default)
	p.index[id] = s
	p.seated++
	return s
}

// vacate makes the slot of one that left free for another. Slots are not used
// again while a restored plan still speaks of them.
func (p *Planner) vacate(s int32) {
	p.zones.Occupy(p.home[s], -1)
	p.slots[s], p.home[s] = slot{}, none
	if len(p.restored.hashes) == 0 {
		p.free = append(p.free, s)
	}
}

func (p *Planner) join(c *health.Checker) {
	s, ok := p.index[c.ID]
	if !ok {
		s = p.open(c.ID)
		p.refresh(s)
		p.unfair = true
	}
	if at := &p.slots[s]; !at.known || !alike(&at.checker, c) {
		p.describe(s, c)
	} else if p.live[s] {
		return
	}
	if !p.live[s] {
		p.live[s], p.doubt[s], p.blind[s] = true, false, false
		p.alive++
		for i := range p.classes {
			if p.classes[i].has(s) {
				p.enlist(&p.classes[i], s)
			}
		}
	}
	p.came = append(p.came, s)
}

// describe takes a checker's new description in.
func (p *Planner) describe(s int32, c *health.Checker) {
	at, z := &p.slots[s], p.zoneOf(c.Locality)
	was := make([]bool, len(p.classes))
	for i := range p.classes {
		was[i] = p.classes[i].has(s)
		p.expelFrom(&p.classes[i], s)
	}
	before, now := p.can[s], quota.CapacityOf(c)
	moved := at.known && p.home[s] != z
	p.zones.Occupy(z, 1)
	p.zones.Occupy(p.home[s], -1)
	p.home[s] = z
	p.endow(s, now)
	p.unfair = p.unfair || moved || at.known && before != now
	if at.known && (now.Weight > before.Weight || now.Ceiling > before.Ceiling) {
		p.refresh(s)
	}
	for i := range p.classes {
		p.admitTo(&p.classes[i], c, s)
		p.unfair = p.unfair || at.known && was[i] != p.classes[i].has(s)
	}
	at.checker, at.known = *c, true
	p.joinCohort(s)
}

// alike tells whether two descriptions of a checker ask for the same plan.
func alike(a, b *health.Checker) bool {
	return a.Locality == b.Locality && quota.CapacityOf(a) == quota.CapacityOf(b) && maps.Equal(a.Abilities, b.Abilities) && maps.Equal(a.Metadata, b.Metadata)
}

// suspend has substitutes stand in for a checker that was lost or is doubted; of
// one that is lost while it is doubted they stay.
func (p *Planner) suspend(id string, doubted bool) {
	s, ok := p.index[id]
	if !ok || !p.live[s] && (p.doubt[s] || !doubted) {
		return
	}
	if p.live[s] {
		for i := range p.classes {
			if p.classes[i].has(s) {
				p.delist(&p.classes[i], s)
			}
		}
		p.live[s] = false
		p.alive--
	}
	p.doubt[s] = doubted
	p.suspended = append(p.suspended, s)
}

// outnumber has substitutes come where those who are blind are not outnumbered.
func (p *Planner) outnumber(id string) {
	p.suspend(id, false)
	if s, ok := p.index[id]; ok && !p.blind[s] {
		p.blind[s] = true
		p.suspended, p.came = append(p.suspended, s), append(p.came, s)
	}
}

func (p *Planner) leave(id string) {
	s, ok := p.index[id]
	if !ok {
		return
	}
	for i := range p.classes {
		p.expelFrom(&p.classes[i], s)
	}
	if p.live[s] {
		p.live[s] = false
		p.alive--
	}
	p.doubt[s], p.blind[s] = false, false
	p.quotas.Leave(s)
	p.slots[s].seated, p.slots[s].known, p.slots[s].fresh = false, false, false
	p.endow(s, quota.Default)
	delete(p.index, id)
	p.seated--
	p.unfair = true
	p.left = append(p.left, s)
}

// refresh has a checker pull its share.
func (p *Planner) refresh(s int32) {
	if !p.slots[s].fresh {
		p.slots[s].fresh = true
		p.fresh = append(p.fresh, s)
	}
}

// newcomers are the live checkers that have not pulled their share yet, in an
// order that does not depend on how they are numbered.
func (p *Planner) newcomers() []int32 {
	var now, later []int32
	for _, s := range p.fresh {
		switch {
		case !p.slots[s].fresh:
		case p.live[s]:
			p.slots[s].fresh = false
			now = append(now, s)
		default:
			later = append(later, s)
		}
	}
	p.fresh = later
	slices.SortFunc(now, func(a, b int32) int { return cmp.Compare(p.hash[a], p.hash[b]) })
	return now
}
