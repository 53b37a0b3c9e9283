package coordinator

import (
	"context"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/canary"
	"hdsd/health"
)

// The sink of the HDS server: what checkers do becomes events of the core.

// Connected has a checker take (or resume) its seat. It waits until that is
// done, so that nothing made for the checker's stream before is sent on the
// new one.
func (c *core) Connected(k health.Checker) {
	// The only error is that hdsd stops.
	_ = c.ask(context.Background(), func() { c.join(k, time.Now()) })
}

// Disconnected keeps a lost checker's seat for the grace period.
func (c *core) Disconnected(id string) {
	c.post(func() { c.lose(id, time.Now()) })
}

// Reported takes changed votes.
func (c *core) Reported(id string, votes []health.Vote) {
	read := time.Now()
	c.post(func() {
		c.hear(id, votes, time.Now())
		if len(votes) > 0 {
			c.metrics.judging.Observe(time.Since(read).Seconds())
		}
	})
}

func (c *core) hear(id string, votes []health.Vote, now time.Time) {
	known := c.checkers[id]
	if known != nil {
		known.heard = now
	}
	if m := c.silent[id]; m != nil && m.quiet {
		c.speakUp(id, now)
	} else if m != nil {
		return // a heartbeat, which would make it look as if it may vote soon
	}
	if known != nil && len(votes) > 0 {
		known.spoken = true
	}
	for i := range votes {
		// An Envoy keeps the code of an HTTP check that has become another.
		if k := c.table.rows[votes[i].Endpoint].cluster; k != nil && !k.HTTP {
			votes[i].HTTPStatusCode = 0
		}
	}
	c.witness(id, votes, now)
	c.publish(now, c.judge.Report(now, id, votes))
}

func (c *core) join(k health.Checker, now time.Time) {
	known := c.checkers[k.ID]
	if known == nil {
		known = &checker{}
		c.checkers[k.ID] = known
	}
	c.letGo(now, k.ID)
	known.says = k.Weight
	c.rules.SetCapacity(&k, known.says)
	known.Checker, known.connected, known.spoken = k, true, false
	known.cover, c.doubtStirred = uncovered, true
	known.build = canary.BuildOf(&k)
	c.canary.Connected(now, &k)
	delete(c.absent, k.ID)
	delete(c.silent, k.ID)
	c.log.Info().Str("event", "checker_connected").Str("checker", k.ID).Str("version", k.Version).
		Str("zone", k.Locality.Zone).Msg("checker connected")
	c.judge.Connected(now, k)
	c.follow(now, assign.Change{Join: []health.Checker{k}})
	c.instruct(now, k.ID) // at once: it waits
	c.metrics.fleet(c)
}

func (c *core) lose(id string, now time.Time) {
	known := c.checkers[id]
	if known == nil || !known.connected {
		return
	}
	known.connected, known.cover, c.doubtStirred = false, uncovered, true
	c.letGo(now, id)
	delete(c.silent, id)
	c.absent[id] = now.Add(c.timing.grace)
	if c.settling && c.absent[id].Before(c.settleAt) {
		c.absent[id] = c.settleAt
	}
	c.log.Warn().Str("event", "checker_lost").Str("checker", id).Dur("grace", c.timing.grace).
		Msg("checker lost; its seat is kept for the grace period")
	c.canary.Lost(now, id)
	c.judge.Lost(id)
	c.follow(now, assign.Change{Lost: []string{id}})
	c.metrics.fleet(c)
}

// begin lets the time to settle begin. Checkers of the stored plan have until
// its end to come back.
func (c *core) begin(now time.Time) {
	c.settleAt = now.Add(c.timing.settle)
	for id := range c.absent {
		c.absent[id] = c.settleAt
	}
	c.expire(now)
}

// settle ends settling when its time has come, and tells whether it did.
func (c *core) settle(now time.Time) bool {
	if !c.settling || c.settleAt.IsZero() || now.Before(c.settleAt) {
		return false
	}
	c.settling, c.doubtStirred = false, true
	c.part(now)
	c.forgetAt = now
	c.stirAt = now
	return true
}

// seatsNamed is how many checkers one line of the log names.
const seatsNamed = 10

// giveUpSeats moves what checkers had that did not come back in time. When the
// time to settle after a start has just ended, the plan may move from now on
// in any case.
func (c *core) giveUpSeats(now time.Time, settled bool) {
	var gone []string
	for id, at := range c.absent {
		if !at.IsZero() && !now.Before(at) {
			gone = append(gone, id)
			delete(c.absent, id)
			delete(c.checkers, id)
			c.canary.Leave(id)
		}
	}
	if len(gone) == 0 && !settled {
		return
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		c.log.Warn().Str("event", "seats_given_up").Int("count", len(gone)).
			Strs("checkers", gone[:min(len(gone), seatsNamed)]).
			Msg("checkers did not come back in time; others take over")
	}
	c.follow(now, assign.Change{Leave: gone})
	c.metrics.fleet(c)
}

// follow changes the plan. Those whose plan moves are sent their specifiers soon.
func (c *core) follow(now time.Time, change assign.Change) {
	change.Settling = c.settling
	began := time.Now()
	diff := c.planner.Apply(change)
	c.metrics.planning.Observe(time.Since(began).Seconds())
	moved := 0
	for _, move := range diff.Moves {
		c.dispatch.move(move.Checker)
		moved += len(move.Add) + len(move.Remove)
		for _, id := range move.Remove {
			if !c.keep(now, id, move.Checker) {
				c.judge.Unassign(now, id, move.Checker)
			}
		}
		for _, id := range move.Add {
			if !c.handovers.end(id, move.Checker) {
				c.judge.Assign(now, id, move.Checker)
			}
		}
	}
	for _, u := range diff.Uncheckable {
		c.stranded[u.Endpoint] = struct{}{}
	}
	for _, id := range diff.Checkable {
		delete(c.stranded, id)
	}
	c.metrics.plan(c, moved)
	c.unstorePlan(change.Leave)
}
