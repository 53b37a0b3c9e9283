package aggregate

import (
	"time"

	"hdsd/health"
)

// phase is the state of a pair of endpoint and checker.
type phase uint8

const (
	waiting    phase = iota // no vote since it was assigned or its checker connected; awaited
	overdue                 // still no vote, and no longer awaited
	recreated               // its host was re-created: votes may still be about the old host
	warming                 // has voted, but not yet up: a down may only mean that the first probe has not ended
	warm                    // every vote counts
	recovering              // every vote counts; it was down, and says now what may mean that it is degraded or that it recovers
)

// intake applies the votes of reports. It tracks the phase of each pair, and the runs
// of downs that the Score rule adds up (score.go).
type intake struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	blindness *blindness
}

// enter sets the phase of seat i of an endpoint, which ends after d.
func (in *intake) enter(id health.EndpointID, e *endpoint, i int, p phase, d time.Duration) {
	s := &in.roster.seatsOf(e)[i]
	t := in.clock.tickAfter(d)
	s.phase, s.end = p, uint32(t)
	in.blindness.leave(s)
	in.deadlines.add(t, deadline{id, s.checker})
}

// await waits for the first vote of seat i.
func (in *intake) await(id health.EndpointID, e *endpoint, i int) {
	in.enter(id, e, i, waiting, in.settings.awaitFor())
}

// warm begins the warm-up of seat i, unless it is answered. If the wait budget is spent, the
// warm-up lasts only until a first probe has been reported.
func (in *intake) warm(id health.EndpointID, e *endpoint, i int, firstProbe uint32) {
	d := in.settings.ofEndpoint(e).warmUp
	if e.has(budgetSpent) {
		d = min(d, firstProbe)
	}
	in.enter(id, e, i, warming, fromMilliseconds(d))
	if in.answered(e, &in.roster.seatsOf(e)[i]) {
		in.count(id, e, i)
	}
}

// recreate awaits votes on the new host of seat i.
func (in *intake) recreate(id health.EndpointID, e *endpoint, i int) {
	s := &in.roster.seatsOf(e)[i]
	s.status = noVote
	in.roster.checker(s.checker).votes[s.place].Status = noVote
	in.enter(id, e, i, recreated, fromMilliseconds(in.settings.ofEndpoint(e).lingering))
	in.roster.mark(id, e)
}

// restart awaits new votes from a checker that began a new stream. An Envoy that kept
// running reports its endpoints that are up at once, and is then believed at once.
func (in *intake) restart(c uint32) {
	votes := in.roster.checker(c).votes
	in.blindness.clear(c, "its stream began anew")
	for i := range votes {
		votes[i].Status = noVote
		id := votes[i].Endpoint
		e := in.roster.row(id)
		in.await(id, e, in.roster.indexOf(e, c))
		in.roster.mark(id, e)
	}
}

// apply applies the votes of a report. The votes of a checker stay in the order of
// its latest full report. So it can skip unchanged votes of the next report without
// looking up their endpoints.
func (in *intake) apply(c uint32, votes []health.Vote) {
	previous := in.roster.checker(c).votes
	inFull, index := len(votes) >= len(previous), 0
	for _, v := range votes {
		if inFull && index < len(previous) && previous[index] == v {
			index++
			continue
		}
		e := in.roster.endpoint(v.Endpoint)
		if e == nil {
			continue
		}
		i := in.roster.indexOf(e, c)
		if i < 0 {
			continue
		}
		s := &in.roster.seatsOf(e)[i]
		if inFull && index < len(previous) {
			in.roster.swap(c, uint32(index), s.place)
		}
		previous[s.place], index = v, int(s.place)+1
		in.applyVote(v, e, i)
	}
}

// applyVote applies a vote at seat i of an endpoint.
func (in *intake) applyVote(v health.Vote, e *endpoint, i int) {
	s := &in.roster.seatsOf(e)[i]
	if s.code != v.HTTPStatusCode {
		s.code = v.HTTPStatusCode // early evidence: the status may change soon, too
		in.roster.mark(v.Endpoint, e)
	}
	if status := in.countsAs(v.Endpoint, e, i, v.Status); s.status != status || s.phase < recreated || in.answered(e, s) {
		in.set(v.Endpoint, e, i, status)
	}
}

// answered reports whether a seat warms up although an answer proves the end of its first
// probe. Envoy acts on such an answer at once, too. A warm-up set by the rule goes on.
func (in *intake) answered(e *endpoint, s *seat) bool {
	return s.phase == warming && s.code != 0 && in.settings.ofEndpoint(e).WarmUp == 0
}

// count counts every vote of seat i from now on, which said down while it warmed up.
func (in *intake) count(id health.EndpointID, e *endpoint, i int) {
	s := &in.roster.seatsOf(e)[i]
	s.phase = warm
	in.beginRun(id, e, s)
	in.countsAs(id, e, i, in.roster.checker(s.checker).votes[s.place].Status)
}

// countsAs returns the status that a vote of seat i counts as. If an endpoint answers
// that it is degraded, Envoy reports UNHEALTHY with the status code of the answer. It
// reports the same of an endpoint that was down and has not passed often enough yet. If
// it may be that, the vote stays down, and the seat is recovering until it cannot be any
// more. While downs of a seat do not count, its own last vote may only mean that no probe
// had ended. Then the verdict tells whether the endpoint was down.
func (in *intake) countsAs(id health.EndpointID, e *endpoint, i int, reported health.Status) health.Status {
	s, p := &in.roster.seatsOf(e)[i], in.settings.ofEndpoint(e)
	degraded := reported == health.Unhealthy && s.code != 0 && p.DegradedWhen.Has(s.code) && in.roster.checker(s.checker).fresh
	wasDown := s.status.Down()
	if s.phase < warm {
		wasDown = e.status.Down()
	}
	recovers := degraded && wasDown && p.recovery > 0 && p.Passing.Has(s.code)
	switch {
	case recovers && s.phase == warm:
		in.enter(id, e, i, recovering, fromMilliseconds(p.recovery))
		in.roster.mark(id, e)
	case !recovers && s.phase == recovering:
		s.phase = warm
		in.beginRun(id, e, s)
	}
	if degraded && !recovers {
		return health.Degraded
	}
	return reported
}

// set changes the status that the vote of seat i counts as.
func (in *intake) set(id health.EndpointID, e *endpoint, i int, status health.Status) {
	s := &in.roster.seatsOf(e)[i]
	fell := status.Down() && !s.status.Down()
	s.status, s.began = status, s.code
	switch {
	case s.phase == recreated: // endRecreated decides
	case status.Up():
		s.phase = warm
	case s.phase < recreated:
		in.warm(id, e, i, in.settings.ofEndpoint(e).firstProbe)
	case in.answered(e, s):
		in.count(id, e, i)
	case s.phase == warm && fell:
		in.beginRun(id, e, s)
	}
	in.roster.mark(id, e)
}

// reapply counts the votes on an endpoint again under a new rule.
func (in *intake) reapply(id health.EndpointID, e *endpoint) {
	p := in.settings.ofEndpoint(e)
	list := in.roster.seatsOf(e)
	for i := range list {
		s := &list[i]
		if s.phase < recreated {
			continue
		}
		reported := in.roster.checker(s.checker).votes[s.place].Status
		if status := in.countsAs(id, e, i, reported); status != s.status || in.answered(e, s) {
			in.set(id, e, i, status)
		} else {
			in.trackRun(id, s, p)
		}
	}
	in.roster.mark(id, e)
}

// due ends the phase of a pair, if d is the deadline that it waits for.
func (in *intake) due(d deadline, t tick) {
	e := in.roster.endpoint(d.endpoint)
	if e == nil {
		return
	}
	i := in.roster.indexOf(e, d.checker)
	if i < 0 {
		return
	}
	s := &in.roster.seatsOf(e)[i]
	if s.end != uint32(t) {
		return
	}
	switch s.phase {
	case waiting:
		s.phase = overdue
	case warming:
		if s.status.Down() {
			in.count(d.endpoint, e, i)
		} else {
			s.phase = warm
		}
	case recovering:
		s.phase = warm
		in.set(d.endpoint, e, i, health.Degraded)
	case recreated:
		in.endRecreated(d.endpoint, e, i)
	default:
		in.blindness.due(e, s)
		return
	}
	in.roster.mark(d.endpoint, e)
}

// endRecreated applies a vote that must be about the new host.
func (in *intake) endRecreated(id health.EndpointID, e *endpoint, i int) {
	s := &in.roster.seatsOf(e)[i]
	switch {
	case s.status == noVote:
		in.await(id, e, i)
	case s.status.Up():
		s.phase = warm
	default:
		p := in.settings.ofEndpoint(e)
		in.warm(id, e, i, max(p.firstProbe, p.lingering)-p.lingering)
	}
}
