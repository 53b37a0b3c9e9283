package eds

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// watchNamed makes a watch of a slot with this name.
func watchNamed(name string) *watch { return &watch{slot: &slot{name: name}} }

func (q *queue) names() (names string) {
	for _, w := range q.watches {
		names += w.slot.name
	}
	return names
}

func TestQueueHoldsEachWatchOnceOldestFirst(t *testing.T) {
	var q queue
	a, b, c := watchNamed("a"), watchNamed("b"), watchNamed("c")
	equal(t, "new", q.push(a) && q.push(b) && q.push(c), true)
	equal(t, "twice", q.push(a), false)
	equal(t, "queued", q.names(), "abc")
	batch := q.pop(2)
	equal(t, "taken", len(batch), 2)
	equal(t, "left", q.names(), "c")
	q.push(a) // it changed meanwhile
	c.closed = true
	q.putBack(batch)
	equal(t, "put back", q.names(), "bca")
	equal(t, "closed", q.push(&watch{closed: true}), false)
}

func TestQueueKeepsTheTimeOfTheOldestChange(t *testing.T) {
	var q queue
	var changed atomic.Int64
	for _, at := range []int64{5, 7} {
		changed.Store(at)
		q.begin(&changed)
		q.push(watchNamed(fmt.Sprint(at)))
	}
	q.pop(1)
	equal(t, "one is left", q.resetOldest(), 5)
	q.pop(1)
	equal(t, "the last", q.resetOldest(), 5)
	equal(t, "none", q.resetOldest(), 0)
}

func TestQueueForgetsClosedWatches(t *testing.T) {
	var q queue
	open := watchNamed("open")
	q.push(open)
	for range 1000 {
		w := watchNamed("closed")
		q.push(w)
		w.closed = true
		q.dropped(w)
		if q.len() > 130 {
			t.Fatalf("%d in the queue, of which 1 is open", q.len())
		}
	}
	equal(t, "the open one stays", q.watches[0], open)
	q.pop(q.len())
	equal(t, "closed", q.closed, 0)
}
