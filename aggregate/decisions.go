package aggregate

import (
	"slices"

	"hdsd/health"
)

// decisions derives the verdicts of marked endpoints from their votes.
type decisions struct {
	clock     *clock
	settings  *settings
	roster    *roster
	clusters  *clusters
	counter   *counter
	blindness *blindness
	reasons   *reasons
	waits     waits
	budgets   budgets
	damping   damping
	mass      massFailures

	witnesses  witnesses
	unobserved int      // endpoints without a vote that counts
	changes    []Change // in this step
}

// decideMarked decides every marked endpoint, and those that it marks itself.
func (d *decisions) decideMarked() []Change {
	d.changes = d.changes[:0]
	var t tally
	for i := 0; i < d.roster.markedCount(); {
		for ; i < d.roster.markedCount(); i++ {
			d.update(d.roster.markedAt(i), &t)
		}
		d.resolveContested()
	}
	if len(d.changes) == 0 {
		return nil
	}
	defer clear(d.changes)
	return slices.Clone(d.changes)
}

// due passes a deadline to the part that set it.
func (d *decisions) due(x deadline, t tick) {
	switch x.checker {
	case dueMassFailure:
		d.mass.due(uint32(x.endpoint), t)
	case dueBudget:
		d.budgets.due(x.endpoint, t)
	case dueVacancy:
		d.counter.losses.due(x.endpoint, t)
	case dueDamping:
		d.damping.due(x.endpoint, t)
	default:
		d.waits.due(x.endpoint, t)
	}
}

// awaitAbsent awaits the absent checkers of an endpoint.
func (d *decisions) awaitAbsent(id health.EndpointID, e *endpoint) { d.waits.awaitAbsent(id, e) }

// resolveContested takes down the endpoints whose contested downs need not wait.
func (d *decisions) resolveContested() {
	for c := range d.mass.resolve() {
		e := d.roster.row(c.id)
		var t tally
		d.counter.tally(c.id, d.settings.ofEndpoint(e), e, &t)
		d.change(c.id, e, c.status, &t)
		d.mass.release(e)
	}
}

// update decides one endpoint and applies the result.
func (d *decisions) update(id health.EndpointID, t *tally) {
	e := d.roster.row(id)
	e.clear(isMarked)
	if !e.has(isKnown) {
		return
	}
	d.budgets.check(e)
	p := d.settings.ofEndpoint(e)
	status := d.decide(id, p, e, t)
	d.trackOutages(id, p, e, t)
	if e.has(isFlapping) {
		status = d.damping.damp(id, e, status, p.side(t, neither), d.clusters.mostlyDown(e))
	}
	if status.Down() && !e.status.Down() && p.MassHold > 0 && !e.has(budgetSpent) && d.isContested(e, t) {
		d.mass.contest(id, e, status)
		d.budgets.spend(id, e)
		return
	}
	if status != e.status {
		d.change(id, e, status, t)
	} else {
		d.updateBudget(id, e, t)
	}
	if e.has(isHeldBack) {
		d.mass.release(e)
	}
}

// decide returns the status given by the votes.
func (d *decisions) decide(id health.EndpointID, p *policy, e *endpoint, t *tally) health.Status {
	d.counter.tally(id, p, e, t)
	d.counter.losses.judge(id, p, t)
	if previous := e.votersOf(); d.witnesses.count(id, e, int(t.up+t.down)) {
		d.clusters.recount(e, previous)
	}
	status, outcome := p.decide(t, e.status)
	if outcome == unobserved || outcome == lapsed {
		d.setUnobserved(e, true)
		return status
	}
	if e.has(isUnobserved) && t.absent > 0 && !e.has(budgetSpent) {
		d.waits.awaitAbsent(id, e)
		d.counter.tally(id, p, e, t)
		status, _ = p.decide(t, e.status)
	}
	d.setUnobserved(e, false)
	return d.waits.confirm(id, p, e, t, status)
}

// damped counts the endpoints that are held down because they flap.
func (d *decisions) damped() int { return d.damping.count }

// setUnobserved records whether an endpoint has no vote that counts.
func (d *decisions) setUnobserved(e *endpoint, value bool) {
	switch current := e.has(isUnobserved); {
	case value && !current:
		e.set(isUnobserved)
		d.unobserved++
	case current && !value:
		e.clear(isUnobserved)
		d.unobserved--
	}
}

// isContested reports whether a down waits in a mass failure. It does if some vote that counts
// says up, unless several zones say down and none says up.
func (d *decisions) isContested(e *endpoint, t *tally) bool {
	if t.up == 0 {
		return false
	}
	ups, downs := 0, 0
	for _, z := range d.counter.byZone(e, believed) {
		switch z.majority() {
		case up:
			ups++
		case down:
			downs++
		}
	}
	return ups > 0 || downs < 2
}

// trackOutages records which checkers see an outage, and which miss it.
func (d *decisions) trackOutages(id health.EndpointID, p *policy, e *endpoint, t *tally) {
	isDown := t.down > t.up
	if !isDown && !e.has(isFailing) {
		return
	}
	if e.clear(isFailing); isDown {
		e.set(isFailing)
	}
	list := d.roster.seatsOf(e)
	for i := range list {
		s, now := &list[i], noOutage
		switch {
		case !isDown || d.counter.judge(p, e, s, d.roster.checker(s.checker)) != believed:
		case s.status.Up():
			if !t.inside || t.answered || d.roster.checker(s.checker).zone != e.zone {
				now = missed // otherwise the path to the endpoint may be cut
			}
		case t.down > 1:
			now = seen
		}
		if s.outage != now {
			d.blindness.set(id, p, s, now)
		}
	}
}

// change applies the verdict given by a tally.
func (d *decisions) change(id health.EndpointID, e *endpoint, status health.Status, t *tally) {
	previous := e.status
	if previous.Up() && status.Down() {
		d.damping.fell(id, e)
	}
	d.clusters.setStatus(e, status)
	d.clusterChanged(e.cluster)
	previousTime := e.sinceTime()
	e.verdictTime = d.clock.now.UnixNano()
	d.changes = append(d.changes, Change{
		Endpoint: id, From: previous, To: status, FromSince: previousTime, Reason: d.reasons.explain(id, e, t), Observations: d.reasons.observations(e),
	})
	d.budgets.refill(e)
}

// clusterChanged updates everything that depends on the number of a cluster's endpoints that
// are down.
func (d *decisions) clusterChanged(cluster uint32) {
	if d.clusters.get(cluster).mostlyDown() {
		d.damping.markHeld(cluster)
	}
	d.mass.check(cluster)
}

// leaveCluster takes an endpoint out of its cluster.
func (d *decisions) leaveCluster(id health.EndpointID, e *endpoint) {
	d.damping.forget(id, e)
	d.clusters.leave(e)
	if d.clusters.mostlyDown(e) {
		d.damping.markHeld(e.cluster)
	}
	d.mass.release(e)
	d.mass.check(e.cluster)
	if d.clusters.drop(e.cluster) {
		d.mass.forget(e.cluster)
	}
}

// updateBudget spends the wait budget of a just decided endpoint while its verdict waits. It
// refills the budget when votes past their warm-up agree with the verdict.
func (d *decisions) updateBudget(id health.EndpointID, e *endpoint, t *tally) {
	if d.isWaiting(id, e, t) {
		d.budgets.spend(id, e)
		return
	}
	if d.budgets.untouched(e) {
		return
	}
	d.budgets.stop(e)
	if side, ok := d.counter.heard(e); ok && (side == neither || side == sideOf(e.status)) {
		d.budgets.refill(e)
	}
}

// isWaiting reports whether the votes that count would give another verdict if none
// were awaited. It also returns true if no vote counts and downs warm up.
func (d *decisions) isWaiting(id health.EndpointID, e *endpoint, t *tally) bool {
	switch {
	case t.up > t.down && e.status.Down() && d.damping.suppresses(id, e) && !d.clusters.mostlyDown(e):
		return false // damping ends on its own
	case t.awaited == 0 && !e.has(awaitsConfirmation|awaitsAbsent|isHeldBack):
		return false
	case t.up+t.down == 0 && t.awaited > 0 && (t.warming > 0 || e.budget > 0):
		return true
	}
	alone := *t
	alone.expectNobody(e)
	status, _ := d.settings.ofEndpoint(e).decide(&alone, e.status)
	return status != e.status
}
