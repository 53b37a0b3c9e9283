package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/catalog/targets"
	"hdsd/fleet"
	"hdsd/fleet/probation"
	"hdsd/health"
	"hdsd/rollout"
	"hdsd/ruling"
	"hdsd/store"
)

// Timing holds the durations that need a restart to change.
type Timing struct {
	Report, Grace, Settle time.Duration
	ZoneViews             bool // some data planes get the health that their zone sees
}

// aggregating returns the options of the aggregator.
func (t *Timing) aggregating(trust aggregate.BeliefLimits) aggregate.Options {
	trust = catalog.WithDefaults(trust, t.Report)
	return aggregate.Options{Staleness: trust.Staleness, Doubt: trust.Doubt, AwaitFor: t.Settle + 2*t.Report, ZoneViews: t.ZoneViews}
}

// judging returns the timing of a cluster's checks.
func (t *Timing) judging(k *catalog.Cluster) aggregate.Timing {
	checks := &k.Checked.Timing
	return aggregate.Timing{
		Interval: checks.Interval, Timeout: checks.Timeout, InitialJitter: checks.InitialJitter,
		UnhealthyThreshold: checks.UnhealthyThreshold, HealthyThreshold: checks.HealthyThreshold, ReportInterval: t.Report,
	}
}

// Machine joins the rooms. Step passes each event to them in a fixed order, hands values from one to
// the next, and yields what they decide. Its owner may read the rooms, also between two effects; only
// Step and Restore change them.
type Machine struct {
	Timing Timing // set once

	Rules     *catalog.Rules
	Fleet     *fleet.Fleet          // who checks what
	Newcomers *probation.Votes      // what those on probation say
	Rollout   *rollout.Rollout      // which version of a cluster each checker gets
	Judge     *aggregate.Aggregator // what the votes come to
	Trust     Trust                 // what operators say of checkers
	Rulings   *ruling.Table         // what data planes get
	Targets   *targets.Table        // probes by address; endpoints without room wait
	Troubles  Troubles              // since when checkers are lost, doubted or blind

	penalties penalties
	pause     pause
	pending   pending
	forgetAt  time.Time // when the store may next forget what is gone
	wait      time.Duration
	yield     func(Effect) // takes the effects of the present step
	touched   string       // cluster of which the present step has last changed endpoints
}

// pending is what has to wait until the effects of something else are carried out.
type pending struct {
	seated  []Reported // votes that checkers gave on probation for endpoints on which they have seats now
	divided bool       // a zone has been divided since the last plan
}

// New makes a Machine that knows nothing.
func New(t Timing) *Machine {
	m := &Machine{
		Timing: t, Judge: aggregate.New(t.aggregating(aggregate.BeliefLimits{})), Trust: Trust{}, Newcomers: probation.New(),
		Targets: targets.New(), penalties: newPenalties(), Troubles: newTroubles(),
	}
	m.Rulings = ruling.New(m.Judge.Verdict)
	m.Fleet = fleet.New(fleet.Options{Report: t.Report, Grace: t.Grace, Settle: t.Settle}, lookup{m})
	m.Rollout = rollout.New(rollout.Options{Report: t.Report, Grace: t.Grace}, lookup{m})
	return m
}

// Step handles one event. It yields each effect as soon as that is certain, in the order in which they
// are to be carried out: data planes do not wait for the plan that follows.
func (m *Machine) Step(now time.Time, e Event, yield func(Effect)) {
	m.yield, m.touched = yield, ""
	e.handle(m, now)
	m.yield = nil
}

// Wait returns how long nothing is due after the latest Tick.
func (m *Machine) Wait() time.Duration { return m.wait }

// longestSleep is the longest time between two ticks.
const longestSleep = time.Second

// The fleet comes first, so that specifiers and verdicts go by the present plan.
func (e Tick) handle(m *Machine, now time.Time) {
	until, paused := m.pause.listenUntil(now, m.Timing.Report)
	if paused > 0 {
		m.yield(Paused{paused})
	}
	if m.wait = until.Sub(now); m.wait > 0 {
		return
	}
	heard := now
	if !e.Heard.IsZero() {
		heard = e.Heard
	}
	m.applyFleet(now, m.Fleet.Tick(now, heard))
	m.tickTrials(now)
	m.applyFleet(now, m.Fleet.Dispatch(now))
	m.applyVerdicts(now, m.Judge.Tick(now))
	m.applyRulings(now, m.Rulings.Expire(now))
	m.applyRulings(now, m.Rulings.Release(now))
	m.applyRulings(now, m.Rulings.TakeOver(now))
	if changed := m.penalties.take(now); changed != nil {
		m.yield(PenaltiesChanged{changed})
	}
	m.forgetGone(now)
	m.Troubles.Expire(now)
	m.yield(Ticked{})
	m.wait = m.sleep(now)
}

// sleep returns how long nothing is due in any room.
func (m *Machine) sleep(now time.Time) time.Duration {
	next := now.Add(longestSleep)
	for _, room := range []interface{ NextDeadline() (time.Time, bool) }{m.Fleet, m.Rollout, m.Judge, m.Rulings} {
		if due, ok := room.NextDeadline(); ok && due.Before(next) {
			next = due
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// ForgetEvery is how often the store may forget the health of endpoints that are gone.
const ForgetEvery = 6 * time.Hour

// ForgetAfter is the delay of the first time after hdsd has settled: to read the whole store takes a
// tenth of a restart's processor time, while checkers wait for their work.
const ForgetAfter = 5 * time.Minute

// forgetGone lets the store forget the health of endpoints that are gone, now and then.
func (m *Machine) forgetGone(now time.Time) {
	if m.Rulings.IsConclusive() && !now.Before(m.forgetAt) {
		m.forgetAt = now.Add(ForgetEvery)
		m.yield(Forgettable{})
	}
}

// Unstored returns the plan and the penalties that no effect has had the store keep, when hdsd ends.
func (m *Machine) Unstored(now time.Time) (plan map[string][]health.Hash, changed map[health.Hash]*store.Penalty) {
	m.penalties.saved = time.Time{}
	return m.Fleet.Rows(), m.penalties.take(now)
}

// applyVerdicts carries out what the votes come to, and all that follows.
func (m *Machine) applyVerdicts(now time.Time, effects aggregate.Effects) {
	m.carryOutVerdicts(now, effects)
	m.followUp(now)
}

func (m *Machine) carryOutVerdicts(now time.Time, effects aggregate.Effects) {
	if len(effects.Doubts)+len(effects.Blindness)+len(effects.MassFailures)+len(effects.Divided)+len(effects.Crossed) > 0 {
		kept := effects // on the heap only here
		m.yield(Judged{&kept})
	}
	m.Troubles.judged(now, &effects)
	if len(effects.Doubts)+len(effects.Blindness) > 0 {
		m.Fleet.Reconsider()
	}
	for _, d := range effects.Divided {
		m.Fleet.Divide(d.Zone, d.Over)
		m.pending.divided = true
	}
	m.penalties.change(m.Rulings, effects.Penalties)
	m.applyRulings(now, m.Rulings.Decide(now, effects.Changes, effects.ZoneViews))
}
