package machine

import (
	"time"

	"hdsd/envoy/specifier"
	"hdsd/rollout"
	"hdsd/rollout/canary"
	"hdsd/store"
)

// want sends specifiers to checkers as soon as it is their turn.
func (m *Machine) want(now time.Time, checkers ...string) {
	for _, id := range checkers {
		m.Rollout.Pace.Want(now, id)
	}
	for id, ok := m.Rollout.Pace.Next(now); ok; id, ok = m.Rollout.Pace.Next(now) {
		m.specify(now, id)
	}
}

// specify makes and sends the specifier of a checker.
func (m *Machine) specify(now time.Time, id string) {
	work, ok := m.Fleet.Work(id)
	if !ok {
		m.Rollout.NoSpecifier(id)
		return
	}
	for _, endpoint := range work.Ended {
		m.Judge.Unassign(now, endpoint, id)
	}
	spec, votes := m.Rollout.Specifier(now, id, rollout.Work{
		Endpoints: work.Endpoints, Count: work.Count, Handovers: work.Handovers, Sample: work.Sample,
	})
	for _, v := range votes {
		if v.Unassign {
			m.Judge.Unassign(now, v.Endpoint, id)
		}
		if v.Assign {
			m.Judge.Assign(now, v.Endpoint, id)
		}
	}
	m.yield(Specified{id, spec})
}

// tickTrials does what is due of trials.
func (m *Machine) tickTrials(now time.Time) {
	effects := m.Rollout.Tick(now, func(id string, atOnce bool) {
		if atOnce {
			m.specify(now, id)
			return
		}
		m.Rollout.Pace.Want(now, id)
	})
	m.want(now)
	if len(effects.Events)+len(effects.Records) > 0 {
		m.yield(TrialsChanged{effects})
	}
}

// forgetAbsent forgets the trials of clusters and the penalties of endpoints that no source
// has after a start, once that is certain.
func (m *Machine) forgetAbsent() {
	if m.Rulings.IsConclusive() {
		m.Rollout.ForgetAbsent()
		m.penalties.forgetAbsent(m.Rulings)
	}
}

// recordOf returns a record from what the store keeps.
func recordOf(stored *store.Trials) canary.Record {
	r := canary.Record{Retries: stored.Retries}
	for _, p := range stored.Proven {
		r.Proven = append(r.Proven, canary.Proof{Build: canary.Build(p.Build), Shape: specifier.Shape(p.Shape)})
	}
	for _, shape := range stored.Blamed {
		r.Blamed = append(r.Blamed, specifier.Shape(shape))
	}
	for _, loss := range stored.Losses {
		r.Losses = append(r.Losses, canary.Loss(loss))
	}
	return r
}
