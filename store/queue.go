package store

import (
	"slices"
	"time"

	"hdsd/health"
)

// queue holds the transitions that wait for the disk, and bounds the next group. The intake owns
// it.
type queue struct {
	limit   int                   // bound of transitions in memory, including the group on its way
	largest int                   // bound of the next group
	count   int                   // waiting transitions
	parts   [][]health.Transition // batches as appended, so that nothing is copied under the lock
}

func newQueue(limit int) queue {
	q := queue{limit: limit}
	q.largest = q.smallest()
	return q
}

// largestGroup bounds every group: each transition takes some pages of memory.
const largestGroup = 65_536

// maxGroup returns the bound of a group: a quarter of the queue's.
func (q *queue) maxGroup() int { return min(max(q.limit/4, 1), largestGroup) }

// smallest returns the bound of a group while the disk takes all groups.
func (q *queue) smallest() int { return min(groupSize, q.maxGroup()) }

// pieces cuts a large batch into separate parts, which are cheap to cut again.
func pieces(batch []health.Transition) (parts [][]health.Transition) {
	if len(batch) <= groupSize {
		return [][]health.Transition{batch}
	}
	for part := range slices.Chunk(batch, groupSize) {
		parts = append(parts, slices.Clone(part))
	}
	return parts
}

func (q *queue) add(batch []health.Transition) {
	if len(batch) > 0 {
		q.parts = append(q.parts, batch)
		q.count += len(batch)
	}
}

// shift removes the oldest transitions.
func (q *queue) shift(count int) (parts [][]health.Transition) {
	q.count -= count
	whole := 0
	for ; whole < len(q.parts) && len(q.parts[whole]) <= count; whole++ {
		count -= len(q.parts[whole])
	}
	parts = slices.Clone(q.parts[:whole])
	clear(q.parts[:whole]) // or the queue would keep them
	if q.parts = q.parts[whole:]; len(q.parts) == 0 {
		q.parts = nil // or it would keep all that ever waited
	} else if count > 0 {
		parts, q.parts[0] = append(parts, q.parts[0][:count]), slices.Clone(q.parts[0][count:]) // or it would keep all of the part
	}
	return parts
}

// fit sets the bound of the next group by the size and the duration of the last one. More rows
// of a larger group share a page, which is written once. But a group must not last so long that
// callers wait, or take it for a failing disk.
func (q *queue) fit(written int, elapsed time.Duration) {
	smallest := q.smallest()
	switch {
	case elapsed > longGroup && q.largest > smallest:
		q.largest = max(q.largest/2, smallest)
	case written >= q.largest && (elapsed < longGroup/2 || q.largest < smallest):
		q.largest = min(2*q.largest, q.maxGroup())
	}
}

// shrink halves the bound after a failed group, since a smaller one may fit.
func (q *queue) shrink(size int) { q.largest = max(min(q.largest, size)/2, 1) }

// putBack returns transitions to the front.
func (q *queue) putBack(batch []health.Transition) {
	q.parts = slices.Concat(pieces(batch), q.parts)
	q.count += len(batch)
}
