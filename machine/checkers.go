package machine

import (
	"time"

	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
)

// applyFleet applies effects of the fleet, and then the pending work.
func (m *Machine) applyFleet(now time.Time, e fleet.Effects) {
	m.applyFleetOnly(now, e)
	m.drainPending(now)
}

// applyFleetOnly applies effects of the fleet.
func (m *Machine) applyFleetOnly(now time.Time, e fleet.Effects) {
	if e.Settled {
		m.applyRulings(now, m.Rulings.Settle(now))
		m.forgetAbsent()
		m.nextForget = now.Add(ForgetDelay)
		m.Rollout.Start(now)
	}
	m.Rulings.Strand(now, e.Stranded, e.Checkable)
	if e.Settled || e.Planned || e.Recount || len(e.Events)+len(e.Stranded)+len(e.Checkable) > 0 {
		escaping := e // allocates only here
		m.yield(FleetChanged{&escaping})
	}
	if len(e.Rows)+len(e.Established) > 0 {
		m.yield(Logged{&log.Entry{Plan: e.Rows, Established: establishedRows(e.Established)}})
	}
	m.Troubles.applyEvents(now, e.Events)
	for i := range e.Events {
		if e.Events[i].Kind == fleet.NewcomersEstablished {
			m.replaceLost(now, e.Events[i].Checkers...)
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
		m.queueSeatedVotes(&e.Votes[i])
	}
	m.sendSpecifiers(now, e.Specify...)
	for _, id := range e.GivenUp {
		m.Rollout.Forget(id)
		m.Newcomers.Forget(id)
	}
}

// replaceLost lets checkers take the places of checkers that were lost before a restart.
func (m *Machine) replaceLost(now time.Time, checkers ...string) {
	for _, id := range checkers {
		if m.Troubles.earlier.fill(id) {
			m.restoreLost(now)
		}
	}
}

// restoreLost gives the aggregator the number of checkers that were lost before a restart, and the time of the latest loss.
func (m *Machine) restoreLost(now time.Time) {
	earlier := &m.Troubles.earlier
	m.Aggregator.RestoreLost(now, earlier.count, earlier.last)
}

// expectVotes changes the votes that the aggregator expects of a checker.
func (m *Machine) expectVotes(now time.Time, v *fleet.VoteChange) {
	if v.Connected != nil {
		m.Aggregator.Connected(now, *v.Connected)
	}
	if v.Lost {
		m.Aggregator.Lost(v.Checker)
	}
	for _, id := range v.Unassign {
		m.Aggregator.Unassign(now, id, v.Checker)
	}
	for _, id := range v.Assign {
		m.Aggregator.Assign(now, id, v.Checker)
	}
}

// queueSeatedVotes queues the votes that a checker on probation gave for the endpoints of its new seats.
func (m *Machine) queueSeatedVotes(v *fleet.VoteChange) {
	votes := m.Newcomers.On(v.Checker, v.Assign)
	if len(v.Assign) > 0 && !m.Fleet.OnProbation(v.Checker) {
		m.Newcomers.Forget(v.Checker)
	}
	if p := &m.pending; len(votes) > 0 {
		p.seatedVotes = append(p.seatedVotes, Reported{v.Checker, votes})
	}
}

// drainPending drains the pending work, which must not run within the effects that caused it. It counts the
// votes of checkers with new seats, and plans again after the division of a zone.
func (m *Machine) drainPending(now time.Time) {
	for p := &m.pending; ; {
		switch {
		case len(p.seatedVotes) > 0:
			next := p.seatedVotes[0]
			p.seatedVotes = p.seatedVotes[1:]
			m.applyVerdictsOnly(now, m.Aggregator.Report(now, next.Checker, next.Votes))
		case p.divided:
			p.divided = false
			m.applyFleetOnly(now, m.Fleet.Apply(now))
		default:
			return
		}
	}
}

// report passes the changed votes of a checker to the rooms.
func (m *Machine) report(now time.Time, checker string, votes []health.Vote) {
	effects := m.Fleet.Report(now, checker, len(votes) > 0)
	m.applyFleet(now, effects)
	if effects.Ignored {
		return
	}
	for i := range votes {
		// Envoy keeps the code of a former HTTP check after the check has changed its kind.
		if k, _ := m.Rulings.At(votes[i].Endpoint); k != nil && !k.HTTP {
			votes[i].HTTPStatusCode = 0
		}
	}
	m.Rollout.Report(now, checker, votes)
	m.Newcomers.Report(now, checker, votes)
	m.applyVerdicts(now, m.Aggregator.Report(now, checker, votes))
}

// establishedRows returns the rows of established checkers.
func establishedRows(changed map[string]*fleet.Established) map[string]*log.Established {
	all := make(map[string]*log.Established, len(changed))
	for id, e := range changed {
		if all[id] = nil; e != nil {
			all[id] = &log.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
		}
	}
	return all
}
