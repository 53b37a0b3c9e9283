package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/canary"
	"hdsd/coordinator/catalog"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/store"
)

// Accepted implements hds.Sink.
func (c *core) Accepted(id string, s *specifier.Specifier) {
	c.post(func() { c.followed(id, s, time.Now()) })
}

// followed notes that a checker has taken a specifier, and with it the clusters
// on trial there, but for those that were left out for its protocol's sake.
func (c *core) followed(id string, s *specifier.Specifier, now time.Time) {
	var has map[string]bool
	c.canary.Followed(now, id, s.Serial, func(name string) bool {
		if has == nil {
			has = map[string]bool{}
			for _, endpoint := range s.Order {
				if k, _ := c.rulings.At(endpoint); k != nil {
					has[k.Source.Name] = true
				}
			}
		}
		return !has[name]
	})
}

// witness tells the canary what a report shows.
func (c *core) witness(id string, votes []health.Vote, now time.Time) {
	c.canary.Heard(now, id)
	if !c.canary.Trying(id) {
		return
	}
	for _, vote := range votes {
		cluster, index := c.rulings.At(vote.Endpoint)
		// Until its first probe ends, an endpoint is reported unhealthy.
		if cluster != nil && index != catalog.None && (vote.Status != health.Unhealthy || vote.HTTPStatusCode != 0) {
			c.canary.Probed(id, cluster.Source.Name, cluster.Shapes[index])
		}
	}
}

// weigh does what has become of trials. Others are sent what is proven when no
// trial is under way any more, or a report interval later, so that a start with
// many clusters does not make each specifier once for each of them.
func (c *core) weigh(now time.Time) {
	if c.canary.Tick(now) {
		c.stir(now)
	}
	c.heed(now)
	if !c.stirAt.IsZero() && (c.canary.UnderWay() == 0 || !now.Before(c.stirAt)) {
		c.stirAt = time.Time{}
		c.spread(now)
		c.heed(now)
	}
	c.saveTrials()
}

// stir has what checkers were denied looked at again soon.
func (c *core) stir(now time.Time) {
	if c.stirAt.IsZero() {
		c.stirAt = now.Add(c.timing.report)
	}
}

// heed does what follows from what became of trials.
func (c *core) heed(now time.Time) {
	for events := c.canary.Events(); len(events) > 0; events = c.canary.Events() {
		leave := map[string]bool{}
		for _, e := range events {
			c.tellTrial(e)
			switch e.Kind {
			case canary.Started:
				continue
			case canary.Proven:
				c.outgrow(e.Cluster)
				c.unsaved[e.Cluster] = true
			case canary.Lost, canary.Quarantined:
				c.unsaved[e.Cluster] = true
			case canary.NotTaken, canary.Withdrawn:
				leave[e.Checker] = true
			}
			c.stir(now)
		}
		c.metrics.canaries(c)
		for _, id := range slices.Sorted(maps.Keys(leave)) {
			c.instruct(now, id)
		}
	}
}

// spread makes the specifiers of those who may now have what they were denied,
// and of canaries that have more than their share.
func (c *core) spread(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(c.recipients)) {
		known := c.recipients[id]
		if !c.fleet.Connected(id) {
			continue
		}
		more := len(known.extra) > 0
		for _, name := range known.denied {
			if c.canary.Proven(known.build, name) || c.mayTry(now, known, name) {
				more = true
			}
		}
		if more {
			c.instruct(now, id)
		}
	}
}

// restoreTrials takes up what was stored of trials, before anything else.
func (c *core) restoreTrials(all map[string]*store.Trials) {
	for name, stored := range all {
		r := canary.Record{}
		for _, p := range stored.Proven {
			r.Proven = append(r.Proven, canary.Proof{Build: canary.Build(p.Build), Shape: canary.Shape(p.Shape)})
		}
		for _, shape := range stored.Blamed {
			r.Blamed = append(r.Blamed, canary.Shape(shape))
		}
		for _, loss := range stored.Losses {
			r.Losses = append(r.Losses, canary.Loss{Checker: loss.Checker, Time: loss.Time})
		}
		c.canary.Restore(name, r)
		c.restored = append(c.restored, name)
	}
}

// forgetTrials forgets what was stored of clusters that did not come back, once that
// is certain.
func (c *core) forgetTrials() {
	if !c.rulings.IsConclusive() {
		return
	}
	for _, name := range c.restored {
		if c.rulings.Cluster(name) == nil {
			c.dropTrials(name)
		}
	}
	c.restored = nil
}

// dropTrials forgets what is known of a cluster that is gone.
func (c *core) dropTrials(name string) {
	delete(c.lineages, name)
	c.canary.Forget(name)
	c.unsaved[name] = true
}

// saveTrials stores what has changed.
func (c *core) saveTrials() {
	if len(c.unsaved) == 0 {
		return
	}
	changed := make(map[string]*store.Trials, len(c.unsaved))
	for name := range c.unsaved {
		changed[name] = nil
		r, ok := c.canary.Record(name)
		if !ok {
			continue
		}
		out := &store.Trials{}
		for _, p := range r.Proven {
			out.Proven = append(out.Proven, store.Proof{Build: uint64(p.Build), Shape: uint64(p.Shape)})
		}
		for _, shape := range r.Blamed {
			out.Blamed = append(out.Blamed, uint64(shape))
		}
		for _, loss := range r.Losses {
			out.Losses = append(out.Losses, store.Loss{Checker: loss.Checker, Time: loss.Time})
		}
		changed[name] = out
	}
	clear(c.unsaved)
	c.history.SaveTrials(changed)
}
