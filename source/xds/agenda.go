package xds

import (
	"container/heap"
	"time"
)

// agenda has the entries of a table that time alone changes, the earliest first.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].deadline.Before(a[j].deadline) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].slot, a[j].slot = i, j
}

// Push is for package heap.
func (a *agenda) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // nothing else is pushed
	e.slot = len(*a)
	*a = append(*a, e)
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return e
}

// move gives an entry a deadline; zero is none.
func (a *agenda) move(e *entry, deadline time.Time) {
	before := e.deadline
	e.deadline = deadline
	switch {
	case deadline.Equal(before):
	case before.IsZero():
		heap.Push(a, e)
	case deadline.IsZero():
		heap.Remove(a, e.slot)
	default:
		heap.Fix(a, e.slot)
	}
}

// next returns the earliest deadline; zero is never.
func (a agenda) next() time.Time {
	if len(a) == 0 {
		return time.Time{}
	}
	return a[0].deadline
}

// due returns the entry with the earliest deadline if that is over; else nil.
func (a agenda) due(now time.Time) *entry {
	if len(a) == 0 || a[0].deadline.After(now) {
		return nil
	}
	return a[0]
}

// tally counts entries.
type tally struct {
	waiting int // what sets wait for
	lent    int // of these, what clusters of other sources use
	mortal  int // what has a TTL or a lease, or had one
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
				deadline = earlier(deadline, e.asked.Add(t.timeout))
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
