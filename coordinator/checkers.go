package coordinator

import (
	"context"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/fleet"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/store"
)

// sink posts what checkers do to the core. It implements hds.Sink.
type sink struct{ *core }

// Connected implements hds.Sink. It waits until the core knows of the checker, so
// that nothing made for the stream before is sent on the new one.
func (s sink) Connected(k health.Checker) {
	// The only error is that hdsd stops.
	_ = s.ask(context.Background(), func() { s.connect(k, time.Now()) })
}

// Ended implements hds.Sink.
func (s sink) Ended(id string) {
	s.post(func() { s.rollout.Ended(id) })
}

// Disconnected implements hds.Sink.
func (s sink) Disconnected(id string) {
	s.forgetHeard(id)
	s.post(func() { s.disconnect(id, time.Now()) })
}

// Reported implements hds.Sink.
func (s sink) Reported(id string, votes []health.Vote) {
	if len(votes) == 0 {
		s.postHeard(id, func() { s.report(id, nil, time.Now()) })
		return
	}
	read := time.Now()
	s.post(func() {
		s.report(id, votes, time.Now())
		s.metrics.votes.delay.Observe(time.Since(read).Seconds())
	})
}

// Silent implements hds.Sink.
func (s sink) Silent(id string, silent bool) {
	s.post(func() { s.setSilent(id, silent, time.Now()) })
}

// Accepted implements hds.Sink.
func (s sink) Accepted(id string, spec *specifier.Specifier) {
	s.post(func() { s.accept(id, spec, time.Now()) })
}

// connect takes in a checker whose stream begins.
func (c *core) connect(k health.Checker, now time.Time) {
	began := time.Now()
	effects := c.fleet.Connect(now, k) // first, since the rollout asks who is a newcomer
	c.rollout.Connect(now, &k)
	c.upkeep.troubles.back(k)
	c.log.Info().Str("event", "checker_connected").Str("checker", k.ID).Str("version", k.Version).
		Str("zone", k.Locality.Zone).Msg("checker connected")
	chronicle{c.history}.joined(now, &k)
	c.applyFleet(now, began, effects)
}

// disconnect keeps the seats of a checker that is lost.
func (c *core) disconnect(id string, now time.Time) {
	c.rollout.Disconnect(now, id)
	c.applyFleet(now, time.Now(), c.fleet.Disconnect(now, id))
	c.upkeep.troubles.gone(id)
}

// accept notes that a checker follows a specifier, and may be sent the next.
func (c *core) accept(id string, spec *specifier.Specifier, now time.Time) {
	c.rollout.Accepted(now, id, spec)
	c.want(now)
}

// setSilent notes that a checker is silent, or reports after all.
func (c *core) setSilent(id string, silent bool, now time.Time) {
	c.applyFleet(now, time.Now(), c.fleet.SetSilent(now, id, silent))
}

// report takes in a report, with the votes that have changed.
func (c *core) report(id string, votes []health.Vote, now time.Time) {
	effects := c.fleet.Report(now, id, len(votes) > 0)
	c.applyFleet(now, now, effects)
	if effects.Ignored {
		return
	}
	for i := range votes {
		// An Envoy keeps the code of an HTTP check that has become another.
		if k, _ := c.rulings.At(votes[i].Endpoint); k != nil && !k.HTTP {
			votes[i].HTTPStatusCode = 0
		}
	}
	c.rollout.Report(now, id, votes)
	c.newcomers.Report(now, id, votes)
	c.applyVerdicts(now, c.judge.Report(now, id, votes))
}

// begin starts the time to settle, when the servers listen.
func (c *core) begin(now time.Time) {
	c.fleet.Begin(now)
	c.applyRulings(now, c.rulings.Start(now))
}

// applyFleet carries out what the fleet decided, after it began at a time of the machine's
// clock.
func (c *core) applyFleet(now, began time.Time, e fleet.Effects) {
	if e.Planned {
		c.metrics.plan.took.Observe(time.Since(began).Seconds())
	}
	if e.Settled {
		c.applyRulings(now, c.rulings.Settle(now))
		c.forgetAbsent()
		c.upkeep.forgetAt = now.Add(forgetAfter)
		c.rollout.Start(now)
		c.upkeep.alarms.settle()
	}
	c.rulings.Strand(now, e.Stranded, e.Checkable)
	for _, id := range slices.Concat(e.Stranded, e.Checkable) {
		if k, _ := c.rulings.At(id); k != nil {
			c.upkeep.snapshots.Change(k.Source.Name)
		}
	}
	fleetLog{c.log, c.timing.grace}.write(e.Events)
	chronicle{c.history}.follow(now, e.Events)
	c.upkeep.troubles.follow(now, e.Events)
	c.upkeep.alarms.watched(now, e.Events)
	for _, id := range e.Silent {
		c.rollout.Silent(now, id)
	}
	for _, id := range e.Newcomers {
		c.newcomers.Begin(id)
	}
	for i := range e.Votes {
		c.expectVotes(now, &e.Votes[i])
	}
	for i := range e.Votes {
		c.countNewcomer(now, &e.Votes[i])
	}
	c.want(now, e.Specify...)
	if len(e.Rows) > 0 {
		c.history.SavePlan(e.Rows)
	}
	if len(e.Established) > 0 {
		c.history.SaveEstablished(storedEstablished(e.Established))
	}
	for _, id := range e.GivenUp {
		c.rollout.Forget(id)
		c.newcomers.Forget(id)
	}
	if e.Planned {
		c.metrics.plan.update(c.fleet.Plan, e.Moves)
	}
	if e.Recount {
		c.metrics.fleet.update(c.fleet.Figures())
	}
}

// expectVotes tells the aggregator which votes of a checker to expect.
func (c *core) expectVotes(now time.Time, v *fleet.VoteChange) {
	if v.Connected != nil {
		c.judge.Connected(now, *v.Connected)
	}
	if v.Lost {
		c.judge.Lost(v.Checker)
	}
	for _, id := range v.Unassign {
		c.judge.Unassign(now, id, v.Checker)
	}
	for _, id := range v.Assign {
		c.judge.Assign(now, id, v.Checker)
	}
}

// countNewcomer counts what a checker has said on probation, where it has a seat now.
func (c *core) countNewcomer(now time.Time, v *fleet.VoteChange) {
	votes := c.newcomers.On(v.Checker, v.Assign)
	if len(v.Assign) > 0 && !c.fleet.OnProbation(v.Checker) {
		c.newcomers.Forget(v.Checker)
	}
	if len(votes) > 0 {
		c.applyVerdicts(now, c.judge.Report(now, v.Checker, votes))
	}
}

// lookup answers what the rooms ask of each other.
type lookup struct{ core *core }

// Standing implements fleet.Lookup.
func (l lookup) Standing(checker string) fleet.Standing {
	switch c := l.core; {
	case c.trust[checker].Level == store.Distrusted:
		return fleet.Distrusted
	case c.judge.DoubtReason(checker) != "":
		return fleet.Doubted
	case c.judge.BlindReason(checker) != "":
		return fleet.Blind
	}
	return fleet.Believed
}

// Believes implements fleet.Lookup.
func (l lookup) Believes(id health.EndpointID, checker string) bool {
	return l.core.judge.Believes(id, checker)
}

// Compare implements fleet.Lookup.
func (l lookup) Compare(id health.EndpointID, checker string) fleet.Comparison {
	isUp, ok := l.core.judge.Majority(id)
	if !ok {
		return fleet.Alone
	}
	return l.compare(id, checker, isUp)
}

// CompareVerdict implements fleet.Lookup.
func (l lookup) CompareVerdict(id health.EndpointID, checker string) fleet.Comparison {
	status := l.core.judge.Verdict(id).Status
	if !status.Up() && !status.Down() {
		return fleet.Alone
	}
	return l.compare(id, checker, status.Up())
}

func (l lookup) compare(id health.EndpointID, checker string, isUp bool) fleet.Comparison {
	vote, voted := l.core.newcomers.Of(checker, id)
	switch {
	case !voted || !vote.Status.Up() && !vote.Status.Down():
		return fleet.Unreported
	case vote.Status.Up() == isUp:
		return fleet.Same
	}
	return fleet.Opposite
}

// Endpoint implements rollout.Lookup.
func (l lookup) Endpoint(id health.EndpointID) (*catalog.Cluster, int) { return l.core.rulings.At(id) }

// ID implements rollout.Lookup.
func (l lookup) ID(hash health.Hash) health.EndpointID {
	id, _ := l.core.rulings.Find(hash)
	return id
}

// Connected implements rollout.Lookup.
func (l lookup) Connected(checker string) bool { return l.core.fleet.Connected(checker) }

// OnProbation implements rollout.Lookup.
func (l lookup) OnProbation(checker string) bool { return l.core.fleet.OnProbation(checker) }

// CanCheck implements fleet.Lookup.
func (l lookup) CanCheck(k *health.Checker, id health.EndpointID) bool {
	cluster, index := l.core.rulings.At(id)
	return cluster != nil && index != catalog.None && !l.core.upkeep.targets.Waits(cluster.Hashes[index]) &&
		k.Abilities.Has(cluster.Checked.Needs...) && cluster.Reach.Includes(k) &&
		mayBe(cluster, *cluster.Checked.LocalityOf(index), k.Locality)
}

// mayBe reports whether the placement of a cluster lets checkers of a zone check an
// endpoint of another.
func mayBe(k *catalog.Cluster, endpoint, checker health.Locality) bool {
	if endpoint.Region == "" && endpoint.Zone == "" {
		return true
	}
	sameRegion := endpoint.Region == checker.Region
	return (k.Regions != assign.OwnOnly || sameRegion) && (k.Zones != assign.OwnOnly || sameRegion && endpoint.Zone == checker.Zone)
}

// storedEstablished returns who is established as the store keeps it.
func storedEstablished(changed map[string]*fleet.Established) map[string]*store.Established {
	all := make(map[string]*store.Established, len(changed))
	for id, e := range changed {
		if all[id] = nil; e != nil {
			all[id] = &store.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
		}
	}
	return all
}
