package store

import (
	"maps"
	"slices"
	"sync/atomic"

	"hdsd/health"
)

// fleetQueue holds the portions that wait for the disk. The intake owns it.
type fleetQueue struct {
	portions []*portion
	sequence uint64      // of the latest entry that Follow has got
	cursor   Cursor      // on disk
	joined   atomic.Bool // the database has a fleet, and has not diverged
}

// load continues from a cursor on disk.
func (q *fleetQueue) load(c Cursor) {
	q.cursor, q.sequence = c, c.Sequence
	q.joined.Store(c.Fleet != "" && !c.Diverged)
}

// add adds a portion. It joins the last one, if both have at most limit transitions.
func (q *fleetQueue) add(next *portion, limit int) {
	q.sequence = next.advance.sequence
	if last := q.last(); last != nil && next.end-last.start <= uint64(limit) {
		last.add(next)
	} else {
		q.portions = append(q.portions, next)
	}
	q.bound(func(p *portion) *records { return &p.events })
	q.bound(func(p *portion) *records { return &p.audit })
}

// move adds a portion without transitions, and counts it as submitted.
func (q *fleetQueue) move(a advance, submitted *mark) {
	q.sequence = a.sequence
	q.joined.Store(a.fleet != nil && *a.fleet != "")
	q.portions = append(q.portions, &portion{advance: a, start: submitted.transitions, end: submitted.transitions, before: submitted.rows})
	submitted.rows++
}

// last returns the last portion; nil for none.
func (q *fleetQueue) last() *portion {
	if len(q.portions) == 0 {
		return nil
	}
	return q.portions[len(q.portions)-1]
}

// bound drops the oldest entries of a journal.
func (q *fleetQueue) bound(of func(*portion) *records) {
	excess := -maxWaiting
	for _, p := range q.portions {
		excess += len(of(p).waiting)
	}
	for i := 0; excess > 0; i++ {
		excess -= of(q.portions[i]).drop(excess)
	}
}

// joinDropped joins the portions whose transitions were dropped, since the next group has all of them. front
// is the number of transitions before the next group.
func (q *fleetQueue) joinDropped(front uint64) {
	for len(q.portions) > 1 && q.portions[1].end <= front {
		q.portions[0].add(q.portions[1])
		q.portions = slices.Delete(q.portions, 1, 2)
	}
}

// next removes the portions of the next group, and returns them and the size of the group: at most limit
// transitions, unless its first portion has more.
func (q *fleetQueue) next(front uint64, limit int) (portions []*portion, size int) {
	n, size := divide(q.portions, front, limit)
	portions = q.portions[:n:n]
	if q.portions = q.portions[n:]; len(q.portions) == 0 {
		q.portions = nil // or it would keep all that ever waited
	}
	return portions, size
}

// putBack returns portions of a group to the front.
func (q *fleetQueue) putBack(portions []*portion) { q.portions = slices.Concat(portions, q.portions) }

// portion is a part of the queue that a group has whole or not at all: some transitions, with rows, events and
// a change of the cursor. Calls of Follow share a portion while its transitions are few.
type portion struct {
	start, end uint64 // numbers of transitions submitted before it, and up to its end
	before     uint64 // number of rows submitted before it

	advance advance
	plan    map[string][]health.Hash
	rows    changes
	events  records
	audit   records
}

// records are the entries of a portion for a journal.
type records struct {
	waiting []journalEntry
	lost    Gap               // entries dropped before these
	placed  map[string][]byte // rows of earlier entries, which have their keys
}

// add adds the records behind.
func (r *records) add(next *records) {
	r.waiting = append(r.waiting, next.waiting...)
	if next.lost.Transitions > 0 {
		r.lost.join(next.lost)
	}
	r.addPlaced(next.placed)
}

// add adds the portion behind.
func (p *portion) add(next *portion) {
	p.end = next.end
	p.advance.add(next.advance)
	p.addRows(next.plan, next.rows)
	p.events.add(&next.events)
	p.audit.add(&next.audit)
}

// addRows adds newer rows.
func (p *portion) addRows(plan map[string][]health.Hash, rows changes) {
	if p.plan == nil {
		p.plan = plan
	} else {
		maps.Copy(p.plan, plan)
	}
	for bucket, changed := range rows {
		p.rows.put(bucket, changed)
	}
}

// addPlaced adds rows.
func (r *records) addPlaced(rows map[string][]byte) {
	if r.placed == nil {
		r.placed = rows
	} else {
		maps.Copy(r.placed, rows)
	}
}

// drop drops the oldest entries, up to a limit, and returns their number.
func (r *records) drop(limit int) (dropped int) {
	dropped = min(limit, len(r.waiting))
	for _, e := range r.waiting[:dropped] {
		r.lost.add(e.moment())
	}
	r.waiting = append([]journalEntry(nil), r.waiting[dropped:]...)
	return dropped
}

// divide returns how many of the portions a group has, and how many transitions, of at most limit if that
// is possible. front is the number of transitions before the group. A group that begins with a portion has
// the whole of it. So has one that begins within a portion, the first part of which was dropped: the group
// has the health that this part led to.
func divide(portions []*portion, front uint64, limit int) (count, size int) {
	for count < len(portions) && portions[count].end <= front+uint64(limit) {
		count++
	}
	if count == len(portions) {
		return count, limit
	}
	next := portions[count]
	if next.start < front || count == 0 && next.start == front {
		return count + 1, int(next.end - front)
	}
	return count, min(limit, int(next.start-front))
}
