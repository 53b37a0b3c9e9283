package share

import (
	"slices"
	"time"
)

// waiter is a lease that waits to grow. Pool.mu guards it.
type waiter struct {
	lease  *Lease
	amount int64
	done   chan struct{} // closed when it has the amount, or never will
	got    bool
}

// Wait is Add, but it waits for others to give something back, for as long as patience
// lasts. Who waits longest is served first, as long as what it asks for is free. An
// amount that no wait would make possible is refused at once.
func (l *Lease) Wait(amount int64, patience time.Duration) error {
	p := l.pool
	p.mu.Lock()
	if l.over {
		p.mu.Unlock()
		return &Error{Limit: p.limit, Caller: l.of.caller, Ended: true}
	}
	evicted, refused := p.add(l, amount)
	if refused == nil || patience <= 0 || amount > min(p.limit.Each, p.limit.Total) {
		p.mu.Unlock()
		p.tell(evicted, refused)
		if refused != nil {
			return refused
		}
		return nil
	}
	w := &waiter{lease: l, amount: amount, done: make(chan struct{})}
	p.queue = append(p.queue, w)
	p.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
	p.mu.Lock()
	got := w.got
	p.queue = slices.DeleteFunc(p.queue, func(other *waiter) bool { return other == w })
	p.mu.Unlock()
	if got {
		return nil
	}
	p.report(refused)
	return refused
}

// Try is Add for those who go on to Wait: a refusal is not reported.
func (l *Lease) Try(amount int64) bool {
	p := l.pool
	p.mu.Lock()
	if l.over {
		p.mu.Unlock()
		return false
	}
	evicted, refused := p.add(l, amount)
	p.serve()
	p.mu.Unlock()
	p.tell(evicted, nil)
	return refused == nil
}

// serve gives those who wait what has become free.
func (p *Pool) serve() {
	if len(p.queue) == 0 {
		return
	}
	p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
		l := w.lease
		fits := w.amount <= p.limit.Each-l.of.amount && w.amount <= p.limit.Total-p.taken
		if !l.over && !fits {
			return false
		}
		if !l.over {
			p.change(l, w.amount)
			w.got = true
		}
		close(w.done)
		return true
	})
}
