package assign

import (
	"hdsd/assign/internal/quota"
	"hdsd/health"
)

// open gives a seat to a checker that has none.
func (p *Planner) open(id string) int32 {
	s := p.fleet.open(id)
	p.room.open(s)
	p.seats.open(s)
	p.journal.open(s)
	return s
}

// vacate frees the slot of a checker that left. No other checker gets the slot while
// a restored plan still names it.
func (p *Planner) vacate(s int32) {
	p.zones.Occupy(p.fleet.zone(s), -1)
	p.seats.disown(s)
	p.fleet.vacate(s, p.restored.empty())
}

func (p *Planner) join(c *health.Checker) {
	s, ok := p.fleet.find(c.ID)
	if !ok {
		s = p.open(c.ID)
		p.fleet.refresh(s)
		p.unfair = true
	}
	if !p.fleet.isAs(s, c) {
		p.describe(s, c)
	} else if p.fleet.present(s) {
		return
	}
	if p.fleet.revive(s) {
		p.classes.enlist(p.worker(s), p.room.leeway(s))
	}
	p.newcomers = append(p.newcomers, s)
}

// describe applies a checker's new description.
func (p *Planner) describe(s int32, c *health.Checker) {
	known, previous, previousZone, z := p.fleet.isKnown(s), p.fleet.capacity(s), p.fleet.zone(s), p.zones.Number(c.Locality)
	p.growZones()
	previousClasses := p.classes.bits(s)
	p.classes.expel(p.worker(s))
	p.zones.Occupy(z, 1)
	p.zones.Occupy(previousZone, -1)
	p.fleet.describe(s, c, z)
	capacity := p.fleet.capacity(s)
	p.room.limit(s, capacity.Ceiling)
	if known && (capacity.Weight > previous.Weight || capacity.Ceiling > previous.Ceiling) {
		p.fleet.refresh(s)
	}
	p.classes.admit(p.worker(s), c, p.room.leeway(s))
	p.unfair = p.unfair || known && (previousZone != z || previous != capacity || previousClasses != p.classes.bits(s))
	p.shares.join(s)
}

// hold lets a lost checker get no more seats. It counts as live at those that it has, so
// no substitutes replace it.
func (p *Planner) hold(id string) {
	s, ok := p.fleet.find(id)
	if !ok || !p.fleet.present(s) {
		return
	}
	p.classes.delist(p.worker(s))
	p.fleet.hold(s)
}

// suspend lets substitutes replace a checker that was lost or is doubted. If a
// doubted checker is lost, its substitutes stay.
func (p *Planner) suspend(id string, doubted bool) {
	s, ok := p.fleet.find(id)
	if !ok || !p.fleet.live(s) && (p.fleet.doubted(s) || !doubted) {
		return
	}
	if p.fleet.present(s) {
		p.classes.delist(p.worker(s))
	}
	p.fleet.suspend(s)
	p.fleet.setDoubted(s, doubted)
	p.suspended = append(p.suspended, s)
}

// markBlind lets substitutes come where the blind checkers are not outnumbered.
func (p *Planner) markBlind(id string) {
	p.suspend(id, false)
	if s, ok := p.fleet.find(id); ok && p.fleet.setBlind(s) {
		p.suspended, p.newcomers = append(p.suspended, s), append(p.newcomers, s)
	}
}

// divide lets the endpoints of a zone have a second checker of their own zone, or no
// longer. The zone keeps its number meanwhile.
func (p *Planner) divide(l health.Locality, divided bool) {
	z := p.zones.Number(l)
	p.growZones()
	if !p.needs.divide(z, divided) {
		return
	}
	step := int32(-1)
	if divided {
		step = 1
	}
	p.zones.Occupy(z, step)
}

func (p *Planner) leave(id string) {
	s, ok := p.fleet.find(id)
	if !ok {
		return
	}
	p.classes.expel(p.worker(s))
	p.fleet.close(s)
	p.shares.leave(s)
	p.room.limit(s, quota.Unlimited)
	p.unfair = true
	p.leavers = append(p.leavers, s)
}

// worker returns a checker as the classes see it.
func (p *Planner) worker(s int32) worker {
	return worker{slot: s, zone: p.fleet.zone(s), hash: p.fleet.hash(s), weight: p.fleet.weight(s), present: p.fleet.present(s)}
}
