package aggregate

import (
	"slices"
	"time"

	"hdsd/health"
)

// flush decides every marked endpoint anew.
func (a *Aggregator) flush() Effects {
	a.muster()
	for i := 0; i < len(a.dirty); i++ {
		if e := &a.endpoints[a.dirty[i]]; e.flags&known != 0 {
			a.compare(e)
		}
	}
	a.review()
	changes := a.changes[:0]
	var t tally
	for i := 0; i < len(a.dirty); i++ { // which may become more
		changes = a.follow(a.dirty[i], &t, changes)
		if i == len(a.dirty)-1 {
			changes = a.answer(changes)
		}
	}
	if a.options.ZoneViews {
		for _, id := range a.dirty {
			a.compareZones(id)
		}
	}
	a.dirty = a.dirty[:0]
	a.changes = changes[:0]
	if len(changes) > 0 {
		a.effects.Changes = slices.Clone(changes)
		clear(changes)
	}
	return a.takeEffects()
}

// follow has happen what follows from the votes on an endpoint.
func (a *Aggregator) follow(id health.EndpointID, t *tally, changes []Change) []Change {
	e := &a.endpoints[id]
	e.flags &^= dirty
	if e.flags&known == 0 {
		return changes
	}
	a.overrun(e)
	to := a.decide(id, e, t)
	a.sightings(id, e, t)
	if e.flags&flapping != 0 {
		to = a.damp(id, e, to, a.policyOf(e).side(t, neither))
	}
	if to.Down() && !e.status.Down() && a.policyOf(e).MassHold > 0 && e.flags&exhausted == 0 && a.contests(e, t) {
		a.ask(id, e, to)
		a.spend(id, e)
		return changes
	}
	if to != e.status {
		changes = append(changes, a.change(id, e, to, t))
	} else {
		a.measure(id, e, t)
	}
	if e.flags&restrained != 0 {
		a.unrestrain(e)
	}
	return changes
}

// decide gives the status that follows from the votes.
func (a *Aggregator) decide(id health.EndpointID, e *endpoint, t *tally) health.Status {
	rule := &a.policyOf(e).Rule
	a.tally(e, t)
	status, how := rule.decide(t, e.status)
	if how == unobserved || how == lapsed {
		a.darken(e, true)
		return status
	}
	if e.flags&dark != 0 && t.absent > 0 && e.flags&exhausted == 0 {
		a.settle(id, e)
		a.tally(e, t)
		status, _ = rule.decide(t, e.status)
	}
	a.darken(e, false)
	return a.hesitate(id, e, t, status)
}

// darken notes whether any vote on an endpoint counts.
func (a *Aggregator) darken(e *endpoint, is bool) {
	switch was := e.flags&dark != 0; {
	case is && !was:
		e.flags |= dark
		a.unseen++
	case was && !is:
		e.flags &^= dark
		a.unseen--
	}
}

// Unobserved is on how many endpoints no vote counts.
func (a *Aggregator) Unobserved() int { return a.unseen }

// hesitate keeps a majority of down that got no answer from outvoting a checker
// in the endpoint's own zone that says up: if their way to that zone is cut, that
// shows by the time that everybody has had a round, and that votes may be out of
// date. Where nothing else looks as if it were, the checker's next report is time
// enough, whether it comes or is lost. It does the same where only one voter of
// several is left to believe: if that was noise, that shows, too. And it keeps what
// is down from coming back by the word of those alone whose probes have begun to
// fail: that may be all who are believed, while others are doubted.
func (a *Aggregator) hesitate(id health.EndpointID, e *endpoint, t *tally, to health.Status) health.Status {
	p := a.policyOf(e)
	weighs := p.Kind == Majority || p.Kind == Score
	cut := weighs && t.inside && !t.answered
	alone := t.up+t.down == 1 && t.assigned > 1 && p.Kind == Majority
	wavering := weighs && to.Up() && e.status.Down() && !t.firm
	against := to.Down() && !e.status.Down() && (cut || alone) || wavering
	if !against || e.flags&(hesitated|exhausted) != 0 {
		e.flags &^= hesitating | hesitated
		return to
	}
	if e.flags&(hesitating|settling) == 0 {
		d := max(a.staleness(p.class), time.Duration(p.round)*time.Millisecond)
		if cut && a.stray(e) {
			d = min(d, a.untilHeard(e, p))
		}
		if d <= 0 {
			return to
		}
		a.wait(id, e, hesitating, d)
	}
	return e.status
}

// untilHeard is how long it takes until the checkers in the endpoint's own zone
// must have reported once more.
func (a *Aggregator) untilHeard(e *endpoint, p *policy) time.Duration {
	var last time.Duration
	for _, s := range a.seats.of(e) {
		if c := &a.checkers.all[s.checker]; c.zone == e.zone {
			last = max(last, c.heardAt)
		}
	}
	return last + time.Duration(p.round+p.slack)*time.Millisecond - a.clock.elapsed
}

// change has a verdict become another that follows from a tally.
func (a *Aggregator) change(id health.EndpointID, e *endpoint, to health.Status, t *tally) Change {
	from := e.status
	if from.Up() && to.Down() {
		a.fell(id, e)
	}
	a.turn(e, to)
	e.since = a.clock.now.UnixNano()
	c := Change{Endpoint: id, From: from, To: to, Reason: a.explain(id, e, t), Observations: a.observations(e)}
	e.restore()
	return c
}
