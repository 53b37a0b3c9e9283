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
	"hdsd/coordinator/rollout"
	"hdsd/coordinator/ruling"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/store"
)

// Stages that the core tells what to do, as small as it needs them.
type (
	checkerServer interface {
		Assign(id string, s *specifier.Specifier)
	}
	historian interface {
		historyWriter
		SavePlan(map[string][]health.Hash)
		SaveTrials(map[string]*store.Trials)
		Forget(known func(health.Hash) bool)
	}
)

// timing is what the core takes from the configuration once.
type timing struct {
	report, grace, settle time.Duration
	zoneViews             bool // what zones see is asked for
}

// judging gives the aggregator's options.
func (t timing) judging(trust aggregate.BeliefLimits) aggregate.Options {
	trust = catalog.WithDefaults(trust, t.report)
	return aggregate.Options{Staleness: trust.Staleness, Doubt: trust.Doubt, AwaitFor: t.settle + 2*t.report, ZoneViews: t.zoneViews}
}

// of gives the timing of the checks of a cluster.
func (t timing) of(k *catalog.Cluster) aggregate.Timing {
	checks := &k.Checked.Timing
	return aggregate.Timing{
		Interval: checks.Interval, Timeout: checks.Timeout, InitialJitter: checks.InitialJitter,
		UnhealthyThreshold: checks.UnhealthyThreshold, ReportInterval: t.report,
	}
}

// core is the judge: all of its methods but run and post run on one goroutine.
type core struct {
	*mailbox

	// Set once.
	log     zerolog.Logger
	timing  timing
	hds     checkerServer
	history historian
	metrics *metrics

	// Owned by the goroutine of run. First what there is to check:
	rules *catalog.Rules

	// Who checks it:
	fleet *fleet.Fleet
	pause pause

	// What may be sent of it:
	rollout *rollout.Rollout

	// What comes of it:
	judge     *aggregate.Aggregator
	trust     trust
	rulings   *ruling.Table
	decisions *decisions
	forgetAt  time.Time // when the store may next forget what is gone
}

func newCore(t timing, log zerolog.Logger, m *metrics, planes resourceServer, history historian) *core {
	c := &core{
		mailbox: newMailbox(m.waiting), log: log, timing: t, metrics: m, history: history,
		judge:     aggregate.New(t.judging(aggregate.BeliefLimits{})),
		trust:     trust{},
		decisions: newDecisions(planes, history, log, m),
	}
	c.rulings = ruling.New(c.judge.Verdict)
	c.fleet = fleet.New(fleet.Options{Report: t.report, Grace: t.grace, Settle: t.settle}, lookup{c})
	c.rollout = rollout.New(rollout.Options{Report: t.report, Grace: t.grace}, lookup{c})
	return c
}

// run works until stop is closed.
func (c *core) run(stop <-chan struct{}) {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for heard := 0; ; {
		select {
		case <-stop:
			if rows := c.fleet.Rows(); len(rows) > 0 {
				c.history.SavePlan(rows)
			}
			return
		case event := <-c.events:
			event()
			// What has arrived is heard before anyone is called late.
			if heard++; heard < mailboxSize && len(c.events) > 0 {
				continue
			}
		case <-timer.C:
		}
		heard = 0
		timer.Reset(c.tick(time.Now()))
	}
}

// longestSleep bounds the time between two ticks.
const longestSleep = time.Second

// tick does what is due and tells how long until the next.
func (c *core) tick(now time.Time) time.Duration {
	if until := c.pause.listenUntil(now, c.timing.report); now.Before(until) {
		return until.Sub(now)
	}
	c.carry(now, time.Now(), c.fleet.Tick(now))
	c.tickRollout(now)
	c.carry(now, time.Now(), c.fleet.Dispatch(now))
	c.publish(now, c.judge.Tick(now))
	c.rule(now, c.rulings.Expire(now))
	c.decisions.events.transitions.count(now)
	c.letForget(now)
	next := now.Add(longestSleep)
	wake := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	judge, _ := c.judge.NextDeadline()
	wake(judge)
	trials, _ := c.rollout.NextDeadline()
	wake(trials)
	wake(c.fleet.NextDeadline(now))
	if at, ok := c.rulings.NextDeadline(); ok {
		wake(at)
	}
	return max(next.Sub(now), time.Millisecond)
}

// forgetEvery is the time between two occasions for the store to let go of the
// health of endpoints that nobody knows any more.
const forgetEvery = 6 * time.Hour

func (c *core) letForget(now time.Time) {
	if !c.rulings.IsConclusive() || now.Before(c.forgetAt) {
		return
	}
	c.forgetAt = now.Add(forgetEvery)
	// Clusters do not change, so the store's goroutine can look into them.
	present := slices.Collect(c.rulings.Clusters())
	hashes := sync.OnceValue(func() map[health.Hash]struct{} { return hashesOf(present) })
	c.history.Forget(func(hash health.Hash) bool {
		_, known := hashes()[hash]
		return known
	})
}

// hashesOf gives those of all endpoints, checked or not.
func hashesOf(clusters []*catalog.Cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.Endpoints {
			all[k.Endpoints[i].Hash] = struct{}{}
		}
	}
	return all
}

// publish carries out what follows from the votes.
func (c *core) publish(now time.Time, effects aggregate.Effects) {
	judgeLog{&c.log, c.metrics}.write(&effects)
	if len(effects.Doubts)+len(effects.Blindness) > 0 {
		c.fleet.Reconsider()
	}
	c.metrics.damped.Set(float64(c.judge.Damped()))
	c.metrics.unobserved.Set(float64(c.judge.Unobserved()))
	c.decide(c.rulings.Decide(now, effects.Changes, effects.ZoneViews).Decisions)
}

// decide appends decisions to the log, which everyone follows at once.
func (c *core) decide(all []decision.Decision) {
	c.decisions.append(all)
	for i := range all {
		if len(all[i].Transitions) > 0 {
			c.metrics.judged(c.rulings.Counts())
		}
		if len(all[i].Overrides) > 0 {
			c.metrics.overridden(c.rulings)
		}
	}
}
