package share

import (
	"container/heap"
	"math"
	"sync"
)

// Limit says how much there is. An amount of zero means that there is no such limit.
type Limit struct {
	What      string // what is counted, in the plural: "streams"
	Field     string // the configuration field of Total
	Total     int64  // for all callers
	EachField string // the configuration field of Each; empty if none sets it
	Each      int64  // for one caller

	// Refused, if not nil, is called for each refusal and for each lease that is ended
	// to make room. It must not block, and must not call the pool.
	Refused func(*Error)
}

// Pool is an amount that callers share. Make one by NewPool.
type Pool struct {
	limit Limit

	mu     sync.Mutex
	taken  int64
	shares map[string]*share
	most   byAmount // the same shares, the largest first
}

// share is what one caller has.
type share struct {
	caller string
	amount int64
	leases int
	index  int // in Pool.most

	// Of the leases that can be ended.
	newest  *Lease
	endable int64
}

// Usage is how much of a pool is taken, and by how many.
type Usage struct {
	Taken   int64
	Callers int
}

// Lease is an amount that a caller has taken. Several goroutines may use it.
type Lease struct {
	pool *Pool
	of   *share
	end  func(error) // nil if the lease cannot be ended

	// Guarded by Pool.mu.
	amount       int64
	over         bool
	older, newer *Lease // of the same caller, among those that can be ended
}

// NewPool makes a pool of which nothing is taken.
func NewPool(l Limit) *Pool {
	if l.Total <= 0 {
		l.Total = math.MaxInt64
	}
	if l.Each <= 0 {
		l.Each = math.MaxInt64
	}
	return &Pool{limit: l, shares: make(map[string]*share)}
}

// Limit returns the limits of the pool. What has none is math.MaxInt64.
func (p *Pool) Limit() Limit { return p.limit }

// Usage tells how much is taken.
func (p *Pool) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Usage{Taken: p.taken, Callers: len(p.shares)}
}

// Take gives a caller an amount, or an *Error. An amount of zero is a lease to Add to.
// If end is not nil, it is called when the lease has to make room for callers that have
// less: it has to end what the lease is for, with the error, and must not block. The
// lease is released already. A nil end keeps the lease until it is released.
func (p *Pool) Take(caller string, amount int64, end func(error)) (*Lease, error) {
	p.mu.Lock()
	of := p.shares[caller]
	if of == nil {
		of = &share{caller: caller}
		p.shares[caller] = of
		heap.Push(&p.most, of)
	}
	l := &Lease{pool: p, of: of, end: end}
	p.begin(l)
	evicted, err := p.add(l, amount)
	if err != nil {
		p.release(l)
	}
	p.mu.Unlock()
	p.tell(evicted, err)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Add takes more, or gives back if the amount is negative. On an error the lease keeps
// what it has. Nothing can be added to a lease that was released or ended.
func (l *Lease) Add(amount int64) error {
	p := l.pool
	p.mu.Lock()
	if l.over {
		p.mu.Unlock()
		return &Error{Limit: p.limit, Caller: l.of.caller, Ended: true}
	}
	evicted, err := p.add(l, amount)
	p.mu.Unlock()
	p.tell(evicted, err)
	if err != nil {
		return err
	}
	return nil
}

// Amount returns how much the lease has.
func (l *Lease) Amount() int64 {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.amount
}

// Release gives everything back. It may be called more than once, and on nil.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.pool.release(l)
}

// add changes the amount of a lease. It makes room where that is fair, and returns
// the leases that had to go.
func (p *Pool) add(l *Lease, amount int64) ([]*Lease, *Error) {
	if amount <= 0 {
		p.change(l, max(amount, -l.amount))
		return nil, nil
	}
	if amount > p.limit.Each-l.of.amount {
		return nil, &Error{Limit: p.limit, Caller: l.of.caller, Has: l.of.amount, Wants: amount, ByCaller: true}
	}
	evicted, enough := p.makeRoom(l.of, amount)
	if !enough {
		return nil, &Error{Limit: p.limit, Caller: l.of.caller, Has: l.of.amount, Wants: amount, Taken: p.taken}
	}
	p.change(l, amount)
	return evicted, nil
}

// makeRoom sees to it that an amount is free. If it is not, whoever has most has to
// end its newest leases, provided that it could keep as much as the other would have.
// So two callers never take turns in ending each other's leases.
func (p *Pool) makeRoom(of *share, amount int64) (evicted []*Lease, enough bool) {
	missing := amount - (p.limit.Total - p.taken)
	if missing <= 0 {
		return nil, true
	}
	largest := p.most[0]
	if largest == of || missing > largest.endable || largest.amount-missing < of.amount+amount {
		return nil, false
	}
	for ; missing > 0; missing = amount - (p.limit.Total - p.taken) {
		evicted = append(evicted, largest.newest)
		p.release(largest.newest)
	}
	return evicted, true
}

// change changes an amount that is known to fit.
func (p *Pool) change(l *Lease, amount int64) {
	l.amount += amount
	l.of.amount += amount
	if l.end != nil {
		l.of.endable += amount
	}
	p.taken += amount
	heap.Fix(&p.most, l.of.index)
}

// begin adds a lease to those of its caller.
func (p *Pool) begin(l *Lease) {
	l.of.leases++
	if l.end == nil {
		return
	}
	l.older, l.of.newest = l.of.newest, l
	if l.older != nil {
		l.older.newer = l
	}
}

// release ends a lease, and forgets a caller whose last one it was.
func (p *Pool) release(l *Lease) {
	if l.over {
		return
	}
	l.over = true
	p.change(l, -l.amount)
	l.of.leases--
	if l.end != nil {
		if l.newer != nil {
			l.newer.older = l.older
		} else {
			l.of.newest = l.older
		}
		if l.older != nil {
			l.older.newer = l.newer
		}
		l.older, l.newer = nil, nil
	}
	if l.of.leases == 0 {
		delete(p.shares, l.of.caller)
		heap.Remove(&p.most, l.of.index)
	}
}

// tell ends what had to make room, and reports refusals.
func (p *Pool) tell(evicted []*Lease, refused *Error) {
	for _, l := range evicted {
		err := &Error{Limit: p.limit, Caller: l.of.caller, Ended: true}
		p.report(err)
		l.end(err)
	}
	if refused != nil {
		p.report(refused)
	}
}

func (p *Pool) report(err *Error) {
	if p.limit.Refused != nil {
		p.limit.Refused(err)
	}
}
