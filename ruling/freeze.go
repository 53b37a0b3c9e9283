package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// Freeze stops publishing verdicts. Data planes get what the sources say or, with hold, the
// verdicts as they are now. Overrides stay in force, and none expires. If publishing is frozen
// already, the start of the freeze and the held verdicts stay.
func (t *Table) Freeze(now time.Time, author, reason string, hold bool) (previous, current *store.Freeze, _ Effects) {
	previous = t.publishing.freeze
	current = &store.Freeze{Reason: reason, Author: author, Since: now.UTC().Round(0)}
	if previous != nil {
		current.Since = previous.Since
	}
	switch {
	case !hold:
	case previous != nil && previous.Held != nil:
		current.Held = previous.Held
	default:
		current.Held = t.verdicts()
	}
	return previous, current, t.setFreeze(decision.FreezeChange{Before: previous, After: current, By: author})
}

// Unfreeze publishes verdicts again, and returns the freeze that ends, or nil.
func (t *Table) Unfreeze(author string) (previous *store.Freeze, _ Effects) {
	if previous = t.publishing.freeze; previous == nil {
		return nil, Effects{}
	}
	return previous, t.setFreeze(decision.FreezeChange{Before: previous, By: author})
}

func (t *Table) setFreeze(c decision.FreezeChange) (e Effects) {
	t.publishing.setFreeze(c.After)
	var d decision.Decision
	previous, current := decision.PublicationUnder(c.Before), decision.PublicationUnder(c.After)
	if previous != current && (previous != decision.Verdicts || current != decision.Held) { // otherwise nothing changes for data planes
		d = t.republished()
	}
	d.Zones = t.zoneHealth(t.zoneViews.views(slices.Sorted(maps.Keys(t.zoneViews))))
	d.Freeze = &c
	e.add(d)
	return e
}

// verdicts returns the health that hdsd publishes for each endpoint while nothing is frozen and
// no override decides.
func (t *Table) verdicts() map[health.Hash]health.Status {
	verdicts := make(map[health.Hash]health.Status, len(t.rows.ids))
	for id := range t.rows.byID {
		if r := &t.rows.byID[id]; r.cluster != nil && !r.cluster.Shadow {
			verdicts[r.hash] = t.publishing.voted(r)
		}
	}
	return verdicts
}
