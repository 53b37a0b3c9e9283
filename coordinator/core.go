package coordinator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/eds"
	"hdsd/hds/specifier"
	"hdsd/health"
)

// Stages that the core tells what to do, as small as it needs them.
type (
	checkerServer interface {
		Assign(id string, s *specifier.Specifier)
	}
	resourceServer interface {
		Update(eds.Update)
		SetHealth([]eds.Health)
	}
	historian interface {
		Append([]health.Transition)
		SavePlan(map[string][]health.Hash)
		RememberClusters([]string)
		Forget(known func(health.Hash) bool)
	}
)

// timing is what the core takes from the configuration once.
type timing struct {
	report, grace, settle time.Duration
}

// core is the judge: all of its methods but run and post run on one goroutine.
type core struct {
	*mailbox

	// Set once.
	log     zerolog.Logger
	timing  timing
	hds     checkerServer
	eds     resourceServer
	history historian
	metrics *metrics

	// Owned by the goroutine of run.
	planner     *assign.Planner
	judge       *aggregate.Aggregator
	table       *table
	rules       *rules
	clusters    map[string]*cluster
	names       []string                       // of the clusters, sorted
	services    map[string]map[string]*cluster // by the name their assignment is published under
	quarantined int                            // clusters and endpoints
	checkers    map[string]*checker            // connected, or with a seat
	absent      map[string]time.Time           // when the seats of those not connected are given up; zero: not yet known
	stranded    map[health.EndpointID]struct{}
	problems    map[string]bool                // of the sources, that were logged
	settling    bool                           // after a start; nothing moves
	settleAt    time.Time                      // when that ends; zero until the servers listen
	last        map[health.Hash]health.Verdict // known at the start; nil once settled
	forgetAt    time.Time                      // when the store may next forget what is gone
	transitions *transitionLog
}

// checker is one that is connected or whose seat is kept.
type checker struct {
	health.Checker
	connected bool
	assigned  int
}

// connected is how many checkers are.
func (c *core) connected() int { return len(c.checkers) - len(c.absent) }

func newCore(t timing, log zerolog.Logger, m *metrics) *core {
	return &core{
		mailbox: newMailbox(), log: log, timing: t, metrics: m, transitions: newTransitionLog(log),
		planner: assign.New(assign.Options{}),
		judge:   aggregate.New(aggregate.Options{Staleness: aggregate.DefaultStaleness(t.report), Settle: t.settle + 2*t.report}),
		table:   newTable(), clusters: map[string]*cluster{}, services: map[string]map[string]*cluster{},
		checkers: map[string]*checker{}, absent: map[string]time.Time{}, stranded: map[health.EndpointID]struct{}{},
	}
}

// resume takes up what was stored, before anything else. Nothing moves until
// the time to settle has passed, which begins with begin.
func (c *core) resume(last map[health.Hash]health.Verdict, plan map[string][]health.Hash) {
	c.last, c.settling = last, true
	c.planner.Restore(plan)
	for id := range plan {
		c.checkers[id] = &checker{Checker: health.Checker{ID: id}}
		c.absent[id] = time.Time{}
	}
}

// run works until stop is closed.
func (c *core) run(stop <-chan struct{}) {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for heard := 0; ; {
		select {
		case <-stop:
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
	c.giveUpSeats(now, c.settle(now))
	c.publish(now, c.judge.Tick(now))
	c.transitions.count(now)
	c.letForget(now)
	next := now.Add(longestSleep)
	if at, ok := c.judge.NextDeadline(); ok && at.Before(next) {
		next = at
	}
	if c.settling && !c.settleAt.IsZero() && c.settleAt.Before(next) {
		next = c.settleAt
	}
	for _, at := range c.absent {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// forgetEvery is the time between two occasions for the store to let go of the
// health of endpoints that nobody knows any more.
const forgetEvery = 6 * time.Hour

func (c *core) letForget(now time.Time) {
	if c.settling || now.Before(c.forgetAt) {
		return
	}
	c.forgetAt = now.Add(forgetEvery)
	// Clusters do not change, so the store's goroutine can look into them.
	present := slices.Collect(maps.Values(c.clusters))
	hashes := sync.OnceValue(func() map[health.Hash]struct{} { return hashesOf(present) })
	c.history.Forget(func(hash health.Hash) bool {
		_, known := hashes()[hash]
		return known
	})
}

// hashesOf gives those of all endpoints, checked or not.
func hashesOf(clusters []*cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.entries {
			all[k.entries[i].key.Hash()] = struct{}{}
		}
	}
	return all
}

// publish has verdicts take effect: subscribers first, then the history.
func (c *core) publish(now time.Time, changes []aggregate.Change) {
	if len(changes) == 0 {
		return
	}
	healths := make([]eds.Health, len(changes))
	transitions := make([]health.Transition, len(changes))
	for i, change := range changes {
		row := &c.table.rows[change.Endpoint]
		row.status, row.judged = change.To, true
		healths[i] = eds.Health{ID: change.Endpoint, Status: change.To}
		transitions[i] = health.Transition{
			Time: now, Endpoint: row.key(), From: change.From, To: change.To,
			Reason: change.Reason, Observations: change.Observations,
		}
	}
	c.eds.SetHealth(healths)
	c.history.Append(transitions)
	for i := range transitions {
		c.metrics.transition(&transitions[i])
		c.transitions.tell(&transitions[i])
	}
}
