package eds

import (
	"slices"
	"sync/atomic"
)

// queue holds the watches with resources that may have to be sent, the oldest change first. It
// alone sets watch.queued. It is guarded by the subscription's lock.
type queue struct {
	watches []*watch
	closed  int   // number of closed ones
	oldest  int64 // time of the oldest change, by publication.now; 0: none
}

func (q *queue) len() int { return len(q.watches) }

// begin records the time of a change if it is the oldest.
func (q *queue) begin(changed *atomic.Int64) {
	if q.oldest == 0 {
		q.oldest = changed.Load()
	}
}

// push adds a watch, and reports whether it was not in the queue.
func (q *queue) push(w *watch) bool {
	if w.closed || w.queued {
		return false
	}
	w.queued = true
	q.watches = append(q.watches, w)
	return true
}

// force adds a watch whose resource is sent even if the client has it.
func (q *queue) force(w *watch) {
	w.force = true
	q.push(w)
}

// dropped records that a watch has closed. It removes closed watches when there are many, so
// that a client that subscribes and unsubscribes without an ACK does not fill the queue.
func (q *queue) dropped(w *watch) {
	if !w.queued {
		return
	}
	q.closed++
	if q.closed < 64 || q.closed < len(q.watches)/2 {
		return
	}
	q.watches = slices.DeleteFunc(q.watches, func(w *watch) bool { return w.closed })
	q.closed = 0
}

// pop removes the first n watches.
func (q *queue) pop(n int) []*watch {
	batch := q.watches[:n:n]
	if q.watches = q.watches[n:]; len(q.watches) == 0 {
		q.watches = nil
	}
	for _, w := range batch {
		w.queued = false
		if w.closed {
			q.closed--
		}
	}
	return batch
}

// resetOldest returns the time of the oldest change, and resets it if the queue is empty.
func (q *queue) resetOldest() int64 {
	oldest := q.oldest
	if len(q.watches) == 0 {
		q.oldest = 0
	}
	return oldest
}

// putBack returns unsent watches to the front.
func (q *queue) putBack(rest []*watch) {
	front := make([]*watch, 0, len(rest)+len(q.watches))
	for _, w := range rest {
		if !w.queued && !w.closed {
			w.queued = true
			front = append(front, w)
		}
	}
	q.watches = append(front, q.watches...)
}
