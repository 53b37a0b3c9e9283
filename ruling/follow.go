package ruling

import (
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// RestoreFollower is Table.Restore for Follow. The table takes over no clusters itself.
func RestoreFollower(t *Table, s log.State) {
	t.Restore(s)
	t.takeovers.isFollower = true
}

// Follow applies an entry of another table, and returns the changes for data planes. The tables may
// have different clusters: each publishes its own, with the health of the entries. Follow keeps the
// health of absent endpoints for their return.
//
// The caller begins with RestoreFollower. It must not call Decide, Settle or Start, and must not change
// overrides or the freeze: entries carry these changes.
func Follow(t *Table, now time.Time, entry *log.Entry) []publish.Change {
	var decisions []Decision
	if entry.Freeze != nil {
		decisions = append(decisions, followFreeze(t, entry.Freeze.After)...)
	}
	if entry.Held != nil {
		decisions = append(decisions, followFreeze(t, entry.Held)...)
	}
	e := t.edit(now)
	for i := range entry.Overrides {
		followOverride(e, &entry.Overrides[i])
	}
	for hash, verdict := range entry.Voted {
		followVotes(e, hash, verdict)
	}
	for i := range entry.Transitions {
		followTransition(e, &entry.Transitions[i])
	}
	for _, hash := range entry.Unvoted {
		delete(t.past.voted, hash)
	}
	followTakeovers(e, entry.TakenOver, true)
	for _, name := range entry.Removed {
		delete(e.takeovers.keptTakenOver, name) // if it is still here, its next version counts as new
	}
	followTakeovers(e, entry.GivenBack, false)
	e.publish()
	return Changes(append(decisions, e.finish().Decisions...))
}

// Changes returns the changes for data planes of decisions.
func Changes(decisions []Decision) (changes []publish.Change) {
	for i := range decisions {
		if c := &decisions[i].Change; !c.IsEmpty() {
			changes = append(changes, *c)
		}
	}
	return changes
}

// followFreeze applies a freeze, or its end.
func followFreeze(t *Table, f *log.Freeze) []Decision {
	previous := t.publishing.freeze
	effects := t.setFreeze(log.FreezeChange{Before: previous, After: f})
	if previous.Publication() == log.Held && f.Publication() == log.Held {
		return append(effects.Decisions, t.republished()) // what is held has moved
	}
	return effects.Decisions
}

// followOverride applies an override that begins or ends.
func followOverride(e *edit, c *log.OverrideChange) {
	scope := c.Override.Scope
	if c.Kind == log.Set {
		e.overrides.put(&Override{Override: c.Override})
		includeExcluded(e, &scope)
	} else {
		e.overrides.remove(scope)
	}
	e.overlay(e.within(&scope), "")
}

// followVotes applies the verdict of the votes under an override.
func followVotes(e *edit, hash health.Hash, verdict *health.Verdict) {
	_, r := e.rows.find(hash)
	switch {
	case r == nil && verdict == nil:
		delete(e.past.voted, hash)
	case r == nil:
		e.past.voted[hash] = health.Verdict{Status: verdict.Status, Since: verdict.Since}
	case verdict != nil && r.override() != nil:
		followVerdict(e, r, verdict.Status, verdict.Status != health.Unknown || !verdict.Since.IsZero())
	}
}

// followTransition applies a transition. An endpoint that is gone elsewhere and still here keeps its
// health until it leaves.
func followTransition(e *edit, t *health.Transition) {
	hash, gone := t.Endpoint.Hash(), IsGone(t.To, t.Reason)
	current := log.Health{Endpoint: t.Endpoint, Status: t.To, Since: t.Time, Reason: t.Reason}
	id, r := e.rows.find(hash)
	switch {
	case r == nil && gone:
		e.past.forget(hash)
		return
	case r == nil:
		e.past.remember(hash, current)
		return
	}
	if r.gone = gone; gone || r.override() != nil {
		return
	}
	followVerdict(e, r, t.To, hasVerdict(&current))
	r.overlay = nil
	e.setHealth(id, r)
}

// followVerdict applies a verdict of the votes.
func followVerdict(e *edit, r *row, status health.Status, judged bool) {
	first := judged && !r.judged
	if e.rows.judge(r, status, judged); first {
		e.judged(e.now, r)
	}
}

// followTakeovers marks clusters as taken over or given back.
func followTakeovers(e *edit, names []string, done bool) {
	var changed []string
	for _, name := range names {
		set(e.takeovers.keptTakenOver, name, done)
		if x := e.takeovers.byName[name]; x != nil && x.hasOwn && x.done != done {
			x.done = done
			changed = append(changed, name)
		}
	}
	publishTakeovers(e, changed)
}
