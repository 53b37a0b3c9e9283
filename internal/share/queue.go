package share

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Queue is an amount that callers wait for. Unlike a Pool, it refuses nobody and ends nothing:
// whoever asks for more than is free waits for others to give something back. Callers take
// turns, so that one that asks for much does not keep the others waiting; those of one caller
// are served in the order in which they came. The next in turn waits for as long as it needs,
// however little others ask for. Make one by NewQueue.
type Queue struct {
	total int64

	mu    sync.Mutex
	taken int64
	count int              // of turns that wait
	lines map[string]*line // by caller
	order list.List        // the same lines, the next in turn first
}

// line is what one caller waits for.
type line struct {
	caller string
	turns  list.List     // *Turn
	place  *list.Element // in Queue.order
}

// Turn is an amount that a caller has, or waits for.
type Turn struct {
	queue   *Queue
	line    *line
	amount  int64
	granted func(*Turn)
	since   time.Time

	// Guarded by Queue.mu.
	place *list.Element // in line.turns while it waits
	holds bool          // it has the amount
}

// Waiting is who waits for a Queue.
type Waiting struct {
	Count  int       // how many turns
	Caller string    // of the one that waits longest
	Since  time.Time // when that began
}

// NewQueue makes a queue of which nothing is taken.
func NewQueue(total int64) *Queue {
	return &Queue{total: total, lines: make(map[string]*line)}
}

// Ask takes an amount for a caller, and reports whether it has it at once. If not, granted is
// called when it has, without a lock, by whoever gives something back: it must not block. An
// amount larger than the total is all of it. Release ends the turn in any case.
func (q *Queue) Ask(caller string, amount int64, granted func(*Turn)) (t *Turn, free bool) {
	t = &Turn{queue: q, amount: min(amount, q.total), granted: granted}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 && t.amount <= q.total-q.taken {
		q.taken += t.amount
		t.holds = true
		return t, true
	}
	own := q.lines[caller]
	if own == nil {
		own = &line{caller: caller}
		own.place = q.order.PushBack(own)
		q.lines[caller] = own
	}
	t.line, t.since = own, time.Now()
	t.place = own.turns.PushBack(t)
	q.count++
	return t, false
}

// Wait is Ask for those who can wait. It returns the error of the context if that ends first.
func (q *Queue) Wait(ctx context.Context, caller string, amount int64) (*Turn, error) {
	granted := make(chan struct{})
	t, free := q.Ask(caller, amount, func(*Turn) { close(granted) })
	if free {
		return t, nil
	}
	select {
	case <-granted:
		return t, nil
	case <-ctx.Done():
		t.Release()
		return nil, ctx.Err()
	}
}

// Release gives back what a turn has, or ends its wait. It may be called more than once, and
// on nil.
func (t *Turn) Release() {
	if t == nil {
		return
	}
	q := t.queue
	q.mu.Lock()
	if t.holds {
		t.holds = false
		q.taken -= t.amount
	} else if t.place != nil {
		q.leave(t)
	}
	served := q.serve()
	q.mu.Unlock()
	for _, next := range served {
		next.granted(next)
	}
}

// leave ends the wait of a turn.
func (q *Queue) leave(t *Turn) {
	t.line.turns.Remove(t.place)
	t.place = nil
	q.count--
	if t.line.turns.Len() == 0 {
		q.order.Remove(t.line.place)
		delete(q.lines, t.line.caller)
	}
}

// serve gives what is free to those next in turn.
func (q *Queue) serve() (served []*Turn) {
	for front := q.order.Front(); front != nil; front = q.order.Front() {
		t := front.Value.(*line).turns.Front().Value.(*Turn)
		if t.amount > q.total-q.taken {
			break
		}
		q.order.MoveToBack(front)
		q.leave(t)
		t.holds = true
		q.taken += t.amount
		served = append(served, t)
	}
	return served
}

// Taken returns how much is taken.
func (q *Queue) Taken() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

// Waiting tells who waits.
func (q *Queue) Waiting() Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := Waiting{Count: q.count}
	for e := q.order.Front(); e != nil; e = e.Next() {
		waiting := e.Value.(*line)
		if first := waiting.turns.Front().Value.(*Turn); all.Since.IsZero() || first.since.Before(all.Since) {
			all.Caller, all.Since = waiting.caller, first.since
		}
	}
	return all
}

// largeShare is the part of a Room from which on an amount is large.
const largeShare = 16

// Room is a Queue of which amounts of more than a sixteenth have one half, and all others the
// other: few large ones never keep many small ones waiting. Make one by NewRoom.
type Room struct {
	small, large *Queue
	most         int64 // of small ones
}

// NewRoom makes a room of which nothing is taken.
func NewRoom(total int64) *Room {
	return &Room{small: NewQueue(total - total/2), large: NewQueue(total / 2), most: total / largeShare}
}

func (r *Room) queue(amount int64) *Queue {
	if amount > r.most {
		return r.large
	}
	return r.small
}

// Ask is that of the half that an amount belongs to.
func (r *Room) Ask(caller string, amount int64, granted func(*Turn)) (t *Turn, free bool) {
	return r.queue(amount).Ask(caller, amount, granted)
}

// Wait is that of the half that an amount belongs to.
func (r *Room) Wait(ctx context.Context, caller string, amount int64) (*Turn, error) {
	return r.queue(amount).Wait(ctx, caller, amount)
}

// Common returns how much there is for small amounts.
func (r *Room) Common() int64 { return r.small.total }

// Taken returns how much is taken.
func (r *Room) Taken() int64 { return r.small.Taken() + r.large.Taken() }

// Waiting tells who waits.
func (r *Room) Waiting() Waiting {
	all, other := r.small.Waiting(), r.large.Waiting()
	count := all.Count + other.Count
	if all.Count == 0 || other.Count > 0 && other.Since.Before(all.Since) {
		all = other
	}
	all.Count = count
	return all
}
