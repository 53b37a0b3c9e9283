package aggregate

import (
	"math"
	"slices"
	"time"

	"hdsd/health"
)

// Aggregator turns reports and time into Effects. The package comment lists its parts, and says
// who may call it.
type Aggregator struct {
	clock     clock
	deadlines deadlines
	settings  settings
	roster    roster
	clusters  clusters
	zones     zones
	trust     trusts
	presence  presence
	intake    intake
	records   records
	losses    losses
	divisions divisions
	doubts    doubts
	blindness blindness
	counter   counter
	decisions decisions
	reasons   reasons
	views     zoneViews
	effects   Effects // since the latest Report or Tick
}

// New returns an aggregator without endpoints.
func New(o Options) *Aggregator {
	a := &Aggregator{
		deadlines: newDeadlines(), settings: newSettings(o), roster: newRoster(), zones: newZones(), trust: trusts{},
	}
	clock, deadlines, settings, roster := &a.clock, &a.deadlines, &a.settings, &a.roster
	a.presence = presence{clock: clock, deadlines: deadlines, settings: settings, roster: roster, zones: &a.zones}
	a.blindness = blindness{clock, deadlines, roster, &a.clusters, &a.effects}
	a.intake = intake{clock, deadlines, settings, roster, &a.blindness}
	a.records = records{settings: settings, roster: roster, zones: &a.zones, paths: map[path]*record{}, cuts: map[path]bool{}, blamed: map[sender]int{}}
	a.losses = newLosses(clock, deadlines, settings, roster)
	a.counter = counter{settings: settings, roster: roster, presence: &a.presence, records: &a.records, losses: &a.losses}
	a.divisions = divisions{
		clock: clock, deadlines: deadlines, settings: settings, roster: roster, zones: &a.zones, records: &a.records,
		budgets: budgets{clock, deadlines, settings, roster}, effects: &a.effects, byZone: map[zoneClass]*division{}, reported: map[uint32]health.Locality{},
	}
	a.doubts = doubts{
		clock: clock, deadlines: deadlines, settings: settings, roster: roster,
		zones: &a.zones, records: &a.records, counter: &a.counter, divisions: &a.divisions, effects: &a.effects,
	}
	a.decisions = decisions{
		clock: clock, settings: settings, roster: roster, clusters: &a.clusters,
		counter: &a.counter, blindness: &a.blindness, reasons: &a.reasons,
		waits:     waits{clock, deadlines, settings, roster, &a.presence, &a.records, &a.divisions},
		budgets:   budgets{clock, deadlines, settings, roster},
		damping:   newDamping(clock, deadlines, settings, roster, &a.effects),
		mass:      newMassFailures(clock, deadlines, settings, roster, &a.clusters, &a.effects),
		witnesses: witnesses{clock: clock},
	}
	a.reasons = reasons{
		settings: settings, roster: roster, counter: &a.counter, records: &a.records, doubts: &a.doubts,
		damping: &a.decisions.damping, mass: &a.decisions.mass, trust: a.trust,
	}
	a.views = zoneViews{clock, deadlines, &a.zones, &a.effects, map[health.EndpointID][]differingView{}}
	a.clock.maxPause = a.settings.longestStaleness()
	return a
}

// Configure changes the options. A wait in progress keeps its end. Later waits use o; doubt
// uses o from the next Report or Tick on.
func (a *Aggregator) Configure(o Options) {
	if a.settings.configure(o) {
		a.records.queueAll()
	}
	a.clock.maxPause = a.settings.longestStaleness()
}

// Reserve makes room for many new endpoints, to save time.
func (a *Aggregator) Reserve(endpoints int) {
	a.roster.endpoints = slices.Grow(a.roster.endpoints, endpoints)
}

// Set adds an endpoint, or changes how it is checked. A new endpoint starts with the
// verdict last, or UNKNOWN if last is zero. For a known endpoint, Set ignores last
// and keeps the votes, and decides it again if its rule changed.
func (a *Aggregator) Set(e Endpoint, last health.Verdict) {
	x, t := a.roster.makeRoom(e.ID), termsOf(&e)
	if !x.has(isKnown) {
		a.add(x, &e, &t, last)
		a.decisions.witnesses.join(e.ID)
	} else {
		if a.clusters.key(x.cluster) != e.Cluster {
			a.decisions.leaveCluster(e.ID, x)
			a.clusters.join(x, e.Cluster)
		}
		if a.settings.ofEndpoint(x).terms != t {
			a.adopt(e.ID, x, &t)
		}
	}
	a.clock.maxPause = a.settings.longestStaleness()
	a.place(e.ID, x, e.Zone)
}

// add makes a new endpoint known.
func (a *Aggregator) add(x *endpoint, e *Endpoint, t *terms, last health.Verdict) {
	*x = endpoint{verdictTime: never, flags: x.flags&isMarked | isKnown, status: last.Status}
	a.decisions.setUnobserved(x, true)
	x.policy = a.settings.use(t)
	a.clusters.join(x, e.Cluster)
	if !last.Since.IsZero() {
		x.verdictTime = last.Since.UnixNano()
	}
	if e.Rule.Unobserved != Hold {
		a.decisions.awaitAbsent(e.ID, x) // gives its checkers time to report
		a.roster.mark(e.ID, x)
	}
}

// RestorePenalty restores the penalty of an endpoint from before a restart. It comes after the
// endpoint's first Set, and ignores unknown endpoints.
func (a *Aggregator) RestorePenalty(now time.Time, id health.EndpointID, p Penalty) {
	a.clock.advance(now)
	if e := a.roster.endpoint(id); e != nil && !e.has(isFlapping) {
		a.decisions.damping.restore(id, e, p)
	}
}

// adopt changes the terms of an endpoint.
func (a *Aggregator) adopt(id health.EndpointID, e *endpoint, t *terms) {
	number := a.settings.use(t)
	p, previous := a.settings.policy(number), a.settings.ofEndpoint(e)
	if previous.class != p.class {
		a.records.clear(e)
		a.roster.mark(id, e)
	}
	sameRule := previous.Rule == p.Rule
	a.settings.drop(e.policy)
	e.policy = number
	for _, s := range a.roster.seatsOf(e) {
		a.presence.joinClass(s.checker, p.class)
	}
	if !sameRule {
		a.intake.reapply(id, e)
	}
}

// place puts an endpoint into a zone.
func (a *Aggregator) place(id health.EndpointID, e *endpoint, locality health.Locality) {
	zone := a.zones.enter(locality)
	defer a.zones.leave(e.zone)
	if zone == e.zone {
		return
	}
	a.records.clear(e)
	e.zone = zone
	a.roster.mark(id, e)
}

// Remove forgets an endpoint, its verdict and its votes.
func (a *Aggregator) Remove(id health.EndpointID) {
	e := a.roster.endpoint(id)
	if e == nil {
		return
	}
	for e.count > 0 {
		a.vacate(e, int(e.count)-1)
	}
	a.losses.forget(id)
	a.decisions.leaveCluster(id, e)
	a.settings.drop(e.policy)
	a.decisions.setUnobserved(e, false)
	a.decisions.witnesses.leave(e)
	a.zones.leave(e.zone)
	*e = endpoint{flags: e.flags & isMarked}
	a.views.forget(id)
}

// Assign gives a checker a seat at an endpoint, and the pair begins to warm up. If
// the checker has that seat already, its host was re-created and the pair begins
// anew. Assign ignores unknown endpoints.
func (a *Aggregator) Assign(now time.Time, id health.EndpointID, checker string) {
	a.clock.advance(now)
	e := a.roster.endpoint(id)
	if e == nil || e.count == math.MaxUint8 {
		return
	}
	c := a.number(checker)
	if i := a.roster.indexOf(e, c); i >= 0 {
		a.intake.recreate(id, e, i)
		return
	}
	a.losses.fill(id)
	a.presence.joinClass(c, a.settings.ofEndpoint(e).class)
	a.presence.expect(checkerClass{c, a.settings.ofEndpoint(e).class})
	a.intake.await(id, e, a.roster.add(id, e, c))
	a.roster.mark(id, e)
}

// Unassign removes the checker's seat at the endpoint, and its vote.
func (a *Aggregator) Unassign(now time.Time, id health.EndpointID, checker string) {
	a.clock.advance(now)
	if e, i := a.roster.find(id, checker); i >= 0 {
		a.losses.vacate(id, e, a.roster.checker(a.roster.seatsOf(e)[i].checker))
		a.vacate(e, i)
		a.roster.mark(id, e)
	}
}

// vacate removes seat i of an endpoint.
func (a *Aggregator) vacate(e *endpoint, i int) {
	s := &a.roster.seatsOf(e)[i]
	c := s.checker
	a.records.set(e, s, 0)
	a.blindness.leave(s)
	a.roster.remove(e, i)
	a.release(c)
}

// Connected records that the checker began a stream. Its earlier votes no longer
// count, and its pairs warm up again.
func (a *Aggregator) Connected(now time.Time, k health.Checker) {
	a.clock.advance(now)
	c := a.number(k.ID)
	a.roster.checker(c).fresh = k.Abilities.Has(health.FreshCodes)
	a.move(c, k.Locality)
	a.presence.connected(c)
	a.intake.restart(c)
}

// move puts a checker into a zone.
func (a *Aggregator) move(c uint32, locality health.Locality) {
	k, zone := a.roster.checker(c), a.zones.enter(locality)
	defer a.zones.leave(k.zone)
	if zone == k.zone {
		return
	}
	for _, v := range k.votes {
		a.records.set(a.roster.row(v.Endpoint), a.roster.seat(v.Endpoint, c), 0)
	}
	a.presence.move(c, zone)
	a.roster.markAll(c)
}

// Lost records that the checker's stream is gone. Its votes count until they are
// stale; its next report counts as the first of a new stream.
func (a *Aggregator) Lost(checker string) {
	if c, ok := a.roster.lookup(checker); ok {
		a.presence.lost(c)
		a.roster.markAll(c)
		a.release(c)
	}
}

// RestoreLost sets the number of checkers that were lost before this process began and have
// neither come back nor been replaced, and the time of the last loss. If votes are missing,
// Rule.QuorumHold counts from then.
func (a *Aggregator) RestoreLost(now time.Time, count int, last time.Time) {
	a.clock.advance(now)
	for _, id := range a.losses.earlier.set(uint16(min(count, math.MaxUint16)), a.clock.elapsed-now.Sub(last)) {
		a.losses.mark(id)
	}
}

// SetTrust sets an operator's trust in a checker, known or not. Reasons show the
// given reason where the checker's votes do not count.
func (a *Aggregator) SetTrust(checker string, trust OperatorTrust, reason string) {
	a.trust.set(checker, trust, reason)
	c, ok := a.roster.lookup(checker)
	if !ok {
		return
	}
	if a.roster.checker(c).trust = trust; trust == Trusted {
		a.blindness.clear(c, "an operator trusts it")
	}
	a.doubts.setTrust(c, trust)
}

// number returns the number of a checker, and numbers a new checker.
func (a *Aggregator) number(checker string) uint32 {
	c := a.roster.number(checker)
	a.roster.checker(c).trust = a.trust.get(checker)
	return c
}

// release forgets a checker that is gone and has no seat.
func (a *Aggregator) release(c uint32) {
	k := a.roster.checker(c)
	if k.connected || len(k.votes) > 0 {
		return
	}
	a.doubts.forget(c)
	a.blindness.clear(c, "it is gone")
	a.zones.leave(k.zone)
	a.roster.drop(c)
	a.presence.forget()
}

// Report applies the changed votes of a checker's report. A report without votes only
// shows that the checker is alive. Votes at endpoints where the checker has no seat
// are ignored.
func (a *Aggregator) Report(now time.Time, checker string, votes []health.Vote) Effects {
	a.clock.advance(now)
	c, ok := a.roster.lookup(checker)
	if !ok {
		return a.Tick(now)
	}
	if a.presence.returned(c) {
		a.intake.restart(c)
	}
	if a.presence.hear(c) {
		a.intake.restartRuns(c)
		a.roster.markAll(c)
	}
	a.runDue() // after hear, so that the checker does not fall silent and come back at once
	a.intake.growRuns(c)
	a.intake.apply(c, votes)
	idle := a.roster.markedCount() == 0 && !a.records.pending() && !a.divisions.pending() && !a.presence.pending() && a.effects.Empty()
	if idle { // as after most reports
		return Effects{}
	}
	return a.step()
}

// Tick applies the due changes, and those recorded since the latest Report or Tick.
func (a *Aggregator) Tick(now time.Time) Effects {
	a.clock.advance(now)
	a.runDue()
	return a.step()
}

// runDue passes each due deadline to its part.
func (a *Aggregator) runDue() {
	for now := a.clock.tick(); ; {
		t, ok := a.deadlines.next()
		if !ok || t > now {
			return
		}
		list := a.deadlines.pop()
		for _, d := range list {
			a.due(d, t)
		}
		a.deadlines.recycle(list)
	}
}

// due passes a deadline to the part that set it.
func (a *Aggregator) due(d deadline, t tick) {
	switch {
	case d.checker == dueZoneView:
		if e := a.roster.endpoint(d.endpoint); e != nil {
			a.roster.mark(d.endpoint, e)
		}
	case d.endpoint == noEndpoint && d.checker == noChecker:
		a.doubts.pathsDue(t)
	case d.endpoint == noEndpoint:
		a.doubts.due(d.checker, t)
		a.presence.due(d.checker, t)
	case d.checker < dueVacancy:
		a.intake.due(d, t)
	default:
		a.decisions.due(d, t)
	}
}

// step decides the endpoints that are marked and returns the effects.
func (a *Aggregator) step() Effects {
	a.presence.findDeserted()
	for i := 0; i < a.roster.markedCount(); i++ {
		if e := a.roster.row(a.roster.markedAt(i)); e.has(isKnown) {
			a.doubts.refresh(e)
		}
	}
	a.doubts.review()
	a.effects.Changes = a.decisions.decideMarked()
	a.effects.Crossed = a.clusters.takeCrossed()
	if a.settings.zoneViews() {
		a.updateViews()
	}
	a.roster.clearMarked()
	if a.records.anyCut() {
		for i := range a.effects.Changes {
			a.doubts.compareChanged(a.effects.Changes[i].Endpoint)
		}
	}
	return a.effects.drain()
}

// updateViews updates the zone views of the endpoints that were just decided.
func (a *Aggregator) updateViews() {
	for i := range a.roster.markedCount() {
		id := a.roster.markedAt(i)
		e := a.roster.row(id)
		if !e.has(isKnown) || e.verdictTime == never {
			a.views.forget(id)
			continue
		}
		p := a.settings.ofEndpoint(e)
		a.views.update(id, e.status, a.counter.byZone(e, believed, cutOff), a.settings.staleness(p.class), renameRounds*p.roundTime())
	}
}

// NextDeadline returns the time for the next Tick if nothing else happens. That Tick may have
// no work.
func (a *Aggregator) NextDeadline() (time.Time, bool) {
	if a.roster.markedCount() > 0 || a.records.pending() || a.presence.pending() || !a.effects.Empty() {
		return a.clock.now, true
	}
	t, ok := a.deadlines.next()
	if !ok {
		return time.Time{}, false
	}
	return a.clock.time(t), true
}
