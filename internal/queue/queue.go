package queue

import (
	"container/heap"
	"context"
	"sync"
)

// Options are what a Queue needs.
type Options struct {
	Working int   // how many may work at the same time, whatever the cost; at least 1
	Small   int64 // one more may work if its cost is at most this; 0: none
}

// Queue is a queue for a place to work. Make one by New.
type Queue struct {
	options Options

	mu       sync.Mutex
	working  int                // in the places for any work
	small    bool               // whether the place for small work is taken
	now      float64            // virtual time: what each active caller could have been given by now
	last     map[string]float64 // of each active caller, the virtual time at which its latest work is paid for
	waits    map[string]int     // how many waits and turns each active caller has
	queued   [2]tickets         // those that wait: with small work, with large work
	sequence uint64
}

// ticket is one wait.
type ticket struct {
	caller string
	cost   int64
	due    float64 // the virtual time at which it is paid for
	number uint64  // in which order they came
	of     *tickets
	index  int // in the heap; -1 once it has left
	turn   *Turn
	ready  chan struct{} // closed when its turn has come
}

// Turn is a place to work. One goroutine uses it.
type Turn struct {
	queue  *Queue
	caller string
	small  bool // it has the place for small work
	over   bool
}

// New makes an empty Queue.
func New(o Options) *Queue {
	o.Working = max(o.Working, 1)
	return &Queue{options: o, last: map[string]float64{}, waits: map[string]int{}}
}

// Waiting tells how many wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued[0]) + len(q.queued[1])
}

// Wait waits for a turn. The error is the context's cause.
func (q *Queue) Wait(ctx context.Context, caller string, cost int64) (*Turn, error) {
	t := q.join(caller, max(cost, 1))
	select {
	case <-t.ready:
		return t.turn, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.index >= 0 {
		heap.Remove(t.of, t.index)
		q.leave(caller)
	} else {
		q.end(t.turn)
	}
	return nil, context.Cause(ctx)
}

// End gives the place to the next. It may be called more than once.
func (t *Turn) End() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.end(t)
}

func (q *Queue) join(caller string, cost int64) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sequence++
	q.waits[caller]++
	due := max(q.now, q.last[caller]) + float64(cost)
	q.last[caller] = due
	t := &ticket{caller: caller, cost: cost, due: due, number: q.sequence, of: &q.queued[1], ready: make(chan struct{})}
	if cost <= q.options.Small {
		t.of = &q.queued[0]
	}
	heap.Push(t.of, t)
	q.advance()
	return t
}

// advance gives free places to those who are first.
func (q *Queue) advance() {
	small, large := &q.queued[0], &q.queued[1]
	for q.working < q.options.Working && len(*small)+len(*large) > 0 {
		from := small
		if len(*small) == 0 || len(*large) > 0 && (*large)[0].before((*small)[0]) {
			from = large
		}
		q.working++
		q.begin(from, false)
	}
	if !q.small && len(*small) > 0 {
		q.small = true
		q.begin(small, true)
	}
}

// begin gives a place to the first of a heap.
func (q *Queue) begin(from *tickets, small bool) {
	t := heap.Pop(from).(*ticket)
	q.now += float64(t.cost) / float64(len(q.waits))
	t.turn = &Turn{queue: q, caller: t.caller, small: small}
	close(t.ready)
}

func (q *Queue) end(t *Turn) {
	if t.over {
		return
	}
	t.over = true
	if t.small {
		q.small = false
	} else {
		q.working--
	}
	q.leave(t.caller)
	q.advance()
}

// leave forgets a caller that has neither a wait nor a turn. Nothing is owed to it, nor
// by it: who asks one thing after another would else be a debtor for ever.
func (q *Queue) leave(caller string) {
	if q.waits[caller]--; q.waits[caller] == 0 {
		delete(q.waits, caller)
		delete(q.last, caller)
	}
	if len(q.waits) == 0 {
		q.now = 0 // or it would lose precision in the end
	}
}

// before tells which of two goes first.
func (t *ticket) before(other *ticket) bool {
	if t.due != other.due {
		return t.due < other.due
	}
	return t.number < other.number
}

// tickets is a heap: what is paid for first comes first.
type tickets []*ticket

// Len implements heap.Interface.
func (t tickets) Len() int { return len(t) }

// Less implements heap.Interface.
func (t tickets) Less(i, j int) bool { return t[i].before(t[j]) }

// Swap implements heap.Interface.
func (t tickets) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push implements heap.Interface.
func (t *tickets) Push(x any) {
	one := x.(*ticket)
	one.index = len(*t)
	*t = append(*t, one)
}

// Pop implements heap.Interface.
func (t *tickets) Pop() any {
	old := *t
	one := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	one.index = -1
	return one
}
