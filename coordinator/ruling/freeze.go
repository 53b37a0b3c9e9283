package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/decision"
	"hdsd/health"
	"hdsd/store"
)

// Freeze stops publishing verdicts. Data planes get what the sources say or, with hold, the
// verdicts as they are now. Overrides stay in force, and none expires. If publishing is frozen
// already, the start of the freeze and the held verdicts stay.
func (t *Table) Freeze(now time.Time, author, reason string, hold bool) (before, after *store.Freeze, _ Effects) {
	before = t.publishing.freeze
	after = &store.Freeze{Reason: reason, Author: author, Since: now.UTC().Round(0)}
	if before != nil {
		after.Since = before.Since
	}
	switch {
	case !hold:
	case before != nil && before.Held != nil:
		after.Held = before.Held
	default:
		after.Held = t.verdicts()
	}
	return before, after, t.setFreeze(decision.FreezeChange{Before: before, After: after, By: author})
}

// Unfreeze publishes verdicts again, and returns the freeze that ends, or nil.
func (t *Table) Unfreeze(author string) (before *store.Freeze, _ Effects) {
	if before = t.publishing.freeze; before == nil {
		return nil, Effects{}
	}
	return before, t.setFreeze(decision.FreezeChange{Before: before, By: author})
}

func (t *Table) setFreeze(c decision.FreezeChange) (e Effects) {
	t.publishing.setFreeze(c.After)
	var d decision.Decision
	from, to := decision.PublicationUnder(c.Before), decision.PublicationUnder(c.After)
	if from != to && (from != decision.Verdicts || to != decision.Held) { // otherwise nothing changes for data planes
		d = t.republished()
	}
	d.Zones = t.zoneHealth(t.zoneViews.of(slices.Collect(maps.Keys(t.zoneViews))))
	d.Freeze = &c
	e.add(d)
	return e
}

// verdicts returns the health that hdsd publishes for each endpoint while nothing is frozen and
// no override decides.
func (t *Table) verdicts() map[health.Hash]health.Status {
	all := make(map[health.Hash]health.Status, len(t.rows.ids))
	for id := range t.rows.all {
		if r := &t.rows.all[id]; r.cluster != nil && !r.cluster.Shadow {
			all[r.hash] = t.publishing.voted(r)
		}
	}
	return all
}
