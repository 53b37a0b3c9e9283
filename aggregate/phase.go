package aggregate

import (
	"time"

	"hdsd/health"
)

// phase says how far a pair of endpoint and checker has come.
type phase uint8

const (
	waiting   phase = iota // no vote since it was assigned, or since its checker connected; awaited
	overdue                // the same, but awaited no longer
	recreated              // its host is being re-created: votes may still be about the old one
	warming                // has voted, but not yet been up: a down may only mean that no probe has ended
	settled                // every vote counts
)

// longestTiming is more than milliseconds can hold, and far from an overflow.
const longestTiming = 50 * 24 * time.Hour

// warmUp is how long after its first vote a pair's downs are not believed: its
// first probe must have ended, been reported, and confirmed as often as the
// threshold asks, with a round to spare. Milliseconds.
func (t Timing) warmUp() uint32 {
	rounds := time.Duration(t.UnhealthyThreshold) + 1
	return milliseconds(min(t.InitialJitter, longestTiming) + min(t.Timeout, longestTiming) + min(t.ReportInterval, longestTiming) +
		rounds*min(t.Interval, longestTiming/rounds+1))
}

// enter puts seat i of an endpoint into a phase that ends after d.
func (a *Aggregator) enter(id health.EndpointID, e *endpoint, i int, p phase, d time.Duration) {
	s := &a.seats.of(e)[i]
	at := a.clock.in(a.clock.elapsed, d)
	s.phase, s.until = p, uint32(at)
	a.lookAway(s)
	a.deadlines.add(at, pair{id, s.checker})
}

func (a *Aggregator) await(id health.EndpointID, e *endpoint, i int) {
	a.enter(id, e, i, waiting, a.options.AwaitFor)
}

func (a *Aggregator) warm(id health.EndpointID, e *endpoint, i int) {
	a.enter(id, e, i, warming, a.warmUp(e, a.policyOf(e).probe))
}

// warmUp is how long a pair warms up: until it is confirmed, or only until a
// first probe has been reported where the endpoint has waited for long enough.
func (a *Aggregator) warmUp(e *endpoint, probe uint32) time.Duration {
	d := a.policyOf(e).warmUp
	if e.flags&exhausted != 0 {
		d = min(d, probe)
	}
	return time.Duration(d) * time.Millisecond
}

func (a *Aggregator) recreate(id health.EndpointID, e *endpoint, i int) {
	s := &a.seats.of(e)[i]
	s.status = noVote
	a.checkers.all[s.checker].votes[s.place].Status = noVote
	a.enter(id, e, i, recreated, time.Duration(a.policyOf(e).stale)*time.Millisecond)
	a.mark(id, e)
}

// restart begins anew with a checker whose stream began anew: an Envoy that
// kept running says up of what is up at once, and is then believed at once.
func (a *Aggregator) restart(c uint32) {
	x := &a.checkers.all[c]
	x.lost, a.stirred = false, a.stirred || x.lost
	a.sees(c, "its stream began anew")
	for i := range x.votes {
		x.votes[i].Status = noVote
		id := x.votes[i].Endpoint
		e := &a.endpoints[id]
		a.await(id, e, a.seats.find(e, c))
		a.mark(id, e)
	}
}

// listen takes in votes. Those of a checker are kept in the order in which it
// last reported them all, so that when it does so again, what says the same as
// before is passed over without a look at the endpoint.
func (a *Aggregator) listen(c uint32, votes []health.Vote) {
	before := a.checkers.all[c].votes
	inFull, next := len(votes) >= len(before), 0
	for _, v := range votes {
		if inFull && next < len(before) && before[next] == v {
			next++
			continue
		}
		e := a.known(v.Endpoint)
		if e == nil {
			continue
		}
		i := a.seats.find(e, c)
		if i < 0 {
			continue
		}
		s := &a.seats.of(e)[i]
		if inFull && next < len(before) {
			a.swap(c, uint32(next), s.place)
		}
		before[s.place], next = v, int(s.place)+1
		a.vote(v, e, i)
	}
}

// vote takes in a vote at seat i of an endpoint.
func (a *Aggregator) vote(v health.Vote, e *endpoint, i int) {
	s := &a.seats.of(e)[i]
	if s.code != v.HTTPStatusCode {
		s.code = v.HTTPStatusCode // early evidence, where the status is to follow
		a.mark(v.Endpoint, e)
	}
	if status := a.policyOf(e).counts(v.Status, v.HTTPStatusCode); s.status != status || s.phase < recreated {
		a.take(v.Endpoint, e, i, status)
	}
}

// take has a vote count as something else than before.
func (a *Aggregator) take(id health.EndpointID, e *endpoint, i int, status health.Status) {
	s := &a.seats.of(e)[i]
	fell := status.Down() && !s.status.Down()
	s.status, s.began = status, s.code
	switch {
	case s.phase == recreated: // looked at when that ends
	case status.Up():
		s.phase = settled
	case s.phase < recreated:
		a.warm(id, e, i)
	case s.phase == settled && fell:
		a.fall(id, e, s)
	}
	a.mark(id, e)
}

// fire does all that is due.
func (a *Aggregator) fire() {
	for now := a.clock.tick(); ; {
		at, list := a.deadlines.pop(now)
		if list == nil {
			return
		}
		for _, p := range list {
			switch {
			case p.checker == ofCluster:
				a.endMass(uint32(p.endpoint), at)
			case p.checker == ofZones:
				if e := a.known(p.endpoint); e != nil {
					a.mark(p.endpoint, e)
				}
			case p.checker == ofPatience:
				a.endPatience(p.endpoint, at)
			case p.checker == ofFlap:
				a.endFlap(p.endpoint, at)
			case p.endpoint == noEndpoint:
				a.checkSilence(p.checker, at)
			case p.checker == noChecker:
				a.endWait(p.endpoint, at)
			default:
				a.endPhase(p, at)
			}
		}
		a.deadlines.done(list)
	}
}

// endPhase ends a pair's phase, if this is the deadline that it waits for.
func (a *Aggregator) endPhase(p pair, at tick) {
	e := a.known(p.endpoint)
	if e == nil {
		return
	}
	i := a.seats.find(e, p.checker)
	if i < 0 {
		return
	}
	s := &a.seats.of(e)[i]
	if s.until != uint32(at) {
		return
	}
	switch s.phase {
	case waiting:
		s.phase = overdue
	case warming:
		s.phase = settled
		if s.status.Down() {
			a.fall(p.endpoint, e, s)
		}
	case recreated:
		a.endRecreated(p.endpoint, e, i)
	default:
		if s.outage == missed {
			a.miss(e, p.checker)
		}
		return
	}
	a.mark(p.endpoint, e)
}

// settle awaits those who are absent: after a time in which nobody was heard,
// the first to come back must not decide alone.
func (a *Aggregator) settle(id health.EndpointID, e *endpoint) {
	a.wait(id, e, settling, a.options.AwaitFor)
}

// wait has an endpoint settle or hesitate, one instead of the other.
func (a *Aggregator) wait(id health.EndpointID, e *endpoint, what uint16, d time.Duration) {
	at := a.clock.in(a.clock.elapsed, d)
	e.flags = e.flags&^(settling|hesitating) | what
	e.until = uint32(at)
	a.deadlines.add(at, pair{id, noChecker})
}

// endWait ends what wait began, if this is the deadline that it waits for.
func (a *Aggregator) endWait(id health.EndpointID, at tick) {
	e := a.known(id)
	if e == nil || e.flags&(settling|hesitating) == 0 || e.until != uint32(at) {
		return
	}
	if e.flags&hesitating != 0 {
		e.flags |= hesitated
	}
	e.flags &^= settling | hesitating
	a.mark(id, e)
}

// endRecreated goes on with a vote that by now is about the new host.
func (a *Aggregator) endRecreated(id health.EndpointID, e *endpoint, i int) {
	s := &a.seats.of(e)[i]
	switch {
	case s.status == noVote:
		a.await(id, e, i)
	case s.status.Up():
		s.phase = settled
	default:
		p := a.policyOf(e)
		a.enter(id, e, i, warming, a.warmUp(e, max(p.probe, p.stale)-p.stale))
	}
}
