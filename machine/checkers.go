package machine

import (
	"time"

	"hdsd/fleet"
	"hdsd/health"
)

// applyFleet carries out what the fleet decided, and all that follows.
func (m *Machine) applyFleet(now time.Time, e fleet.Effects) {
	m.carryOutFleet(now, e)
	m.followUp(now)
}

func (m *Machine) carryOutFleet(now time.Time, e fleet.Effects) {
	if e.Settled {
		m.applyRulings(now, m.Rulings.Settle(now))
		m.forgetAbsent()
		m.forgetAt = now.Add(ForgetAfter)
		m.Rollout.Start(now)
	}
	m.Rulings.Strand(now, e.Stranded, e.Checkable)
	if e.Settled || e.Planned || e.Recount || len(e.Events)+len(e.Stranded)+len(e.Checkable)+len(e.Rows)+len(e.Established) > 0 {
		kept := e // on the heap only here
		m.yield(FleetChanged{&kept})
	}
	m.Troubles.follow(now, e.Events)
	for i := range e.Events {
		if e.Events[i].Kind == fleet.NewcomersEstablished {
			m.replace(now, e.Events[i].Checkers...)
		}
	}
	for _, id := range e.Silent {
		m.Rollout.Silent(now, id)
	}
	for _, id := range e.Newcomers {
		m.Newcomers.Begin(id)
	}
	for i := range e.Votes {
		m.expectVotes(now, &e.Votes[i])
	}
	for i := range e.Votes {
		m.seat(&e.Votes[i])
	}
	m.want(now, e.Specify...)
	for _, id := range e.GivenUp {
		m.Rollout.Forget(id)
		m.Newcomers.Forget(id)
	}
}

// replace tells the aggregator of checkers that come in place of those that were lost before a restart.
func (m *Machine) replace(now time.Time, checkers ...string) {
	for _, id := range checkers {
		if m.Troubles.earlier.fill(id) {
			m.restoreLost(now)
		}
	}
}

// restoreLost tells the aggregator of the checkers that were lost before a restart.
func (m *Machine) restoreLost(now time.Time) {
	earlier := &m.Troubles.earlier
	m.Judge.RestoreLost(now, earlier.count, earlier.last)
}

// expectVotes tells the aggregator which votes of a checker to expect.
func (m *Machine) expectVotes(now time.Time, v *fleet.VoteChange) {
	if v.Connected != nil {
		m.Judge.Connected(now, *v.Connected)
	}
	if v.Lost {
		m.Judge.Lost(v.Checker)
	}
	for _, id := range v.Unassign {
		m.Judge.Unassign(now, id, v.Checker)
	}
	for _, id := range v.Assign {
		m.Judge.Assign(now, id, v.Checker)
	}
}

// seat takes note of what a checker has said on probation, where it has a seat now.
func (m *Machine) seat(v *fleet.VoteChange) {
	votes := m.Newcomers.On(v.Checker, v.Assign)
	if len(v.Assign) > 0 && !m.Fleet.OnProbation(v.Checker) {
		m.Newcomers.Forget(v.Checker)
	}
	if p := &m.pending; len(votes) > 0 {
		p.seated = append(p.seated, Reported{v.Checker, votes})
	}
}

// followUp does what has to wait until the effects of something else are carried out, until there
// is no more: it counts the votes of checkers that have seats now, and plans again where a zone is
// divided.
func (m *Machine) followUp(now time.Time) {
	for p := &m.pending; ; {
		switch {
		case len(p.seated) > 0:
			next := p.seated[0]
			p.seated = p.seated[1:]
			m.carryOutVerdicts(now, m.Judge.Report(now, next.Checker, next.Votes))
		case p.divided:
			p.divided = false
			m.carryOutFleet(now, m.Fleet.Apply(now))
		default:
			return
		}
	}
}

// report passes changed votes of a checker to the rooms.
func (m *Machine) report(now time.Time, checker string, votes []health.Vote) {
	effects := m.Fleet.Report(now, checker, len(votes) > 0)
	m.applyFleet(now, effects)
	if effects.Ignored {
		return
	}
	for i := range votes {
		// An Envoy keeps the code of an HTTP check that has become another.
		if k, _ := m.Rulings.At(votes[i].Endpoint); k != nil && !k.HTTP {
			votes[i].HTTPStatusCode = 0
		}
	}
	m.Rollout.Report(now, checker, votes)
	m.Newcomers.Report(now, checker, votes)
	m.applyVerdicts(now, m.Judge.Report(now, checker, votes))
}
