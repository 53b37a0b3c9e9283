package store

import (
	"slices"
	"time"

	"hdsd/health"
)

// queue has the transitions that wait for the disk, and says how many of them the next group
// takes. The intake owns it.
type queue struct {
	limit   int                   // of transitions in memory, those of the group on its way included
	largest int                   // transitions of the next group at most
	count   int                   // transitions that wait
	parts   [][]health.Transition // as they were appended, so that nobody copies them under the lock
}

func newQueue(limit int) queue {
	q := queue{limit: limit}
	q.largest = min(groupSize, q.most())
	return q
}

// largestGroup is how many transitions a group ever has: each takes some pages of memory.
const largestGroup = 65_536

// most returns how many transitions a group may have: a quarter of those that may wait.
func (q *queue) most() int { return min(max(q.limit/4, 1), largestGroup) }

// pieces cuts a large batch into parts of their own, which are cheap to cut again.
func pieces(all []health.Transition) (parts [][]health.Transition) {
	if len(all) <= groupSize {
		return [][]health.Transition{all}
	}
	for part := range slices.Chunk(all, groupSize) {
		parts = append(parts, slices.Clone(part))
	}
	return parts
}

func (q *queue) add(all []health.Transition) {
	if len(all) > 0 {
		q.parts = append(q.parts, all)
		q.count += len(all)
	}
}

// shift takes out the oldest transitions.
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

// fit sets how many transitions the next group has at most, by the size of the last one and the
// time that it took. The more a group has, the more of its rows share a page, which is written
// once. But nobody should wait long for a group, nor take it for a disk that does not answer.
func (q *queue) fit(written int, took time.Duration) {
	least := min(groupSize, q.most())
	switch {
	case took > longGroup && q.largest > least:
		q.largest = max(q.largest/2, least)
	case written >= q.largest && (took < longGroup/2 || q.largest < least):
		q.largest = min(2*q.largest, q.most())
	}
}

// shrink halves a group that the disk did not take, since less of it may fit.
func (q *queue) shrink(size int) { q.largest = max(min(q.largest, size)/2, 1) }

// putBack puts transitions before the others again.
func (q *queue) putBack(all []health.Transition) {
	q.parts = slices.Concat(pieces(all), q.parts)
	q.count += len(all)
}
