package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
	"hdsd/log"
)

// Freeze stops publishing verdicts. Data planes get what the sources say or, with hold, the
// verdicts as they are now. Overrides stay in force, and none expires. If publishing is frozen
// already, the start of the freeze and the held verdicts stay.
func (t *Table) Freeze(now time.Time, author, reason string, hold bool) (previous, current *log.Freeze, _ Effects) {
	previous = t.publishing.freeze
	current = &log.Freeze{Reason: reason, Author: author, Since: now.UTC().Round(0)}
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
	return previous, current, t.setFreeze(log.FreezeChange{Before: previous, After: current, By: author})
}

// Unfreeze publishes verdicts again, and returns the freeze that ends, or nil.
func (t *Table) Unfreeze(author string) (previous *log.Freeze, _ Effects) {
	if previous = t.publishing.freeze; previous == nil {
		return nil, Effects{}
	}
	return previous, t.setFreeze(log.FreezeChange{Before: previous, By: author})
}

func (t *Table) setFreeze(c log.FreezeChange) (e Effects) {
	t.publishing.setFreeze(c.After)
	var d Decision
	previous, current := c.Before.Publication(), c.After.Publication()
	if previous != current && (previous != log.Verdicts || current != log.Held) { // otherwise nothing changes for data planes
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
