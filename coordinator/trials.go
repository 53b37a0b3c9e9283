package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/rollout"
	"hdsd/coordinator/rollout/canary"
	"hdsd/store"
)

// want sends specifiers to checkers as soon as it is their turn.
func (c *core) want(now time.Time, checkers ...string) {
	for _, id := range checkers {
		c.rollout.Pace.Want(now, id)
	}
	for id, ok := c.rollout.Pace.Next(now); ok; id, ok = c.rollout.Pace.Next(now) {
		c.specify(now, id)
	}
}

// specify makes and sends the specifier of a checker.
func (c *core) specify(now time.Time, id string) {
	work, ok := c.fleet.Work(id)
	if !ok {
		c.rollout.NoSpecifier(id)
		return
	}
	for _, endpoint := range work.Ended {
		c.judge.Unassign(now, endpoint, id)
	}
	spec, votes := c.rollout.Specifier(now, id, rollout.Work{
		Endpoints: work.Endpoints, Count: work.Count, Handovers: work.Handovers, Sample: work.Sample,
	})
	for _, v := range votes {
		if v.Unassign {
			c.judge.Unassign(now, v.Endpoint, id)
		}
		if v.Assign {
			c.judge.Assign(now, v.Endpoint, id)
		}
	}
	c.metrics.rollout.specifiers.Inc()
	c.hds.Assign(id, spec)
}

// tickTrials does what is due of trials.
func (c *core) tickTrials(now time.Time) {
	effects := c.rollout.Tick(now, func(id string, atOnce bool) {
		if atOnce {
			c.specify(now, id)
			return
		}
		c.rollout.Pace.Want(now, id)
	})
	c.want(now)
	for i := range effects.Events {
		logTrial(&c.log, &effects.Events[i])
		c.metrics.rollout.count(effects.Events[i].Kind)
		c.upkeep.snapshots.Change(effects.Events[i].Cluster)
	}
	if len(effects.Events) > 0 {
		c.metrics.rollout.update(c.rollout.Trials(), c.rollout.BlockedClusters())
	}
	if len(effects.Records) > 0 {
		c.history.SaveTrials(storedTrials(effects.Records))
	}
}

// forgetAbsent forgets the trials of clusters and the penalties of endpoints that no source
// has after a start, once that is certain.
func (c *core) forgetAbsent() {
	if c.rulings.IsConclusive() {
		c.rollout.ForgetAbsent()
		c.upkeep.penalties.forgetAbsent(c.rulings)
	}
}

// logTrial logs what became of a trial.
func logTrial(log *zerolog.Logger, e *rollout.Event) {
	switch e.Kind {
	case canary.Started:
		log.Debug().Str("event", "canary_started").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a new or changed cluster goes to this checker first")
	case canary.Proven:
		log.Debug().Str("event", "canary_proven").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker survived its first probe of a cluster: others of its build get it")
	case canary.Lost:
		log.Warn().Str("event", "canary_lost").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker was lost while it tried a cluster: the cluster is tried once more, alone, when no checker comes or goes")
	case canary.Blocked:
		log.Error().Str("event", "canary_blocked").Str("cluster", e.Cluster).Str("checker", e.Checker).Msg(e.Reason)
	case canary.NotAccepted:
		log.Warn().Str("event", "canary_not_accepted").Str("cluster", e.Cluster).Str("checker", e.Checker).
			Msg("a checker does not report what it was sent with this cluster, or nothing any more: the cluster is tried elsewhere, alone")
	case canary.Withdrawn: // without a result
	}
}

// storedTrials returns records as the store keeps them.
func storedTrials(records map[string]*canary.Record) map[string]*store.Trials {
	all := make(map[string]*store.Trials, len(records))
	for name, r := range records {
		if r == nil {
			all[name] = nil
			continue
		}
		out := &store.Trials{Retries: r.Retries}
		for _, p := range r.Proven {
			out.Proven = append(out.Proven, store.Proof{Build: uint64(p.Build), Shape: uint64(p.Shape)})
		}
		for _, shape := range r.Blamed {
			out.Blamed = append(out.Blamed, uint64(shape))
		}
		for _, loss := range r.Losses {
			out.Losses = append(out.Losses, store.Loss(loss))
		}
		all[name] = out
	}
	return all
}

// recordOf returns a record from what the store keeps.
func recordOf(stored *store.Trials) canary.Record {
	r := canary.Record{Retries: stored.Retries}
	for _, p := range stored.Proven {
		r.Proven = append(r.Proven, canary.Proof{Build: canary.Build(p.Build), Shape: canary.Shape(p.Shape)})
	}
	for _, shape := range stored.Blamed {
		r.Blamed = append(r.Blamed, canary.Shape(shape))
	}
	for _, loss := range stored.Losses {
		r.Losses = append(r.Losses, canary.Loss(loss))
	}
	return r
}
