package xds

import (
	"time"

	"hdsd/internal/heap"
)

// agenda has the entries of a table that time alone changes, the earliest first.
type agenda struct{ heap.Heap[*entry] }

func newAgenda() agenda {
	return agenda{heap.Heap[*entry]{
		Less: func(a, b *entry) bool { return a.deadline.Before(b.deadline) }, Moved: func(e *entry, index int) { e.slot = index },
	}}
}

// move sets the deadline of an entry; zero is none.
func (a *agenda) move(e *entry, deadline time.Time) {
	before := e.deadline
	e.deadline = deadline
	switch {
	case deadline.Equal(before):
	case before.IsZero():
		a.Push(e)
	case deadline.IsZero():
		a.Remove(e.slot)
	default:
		a.Fix(e.slot)
	}
}

// next returns the earliest deadline; zero is never.
func (a agenda) next() time.Time {
	if len(a.Items) == 0 {
		return time.Time{}
	}
	return a.Items[0].deadline
}

// due returns the entry with the earliest deadline if that is over; else nil.
func (a agenda) due(now time.Time) *entry {
	if len(a.Items) == 0 || a.Items[0].deadline.After(now) {
		return nil
	}
	return a.Items[0]
}

// tally counts entries.
type tally struct {
	waiting int // entries that sets wait for
	lent    int // of these, entries used by clusters of other sources
	mortal  int // entries with a TTL or a lease, also an ended one
}

// schedule updates the agenda and the tally after a change of an entry.
func (t *table) schedule(e *entry) {
	var deadline time.Time
	var counts tally
	if t.entries[e.name] == e {
		for _, end := range []time.Time{e.expires, e.leaves, e.lease} {
			deadline = earlier(deadline, end)
		}
		if e.unknown() && !e.overdue {
			counts.waiting = 1
			if e.askers[others] {
				counts.lent = 1
			}
			if t.timeout > 0 {
				deadline = earlier(deadline, e.subscribedAt.Add(t.timeout))
			}
		}
		if e.timed() || e.stale {
			counts.mortal = 1
		}
	}
	if counts.waiting != e.counts.waiting {
		t.touched[e.name] = true
	}
	t.counts.waiting += counts.waiting - e.counts.waiting
	t.counts.lent += counts.lent - e.counts.lent
	t.counts.mortal += counts.mortal - e.counts.mortal
	e.counts = counts
	t.agenda.move(e, deadline)
}

// earlier returns the earlier time; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
