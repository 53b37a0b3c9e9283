package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/catalog/targets"
	"hdsd/fleet"
	"hdsd/fleet/probation"
	"hdsd/log"
	"hdsd/rollout"
	"hdsd/ruling"
)

// Timing holds the durations of the configuration. A change of them needs a restart.
type Timing struct {
	Report, Grace, Settle time.Duration
	ZoneViews             bool // some data planes get the health from the view of their zone
}

// aggregatorOptions returns the options of the aggregator.
func (t *Timing) aggregatorOptions(trust aggregate.BeliefLimits) aggregate.Options {
	trust = catalog.WithDefaults(trust, t.Report)
	return aggregate.Options{Staleness: trust.Staleness, Doubt: trust.Doubt, AwaitFor: t.Settle + 2*t.Report, ZoneViews: t.ZoneViews}
}

// checkTiming returns the timing of the health checks of a cluster.
func (t *Timing) checkTiming(k *catalog.Cluster) aggregate.Timing {
	checks := &k.Checked.Timing
	return aggregate.Timing{
		Interval: checks.Interval, Timeout: checks.Timeout, InitialJitter: checks.InitialJitter,
		UnhealthyThreshold: checks.UnhealthyThreshold, HealthyThreshold: checks.HealthyThreshold, ReportInterval: t.Report,
	}
}

// Machine joins the rooms. Step passes each event to the rooms in a fixed order, carries values from one
// room to the next, and yields effects. The owner may read the rooms, also between two effects. Only Step
// and Restore change them.
type Machine struct {
	Timing Timing // set once

	Rules      *catalog.Rules
	Fleet      *fleet.Fleet          // checkers, plan and handovers
	Newcomers  *probation.Votes      // votes of checkers on probation
	Rollout    *rollout.Rollout      // specifiers and trials
	Aggregator *aggregate.Aggregator // votes and verdicts
	Trust      Trust                 // trust of operators in checkers
	Rulings    *ruling.Table         // published health, overrides, freezes
	Targets    *targets.Table        // probes by address, and endpoints without room
	Troubles   Troubles              // lost, doubted and blind checkers

	penalties      penalties
	pause          pause
	pending        pending
	nextForget     time.Time     // time of the next ForgetDue
	wait           time.Duration // to the next tick
	yield          func(Effect)  // of the current step
	changedCluster string        // cluster of the latest EndpointsChanged of the current step
}

// pending holds the work that waits until the current effects are applied.
type pending struct {
	seatedVotes []Reported // earlier votes of checkers for the endpoints of their new seats
	divided     bool       // the division of zones has changed since the last plan
}

// New returns a Machine without state.
func New(t Timing) *Machine {
	m := &Machine{
		Timing: t, Aggregator: aggregate.New(t.aggregatorOptions(aggregate.BeliefLimits{})), Trust: Trust{}, Newcomers: probation.New(),
		Targets: targets.New(), penalties: newPenalties(), Troubles: newTroubles(),
	}
	m.Rulings = ruling.New(m.Aggregator.Verdict)
	m.Fleet = fleet.New(fleet.Options{Report: t.Report, Grace: t.Grace, Settle: t.Settle}, lookup{m})
	m.Rollout = rollout.New(rollout.Options{Report: t.Report, Grace: t.Grace}, lookup{m})
	return m
}

// Step handles one event. It yields each effect as soon as the effect is certain, and the owner must carry
// out the effects in this order. So data planes do not wait for the plan that follows.
func (m *Machine) Step(now time.Time, e Event, yield func(Effect)) {
	m.yield, m.changedCluster = yield, ""
	e.handle(m, now)
	m.yield = nil
}

// Wait returns the time from the latest Tick to the next.
func (m *Machine) Wait() time.Duration { return m.wait }

// maxSleep is the longest time between two ticks.
const maxSleep = time.Second

// handle lets the rooms do their due work. The fleet comes first, so specifiers and verdicts follow the
// current plan.
func (e Tick) handle(m *Machine, now time.Time) {
	listenEnd, paused := m.pause.tick(now, m.Timing.Report)
	if paused > 0 {
		m.yield(PauseEnded{paused})
	}
	if m.wait = listenEnd.Sub(now); m.wait > 0 {
		return
	}
	received := now
	if !e.ReceivedUntil.IsZero() {
		received = e.ReceivedUntil
	}
	m.applyFleet(now, m.Fleet.Tick(now, received))
	m.tickTrials(now)
	m.applyFleet(now, m.Fleet.Dispatch(now))
	m.applyVerdicts(now, m.Aggregator.Tick(now))
	m.applyRulings(now, m.Rulings.Expire(now))
	m.applyRulings(now, m.Rulings.Release(now))
	m.applyRulings(now, m.Rulings.TakeOver(now))
	if changed := m.penalties.take(now); changed != nil {
		m.yield(Logged{&log.Entry{Penalties: changed}})
	}
	m.requestForget(now)
	m.Troubles.Expire(now)
	m.yield(TickHandled{})
	m.wait = m.sleep(now)
}

// sleep returns the time to the earliest deadline of a room.
func (m *Machine) sleep(now time.Time) time.Duration {
	next := now.Add(maxSleep)
	for _, room := range []interface{ NextDeadline() (time.Time, bool) }{m.Fleet, m.Rollout, m.Aggregator, m.Rulings} {
		if due, ok := room.NextDeadline(); ok && due.Before(next) {
			next = due
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// ForgetInterval is the time from one ForgetDue to the next.
const ForgetInterval = 6 * time.Hour

// ForgetDelay is the time from the end of the time to settle to the first ForgetDue. A read of the whole
// store takes a tenth of the processor time of a restart, and checkers wait for their specifiers then.
const ForgetDelay = 5 * time.Minute

// requestForget yields ForgetDue when it is time.
func (m *Machine) requestForget(now time.Time) {
	if m.Rulings.IsConclusive() && !now.Before(m.nextForget) {
		m.nextForget = now.Add(ForgetInterval)
		m.yield(ForgetDue{})
	}
}

// Unlogged returns the plan and the penalties that no entry has yet. The owner stores them at the end.
func (m *Machine) Unlogged(now time.Time) *log.Entry {
	m.penalties.taken = time.Time{}
	return &log.Entry{Plan: m.Fleet.Rows(), Penalties: m.penalties.take(now)}
}

// applyVerdicts applies effects of the aggregator, and then the pending work.
func (m *Machine) applyVerdicts(now time.Time, effects aggregate.Effects) {
	m.applyVerdictsOnly(now, effects)
	m.drainPending(now)
}

// applyVerdictsOnly applies effects of the aggregator.
func (m *Machine) applyVerdictsOnly(now time.Time, effects aggregate.Effects) {
	if len(effects.Doubts)+len(effects.Blindness)+len(effects.MassFailures)+len(effects.Divided)+len(effects.Crossed) > 0 {
		escaping := effects // allocates only here
		m.yield(VotesJudged{&escaping})
	}
	m.Troubles.applyFindings(now, &effects)
	if len(effects.Doubts)+len(effects.Blindness) > 0 {
		m.Fleet.Reconsider()
	}
	for _, d := range effects.Divided {
		m.Fleet.Divide(d.Zone, d.Over)
		m.pending.divided = true
	}
	m.penalties.update(m.Rulings, effects.Penalties)
	m.applyRulings(now, m.Rulings.Decide(now, effects.Changes, effects.ZoneViews))
}
