package limit

import (
	"context"
	"sync"
	"time"

	"hdsd/internal/heap"
)

// Queue is an amount that callers wait for. Unlike a Pool, it refuses and ends nothing: a caller
// that asks for more than is free waits until others give something back.
//
// Callers take turns (weighted fair queueing): the caller that was given least goes first, so
// that one that asks for much does not keep the others waiting, however many they are, and those
// get their turns too. The turns of one caller come in the order of their requests. Free amounts
// wait for the first turn, however large that is. A caller that does not wait owes nothing and
// is owed nothing: one that makes one request after another would else be a debtor for ever.
//
// It is not bounded: its user bounds the number of waiting turns, by a Pool for instance. Make
// one by NewQueue or NewWork.
type Queue struct {
	total int64
	small int64 // bound of turns that may have the place for small work; 0: there is none

	mu       sync.Mutex
	taken    int64
	extra    bool                // the place for small work is taken
	now      float64             // virtual time: the amount that each waiting caller could have had by now
	lines    map[string]*line    // of waiting callers
	waiting  [2]heap.Heap[*Turn] // small turns, and the others
	sequence uint64
}

// line is the queue of one caller.
type line struct {
	count int     // number of turns
	due   float64 // virtual time at which the last of them is paid for
}

// Turn is an amount that a caller has, or waits for. Several goroutines may use it.
type Turn struct {
	queue   *Queue
	caller  string
	amount  int64
	cost    float64
	granted func(*Turn)
	ready   chan struct{} // closed instead if granted is nil
	start   time.Time

	// Guarded by Queue.mu.
	due    float64 // virtual time at which it is paid for
	number uint64  // order of requests
	heap   *heap.Heap[*Turn]
	index  int  // in the heap; -1: it does not wait
	holds  bool // it has the amount
	extra  bool // it has the place for small work instead
}

// Waiting describes the turns waiting for a Queue.
type Waiting struct {
	Count  int       // number of turns
	Caller string    // of the turn that waits longest
	Since  time.Time // start of that wait
}

// NewQueue makes a queue with a free amount. All turns cost the same, whatever their amount.
func NewQueue(total int64) *Queue {
	q := &Queue{total: total, lines: map[string]*line{}}
	for i := range q.waiting {
		q.waiting[i] = heap.Heap[*Turn]{Less: before, Moved: func(t *Turn, index int) { t.index = index }}
	}
	return q
}

// NewWork makes a queue for places to work, at least one, whatever the work costs. One more
// place is for work of a cost up to small, so that small work never waits for large work to end.
// 0: none.
func NewWork(places int, small int64) *Queue {
	q := NewQueue(int64(max(places, 1)))
	q.small = small
	return q
}

// before reports which of two turns goes first.
func before(a, b *Turn) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return a.number < b.number
}

// Ask takes an amount for a caller, and reports whether it is granted at once. Otherwise granted
// is called later, without a lock, by the goroutine that frees the amount: it must not block. A
// request above the total gets all of it. Release ends the turn in any case.
func (q *Queue) Ask(caller string, amount int64, granted func(*Turn)) (t *Turn, free bool) {
	return q.ask(caller, amount, 1, granted)
}

func (q *Queue) ask(caller string, amount, cost int64, granted func(*Turn)) (t *Turn, free bool) {
	t = &Turn{queue: q, caller: caller, amount: min(amount, q.total), cost: float64(max(cost, 1)), granted: granted, index: -1}
	q.mu.Lock()
	defer q.mu.Unlock()
	t.heap = &q.waiting[1]
	if cost <= q.small {
		t.heap = &q.waiting[0]
	}
	if len(q.lines) == 0 && q.fits(t) || len(t.heap.Items) == 0 && q.spare(t) {
		q.grant(t)
		return t, true
	}
	callerLine := q.lines[caller]
	if callerLine == nil {
		callerLine = &line{}
		q.lines[caller] = callerLine
	}
	q.sequence++
	callerLine.count++
	callerLine.due = max(q.now, callerLine.due) + t.cost
	t.due, t.number, t.start = callerLine.due, q.sequence, time.Now()
	if granted == nil {
		t.ready = make(chan struct{})
	}
	t.heap.Push(t)
	return t, false
}

// fits reports whether enough is free for a turn.
func (q *Queue) fits(t *Turn) bool { return t.amount <= q.total-q.taken }

// spare reports whether the place for small work is free for a turn.
func (q *Queue) spare(t *Turn) bool { return t.heap == &q.waiting[0] && !q.extra }

// grant gives a turn its amount.
func (q *Queue) grant(t *Turn) {
	if t.holds = q.fits(t); t.holds {
		q.taken += t.amount
	} else {
		t.extra, q.extra = true, true
	}
}

// Wait is Ask for callers that can wait. It returns the cause of the context's end if that comes
// first.
func (q *Queue) Wait(ctx context.Context, caller string, amount int64) (*Turn, error) {
	return q.wait(ctx, caller, amount, 1)
}

// Work waits for a place to work. It returns the cause of the context's end if that comes first.
func (q *Queue) Work(ctx context.Context, caller string, cost int64) (*Turn, error) {
	return q.wait(ctx, caller, 1, cost)
}

func (q *Queue) wait(ctx context.Context, caller string, amount, cost int64) (*Turn, error) {
	t, free := q.ask(caller, amount, cost, nil)
	if free {
		return t, nil
	}
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
		t.Release()
		return nil, context.Cause(ctx)
	}
}

// Release returns the amount of a turn, or ends its wait. It may be called more than once, and
// on nil.
func (t *Turn) Release() {
	if t == nil {
		return
	}
	q := t.queue
	q.mu.Lock()
	switch {
	case t.index >= 0:
		q.leave(t)
	case t.holds:
		q.taken -= t.amount
	case t.extra:
		q.extra = false
	}
	t.holds, t.extra = false, false
	served := q.serve()
	q.mu.Unlock()
	for _, turn := range served {
		if turn.granted != nil {
			turn.granted(turn)
		} else {
			close(turn.ready)
		}
	}
}

// leave ends the wait of a turn, and forgets a caller without another one.
func (q *Queue) leave(t *Turn) {
	t.heap.Remove(t.index)
	callerLine := q.lines[t.caller]
	if callerLine.count--; callerLine.count == 0 {
		delete(q.lines, t.caller)
	}
	if len(q.lines) == 0 {
		q.now = 0 // or it would lose precision in the end
	}
}

// serve grants free amounts to the next turns.
func (q *Queue) serve() (served []*Turn) {
	for t := q.next(); t != nil; t = q.next() {
		q.now += t.cost / float64(len(q.lines))
		q.leave(t)
		q.grant(t)
		served = append(served, t)
	}
	return served
}

// next returns the next turn that fits, or nil.
func (q *Queue) next() *Turn {
	small, large := q.waiting[0].Items, q.waiting[1].Items
	first := small
	if len(small) == 0 || len(large) > 0 && before(large[0], small[0]) {
		first = large
	}
	switch {
	case len(first) > 0 && q.fits(first[0]):
		return first[0]
	case len(small) > 0 && q.spare(small[0]):
		return small[0]
	}
	return nil
}

// Taken returns the taken amount, without the place for small work.
func (q *Queue) Taken() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

// Waiting describes the waiting turns.
func (q *Queue) Waiting() (w Waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.waiting {
		for _, t := range q.waiting[i].Items {
			if w.Count++; w.Count == 1 || t.start.Before(w.Since) {
				w.Caller, w.Since = t.caller, t.start
			}
		}
	}
	return w
}
