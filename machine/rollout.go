package machine

import (
	"time"

	"hdsd/envoy/specifier"
	"hdsd/log"
	"hdsd/rollout"
	"hdsd/rollout/canary"
)

// sendSpecifiers queues checkers for new specifiers, and yields the specifiers that are due.
func (m *Machine) sendSpecifiers(now time.Time, checkers ...string) {
	for _, id := range checkers {
		m.Rollout.Pace.Want(now, id)
	}
	for id, ok := m.Rollout.Pace.Next(now); ok; id, ok = m.Rollout.Pace.Next(now) {
		m.sendSpecifier(now, id)
	}
}

// sendSpecifier makes and yields the specifier of a checker.
func (m *Machine) sendSpecifier(now time.Time, id string) {
	work, ok := m.Fleet.Work(id)
	if !ok {
		m.Rollout.NoSpecifier(id)
		return
	}
	for _, endpoint := range work.Ended {
		m.Aggregator.Unassign(now, endpoint, id)
	}
	spec, votes := m.Rollout.Specifier(now, id, rollout.Work{
		Endpoints: work.Endpoints, Count: work.Count, Handovers: work.Handovers, Sample: work.Sample,
	})
	for _, v := range votes {
		if v.Unassign {
			m.Aggregator.Unassign(now, v.Endpoint, id)
		}
		if v.Assign {
			m.Aggregator.Assign(now, v.Endpoint, id)
		}
	}
	m.yield(SpecifierMade{id, spec})
}

// tickTrials does the due work of trials.
func (m *Machine) tickTrials(now time.Time) {
	effects := m.Rollout.Tick(now, func(id string, immediate bool) {
		if immediate {
			m.sendSpecifier(now, id)
			return
		}
		m.Rollout.Pace.Want(now, id)
	})
	m.sendSpecifiers(now)
	if len(effects.Events)+len(effects.Records) > 0 {
		m.yield(TrialsChanged{effects})
		m.log(&log.Entry{Trials: trialsRows(effects.Records)})
	}
}

// forgetAbsent forgets the trials and penalties of clusters and endpoints that no source has after a start,
// as soon as the sources are complete.
func (m *Machine) forgetAbsent() {
	if m.Rulings.IsConclusive() {
		m.Rollout.ForgetAbsent()
		m.penalties.forgetAbsent(m.Rulings)
	}
}

// trialRecord converts a record of trials from the form of the store.
func trialRecord(stored *log.Trials) canary.Record {
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

// trialsRows returns the rows of trials.
func trialsRows(records map[string]*canary.Record) map[string]*log.Trials {
	all := make(map[string]*log.Trials, len(records))
	for name, r := range records {
		if r == nil {
			all[name] = nil
			continue
		}
		trials := &log.Trials{Retries: r.Retries}
		for _, p := range r.Proven {
			trials.Proven = append(trials.Proven, log.Proof{Build: uint64(p.Build), Shape: uint64(p.Shape)})
		}
		for _, shape := range r.Blamed {
			trials.Blamed = append(trials.Blamed, uint64(shape))
		}
		for _, loss := range r.Losses {
			trials.Losses = append(trials.Losses, log.Loss(loss))
		}
		all[name] = trials
	}
	return all
}
