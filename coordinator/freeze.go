package coordinator

import (
	"context"
	"maps"
	"slices"
	"time"

	"hdsd/api"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// Freeze implements api.Controller.
func (c *control) Freeze(ctx context.Context, asked api.Freeze) (api.Freeze, *api.Freeze, error) {
	var before, after *store.Freeze
	if err := c.carryOut(ctx, "hdsd is frozen, but a restart may forget it", func() error {
		before, after = c.core.freeze(asked, time.Now())
		return nil
	}); err != nil {
		return api.Freeze{}, nil, err
	}
	return *shownFreeze(after), shownFreeze(before), nil
}

// Unfreeze implements api.Controller.
func (c *control) Unfreeze(ctx context.Context, author string) (*api.Freeze, error) {
	var before *store.Freeze
	if err := c.carryOut(ctx, "hdsd is not frozen any more, but may be after a restart", func() error {
		before = c.core.unfreeze(author)
		return nil
	}); err != nil {
		return nil, err
	}
	return shownFreeze(before), nil
}

// Frozen implements api.Controller.
func (c *control) Frozen() *api.Freeze { return shownFreeze(c.core.frozen.Load()) }

func shownFreeze(f *store.Freeze) *api.Freeze {
	if f == nil {
		return nil
	}
	return &api.Freeze{Reason: f.Reason, Author: f.Author, Since: f.Since, Hold: f.Held != nil}
}

// freeze keeps verdicts from the subscribers. Where they are already, since
// when stays, and so does what is held.
func (c *core) freeze(asked api.Freeze, now time.Time) (before, after *store.Freeze) {
	before = c.frozen.Load()
	after = &store.Freeze{Reason: asked.Reason, Author: asked.Author, Since: now.UTC().Round(0)}
	if before != nil {
		after.Since = before.Since
	}
	switch {
	case !asked.Hold:
	case before != nil && before.Held != nil:
		after.Held = before.Held
	default:
		after.Held = c.verdicts()
	}
	var replaced store.Freeze
	if before != nil {
		replaced = *before
	}
	c.log.Warn().Str("event", "frozen").Str("author", after.Author).Str("reason", after.Reason).
		Time("since", after.Since).Stringer("publish", publishing(after)).
		Str("replaced_author", replaced.Author).Str("replaced_reason", replaced.Reason).
		Msg("frozen: subscribers are not told what hdsd decides")
	c.impose(after)
	return before, after
}

func (c *core) unfreeze(author string) (before *store.Freeze) {
	if before = c.frozen.Load(); before == nil {
		return nil
	}
	c.log.Warn().Str("event", "unfrozen").Str("author", author).Str("frozen_by", before.Author).
		Str("reason", before.Reason).Time("since", before.Since).Msg("not frozen any more: verdicts are published again")
	c.impose(nil)
	return before
}

// impose puts a freeze, or none, in the place of the one before.
func (c *core) impose(f *store.Freeze) {
	before := c.frozen.Swap(f)
	c.beginning = beginning{}
	c.history.SaveFreeze(f)
	c.metrics.frozen.Set(flag(f != nil))
	defer func() { c.retellZones(slices.Collect(maps.Keys(c.zoneViews))) }()
	from, to := publishing(before), publishing(f)
	if from == to || from == verdictsTold && to == heldTold {
		return // what is published stays
	}
	c.republish()
}

// republish tells subscribers of everything how it stands. What is the same as
// before is not sent again.
func (c *core) republish() {
	e := &edit{services: map[string]bool{}}
	for _, k := range c.clusters {
		e.services[k.Source.ServiceName] = true
		if outward := c.outward(k); outward.Message != nil {
			e.update.Clusters = append(e.update.Clusters, outward)
		}
	}
	for id := range c.table.rows {
		if row := &c.table.rows[id]; row.cluster != nil {
			e.health = append(e.health, eds.Health{ID: health.EndpointID(id), Status: c.told(row)})
		}
	}
	c.assignments(e)
	// Health that nobody is to see must not show in between.
	if publishing(c.frozen.Load()) == sourcesTold {
		c.eds.Update(e.update)
		c.eds.SetHealth(e.health)
		return
	}
	c.eds.SetHealth(e.health)
	c.eds.Update(e.update)
}

// verdicts gives the health that hdsd publishes of each endpoint, or would but
// for a freeze.
func (c *core) verdicts() map[health.Hash]health.Status {
	all := make(map[health.Hash]health.Status, len(c.table.ids))
	for id := range c.table.rows {
		if row := &c.table.rows[id]; row.cluster != nil && !row.cluster.Shadow {
			all[row.hash] = c.ours(row)
		}
	}
	return all
}

// publication is what subscribers are told.
type publication uint8

const (
	verdictsTold publication = iota // the present verdicts
	sourcesTold                     // what the sources say
	heldTold                        // the verdicts as they stood
)

func (p publication) String() string { return [...]string{"PRESENT", "SOURCES", "HELD"}[p] }

func publishing(f *store.Freeze) publication {
	switch {
	case f == nil:
		return verdictsTold
	case f.Held == nil:
		return sourcesTold
	}
	return heldTold
}
