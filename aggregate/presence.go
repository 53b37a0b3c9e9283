package aggregate

import "time"

// hearingState says whether a checker is heard.
type hearingState uint8

const (
	silent  hearingState = iota // never heard, or no longer awaited
	heard                       // heard recently: its votes count
	awaited                     // has just fallen silent
)

// hearing is the state of a checker in one class: heard, awaited or silent.
type hearing struct {
	due   tick // current deadline; 0 if silent
	state hearingState
}

// presence tracks which checkers are heard and which zones are deserted.
type presence struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	zones     *zones
	changed   bool // a checker lost its stream, came back, moved or left since findDeserted
}

// joinClass adds a checker to a class.
func (p *presence) joinClass(c, class uint32) {
	k := p.roster.checker(c)
	for i := uint32(k.hearing.len()); i <= class; i++ {
		k.addClass()
		if !k.heard.IsZero() && p.clock.elapsed-k.heardAt <= p.settings.staleness(i) {
			k.hearing.of(i).state = heard
			p.watch(checkerClass{c, i})
		}
	}
}

// hear records a report, and returns whether its checker was not heard before. The
// caller then marks the checker's endpoints.
func (p *presence) hear(c uint32) (back bool) {
	k := p.roster.checker(c)
	k.heard, k.heardAt = p.clock.now, p.clock.elapsed
	for class := range k.hearing.len() {
		if h := k.hearing.of(uint32(class)); h.state != heard {
			h.state, back = heard, true
			p.watch(checkerClass{c, uint32(class)})
		}
	}
	return back
}

// watch sets the deadline at which a checker that is heard falls silent.
func (p *presence) watch(key checkerClass) {
	k := p.roster.checker(key.checker)
	h := k.hearing.of(key.class)
	// One tick later, since a vote exactly as old as the staleness still counts.
	h.due = p.clock.tickFrom(k.heardAt, p.settings.staleness(key.class)) + 1
	p.deadlines.add(h.due, deadline{noEndpoint, key.checker})
}

// watchLoss sets the deadline at which the votes of a silent checker are no longer planned.
func (p *presence) watchLoss(key checkerClass) {
	k := p.roster.checker(key.checker)
	if hold := p.settings.quorumHold(key.class, p.clock.elapsed-k.heardAt); hold > 0 {
		h := k.hearing.of(key.class)
		h.due = p.clock.tickFrom(k.heardAt, hold) + 1
		p.deadlines.add(h.due, deadline{noEndpoint, key.checker})
	}
}

// expect awaits a checker that was never heard and gets a seat, as after a restart.
func (p *presence) expect(key checkerClass) {
	k := p.roster.checker(key.checker)
	if h := k.hearing.of(key.class); k.heard.IsZero() && h.state == silent && h.due == 0 {
		p.watchLoss(key)
	}
}

// due makes a checker that was heard awaited, and an awaited checker silent.
func (p *presence) due(c uint32, now tick) {
	k := p.roster.checker(c)
	for class := range k.hearing.len() {
		key := checkerClass{c, uint32(class)}
		h, silence := k.hearing.of(key.class), p.clock.elapsed-k.heardAt
		switch {
		case h.due != now: // it waits for another deadline
		case h.state == heard && silence <= p.settings.staleness(key.class):
			p.watch(key)
		case h.state == heard:
			// It is awaited from now, not from the time of silence. After a pause of this
			// process, all checkers come back together, and the first of them must not decide
			// alone.
			h.state, h.due = awaited, p.clock.tickAfter(p.settings.awaitFor())
			p.deadlines.add(h.due, deadline{noEndpoint, c})
			p.roster.markAll(c)
		default:
			h.state, h.due = silent, 0
			p.watchLoss(key)
			p.roster.markAll(c)
		}
	}
}

// findDeserted finds the zones where most checkers have lost their streams. A single
// checker that loses its stream most likely restarts, so its votes stand until they
// are stale. If most do, the zone itself has probably failed.
func (p *presence) findDeserted() {
	if !p.changed {
		return
	}
	p.changed = false
	lead := make([]int, p.zones.len()) // lost checkers minus the others, by zone
	for _, k := range p.roster.eachChecker() {
		if k.lost {
			lead[k.zone]++
		} else {
			lead[k.zone]--
		}
	}
	for c, k := range p.roster.eachChecker() {
		if k.lost && p.zones.deserted(k.zone) != (lead[k.zone] > 0) {
			p.roster.markAll(c)
		}
	}
	p.zones.setDeserted(func(zone uint32) bool { return lead[zone] > 0 })
}

// speaksFor reports whether a checker in the endpoint's own zone speaks for it. A
// checker that lost its stream does, unless the zone is deserted.
func (p *presence) speaksFor(e *endpoint, k *checker) bool {
	return e.zone != noZone && k.zone == e.zone && !(k.lost && p.zones.deserted(e.zone))
}

// untilHeard returns the time within which the checkers in the endpoint's own zone must report
// once more.
func (p *presence) untilHeard(e *endpoint) time.Duration {
	var last time.Duration
	for _, s := range p.roster.seatsOf(e) {
		if k := p.roster.checker(s.checker); k.zone == e.zone {
			last = max(last, k.heardAt)
		}
	}
	policy := p.settings.ofEndpoint(e)
	return last + fromMilliseconds(policy.round+policy.slack) - p.clock.elapsed
}

// forget records that a checker was forgotten.
func (p *presence) forget() { p.changed = true }

// pending reports whether findDeserted has work.
func (p *presence) pending() bool { return p.changed }

// lost records that a checker lost its stream.
func (p *presence) lost(c uint32) {
	k := p.roster.checker(c)
	k.lost, k.connected, p.changed = true, false, true
}

// connected records that a checker began a stream.
func (p *presence) connected(c uint32) {
	p.roster.checker(c).connected = true
	p.returned(c)
}

// move puts a checker into a zone.
func (p *presence) move(c, zone uint32) {
	p.roster.checker(c).zone, p.changed = zone, true
}

// returned records that a checker has a stream, and returns whether it had lost one.
func (p *presence) returned(c uint32) bool {
	k := p.roster.checker(c)
	if !k.lost {
		return false
	}
	k.lost, p.changed = false, true
	return true
}
