package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hdsd/aggregate"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/decision"
	"hdsd/coordinator/fleet"
	"hdsd/coordinator/probation"
	"hdsd/coordinator/query"
	"hdsd/coordinator/rollout"
	"hdsd/coordinator/ruling"
	"hdsd/coordinator/targets"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/store"
)

// What the core asks of other stages.
type (
	checkerServer interface {
		Assign(id string, s *specifier.Specifier)
	}
	historian interface {
		historyWriter
		SavePlan(map[string][]health.Hash)
		SaveTrials(map[string]*store.Trials)
		SaveEstablished(map[string]*store.Established)
		SavePenalties(map[health.Hash]*store.Penalty)
		Forget(known func(health.Hash) bool)
	}
)

// timing holds the durations that need a restart to change.
type timing struct {
	report, grace, settle time.Duration
	zoneViews             bool // some data planes get the health that their zone sees
}

// aggregating returns the options of the aggregator.
func (t timing) aggregating(trust aggregate.BeliefLimits) aggregate.Options {
	trust = catalog.WithDefaults(trust, t.report)
	return aggregate.Options{Staleness: trust.Staleness, Doubt: trust.Doubt, AwaitFor: t.settle + 2*t.report, ZoneViews: t.zoneViews}
}

// of returns the timing of a cluster's checks.
func (t timing) of(k *catalog.Cluster) aggregate.Timing {
	checks := &k.Checked.Timing
	return aggregate.Timing{
		Interval: checks.Interval, Timeout: checks.Timeout, InitialJitter: checks.InitialJitter,
		UnhealthyThreshold: checks.UnhealthyThreshold, HealthyThreshold: checks.HealthyThreshold, ReportInterval: t.report,
	}
}

// core joins the rooms. Each event from the mailbox, and each tick, goes to the rooms in
// a fixed order; the core carries their effects out and hands values from one to the
// next. All of its methods run on the goroutine of run, apart from those of the mailbox.
type core struct {
	*mailbox

	// Set once.
	log     zerolog.Logger
	timing  timing
	hds     checkerServer
	history historian
	metrics *metrics

	// Owned by the goroutine of run.
	rules     *catalog.Rules
	fleet     *fleet.Fleet          // who checks what
	newcomers *probation.Votes      // what those on probation say
	rollout   *rollout.Rollout      // which version of a cluster each checker gets
	judge     *aggregate.Aggregator // what the votes come to
	trust     trust                 // what operators say of checkers
	rulings   *ruling.Table         // what data planes get
	decisions *decisions            // the log, and who follows it
	upkeep    upkeep
}

// upkeep is what the core has to do for its process, its store and its status.
type upkeep struct {
	targets *targets.Table // counts probes by address; endpoints without room wait

	pause    pause
	forgetAt time.Time // when the store may next forget what is gone

	penalties penalties
	troubles  troubles // since when checkers are lost, doubted or blind
	alarms    alarms   // what is wrong as a whole

	snapshots *query.Snapshots // what queries see

	outside sync.Map // by hdsd's own name of a cluster: its name for everybody else, if that differs

	took func(time.Duration) // called with how long each event and tick took; nil: nobody asks
}

func newCore(t timing, log zerolog.Logger, m *metrics, planes resourceServer, history historian) *core {
	c := &core{
		mailbox: newMailbox(m.waiting), log: log, timing: t, metrics: m, history: history,
		judge: aggregate.New(t.aggregating(aggregate.BeliefLimits{})),
		trust: trust{}, newcomers: probation.New(), upkeep: upkeep{targets: targets.New(), penalties: newPenalties(), troubles: newTroubles(), alarms: newAlarms(log, &m.states), snapshots: query.NewSnapshots()},
		decisions: newDecisions(planes, history, log, &m.rulings),
	}
	c.upkeep.alarms.changed = c.upkeep.snapshots.Change
	c.rulings = ruling.New(c.judge.Verdict)
	c.fleet = fleet.New(fleet.Options{Report: t.report, Grace: t.grace, Settle: t.settle}, lookup{c})
	c.rollout = rollout.New(rollout.Options{Report: t.report, Grace: t.grace}, lookup{c})
	return c
}

// run handles events and ticks until stop is closed.
func (c *core) run(stop <-chan struct{}) {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for handled := 0; ; {
		select {
		case <-stop:
			if rows := c.fleet.Rows(); len(rows) > 0 {
				c.history.SavePlan(rows)
			}
			c.upkeep.penalties.save(time.Now(), c.history, true)
			return
		case event := <-c.events:
			began := time.Now()
			event()
			c.measure(began)
			// Events that have arrived come before the tick, which may find someone late.
			if handled++; handled < mailboxSize && len(c.events) > 0 {
				continue
			}
		case <-c.upkeep.snapshots.Due():
			began := time.Now()
			c.leaveBehind()
			c.measure(began)
			continue
		case <-timer.C:
		}
		handled = 0
		began := time.Now()
		timer.Reset(c.tick(began))
		c.measure(began)
	}
}

// leaveBehind goes on with the snapshot that queries wait for.
func (c *core) leaveBehind() {
	for _, name := range c.judge.TakeChanged() {
		c.upkeep.snapshots.Change(name)
	}
	c.upkeep.snapshots.Step(view{c})
}

// measure says how long something took.
func (c *core) measure(began time.Time) {
	if c.upkeep.took != nil {
		c.upkeep.took(time.Since(began))
	}
}

// longestSleep is the longest time between two ticks.
const longestSleep = time.Second

// tick lets each room do what is due, and returns the time until the next tick. The
// fleet comes first, so that specifiers and verdicts go by the present plan.
func (c *core) tick(now time.Time) time.Duration {
	until, paused := c.upkeep.pause.listenUntil(now, c.timing.report)
	if paused > 0 {
		c.log.Warn().Str("event", "paused").Dur("lasted", paused).
			Msg("hdsd did nothing for a while: it, or its machine, was paused or had no processor time; no checker is late for that")
	}
	if now.Before(until) {
		return until.Sub(now)
	}
	c.applyFleet(now, now, c.fleet.Tick(now, c.heardUntil(now)))
	c.tickTrials(now)
	c.applyFleet(now, now, c.fleet.Dispatch(now))
	c.applyVerdicts(now, c.judge.Tick(now))
	c.applyRulings(now, c.rulings.Expire(now))
	c.applyRulings(now, c.rulings.Release(now))
	c.applyRulings(now, c.rulings.TakeOver(now))
	c.metrics.rulings.paced.Set(float64(c.rulings.Paced()))
	c.decisions.events.transitions.logOmitted(now)
	c.decisions.events.logLeftOut(now, c.rulings.Paced())
	c.upkeep.penalties.save(now, c.history, false)
	c.forgetGone(now)
	c.upkeep.troubles.expire(now)
	checkers := c.fleet.Figures()
	c.upkeep.alarms.left(now, &quorum{
		connected: checkers.Connected, lost: len(c.upkeep.troubles.lost), awaited: checkers.Seated - checkers.Connected,
		planned: c.rules.Redundancy(), short: c.judge.Short(),
	})
	c.upkeep.alarms.limitProbes(now, c.upkeep.targets)
	c.upkeep.alarms.raise(now)
	return c.sleep(now)
}

// sleep returns how long nothing is due in any room.
func (c *core) sleep(now time.Time) time.Duration {
	next := now.Add(longestSleep)
	for _, room := range []interface{ NextDeadline() (time.Time, bool) }{c.fleet, c.rollout, c.judge, c.rulings} {
		if at, ok := room.NextDeadline(); ok && at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// forgetEvery is how often the store may forget the health of endpoints that are gone.
const forgetEvery = 6 * time.Hour

// forgetAfter is the delay of the first time after hdsd has settled: to read the whole store takes a
// tenth of a restart's processor time, while checkers wait for their work.
const forgetAfter = 5 * time.Minute

// forgetGone lets the store forget the health of endpoints that are gone, now and then.
func (c *core) forgetGone(now time.Time) {
	if !c.rulings.IsConclusive() || now.Before(c.upkeep.forgetAt) {
		return
	}
	c.upkeep.forgetAt = now.Add(forgetEvery)
	// A Cluster does not change, so the store's goroutine may read it.
	present := slices.Collect(c.rulings.Clusters())
	hashes := sync.OnceValue(func() map[health.Hash]struct{} { return hashesOf(present) })
	c.history.Forget(func(hash health.Hash) bool {
		_, known := hashes()[hash]
		return known
	})
}

// hashesOf returns the hashes of all endpoints, checked or not.
func hashesOf(clusters []*catalog.Cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.Endpoints {
			all[k.Endpoints[i].Hash()] = struct{}{}
		}
	}
	return all
}

// applyVerdicts carries out what follows from the votes.
func (c *core) applyVerdicts(now time.Time, effects aggregate.Effects) {
	judgeLog{&c.log}.write(&effects)
	chronicle{c.history}.judged(now, &effects)
	c.upkeep.troubles.judged(now, &effects)
	c.upkeep.alarms.judged(now, c.judge, &effects)
	if len(effects.Doubts)+len(effects.Blindness) > 0 {
		c.fleet.Reconsider()
	}
	for _, d := range effects.Divided {
		c.fleet.Divide(d.Zone, d.Over)
		c.applyFleet(now, now, c.fleet.Apply(now))
	}
	c.upkeep.penalties.change(c.rulings, effects.Penalties)
	c.metrics.votes.count(&effects)
	c.metrics.votes.update(c.judge)
	c.applyRulings(now, c.rulings.Decide(now, effects.Changes, effects.ZoneViews))
}

// appendDecisions appends decisions to the log, whose followers carry them out at once.
func (c *core) appendDecisions(all []decision.Decision) {
	c.decisions.append(all)
	for i := range all {
		if len(all[i].Transitions) > 0 {
			c.metrics.rulings.setHealth(c.rulings.Counts())
			c.upkeep.alarms.notice(c.rulings, all[i].Transitions)
		}
		for n := range all[i].Transitions {
			c.upkeep.snapshots.Change(all[i].Transitions[n].Endpoint.Cluster)
		}
		if len(all[i].Overrides) > 0 {
			c.metrics.rulings.setOverrides(c.rulings.Overrides())
		}
		c.upkeep.alarms.decided(c.rulings, &all[i])
	}
}
