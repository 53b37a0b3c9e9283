package limit

import (
	"math"
	"sync"

	"hdsd/internal/heap"
)

// Limit bounds an amount. Zero means no bound.
type Limit struct {
	Unit           string // name of the amount, in the plural: "streams"
	Field          string // the configuration field of Total
	Total          int64  // for all callers
	PerCallerField string // the configuration field of Each; empty if none sets it
	PerCaller      int64  // for one caller

	// Refused, if not nil, is called for each refusal and for each lease that is ended to make
	// room. It must not block, and must not call the pool.
	Refused func(*Error)
}

// Pool is an amount shared by callers. Make one by NewPool.
type Pool struct {
	limit Limit

	mu      sync.Mutex
	taken   int64
	shares  map[string]*share
	largest heap.Heap[*share] // the same shares, the largest first
}

// share is the amount of one caller.
type share struct {
	caller string
	amount int64
	leases int
	index  int // in Pool.most

	// Of the leases that can be ended.
	newest  *Lease
	endable int64
}

// Usage is the taken amount of a pool, and the number of callers with a share.
type Usage struct {
	Taken   int64
	Callers int
}

// Lease is an amount taken by a caller. Several goroutines may use it.
type Lease struct {
	pool  *Pool
	share *share
	end   func(error) // nil if the lease cannot be ended

	// Guarded by Pool.mu.
	amount       int64
	ended        bool
	older, newer *Lease // of the same caller, among those that can be ended
}

// NewPool makes an empty pool.
func NewPool(l Limit) *Pool {
	if l.Total <= 0 {
		l.Total = math.MaxInt64
	}
	if l.PerCaller <= 0 {
		l.PerCaller = math.MaxInt64
	}
	return &Pool{limit: l, shares: map[string]*share{}, largest: heap.Heap[*share]{
		Less: func(a, b *share) bool { return a.amount > b.amount }, Moved: func(s *share, index int) { s.index = index },
	}}
}

// Limit returns the limits of the pool; math.MaxInt64 for none.
func (p *Pool) Limit() Limit { return p.limit }

// Usage returns the taken amount.
func (p *Pool) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Usage{Taken: p.taken, Callers: len(p.shares)}
}

// Take gives a caller an amount, or returns an *Error. An amount of zero is a lease to Add to.
// If end is not nil, it is called with an error when the lease has to make room for callers that
// have less: it must stop the lease's use, and must not block. The lease is released already. A
// nil end keeps the lease until it is released.
func (p *Pool) Take(caller string, amount int64, end func(error)) (*Lease, error) {
	p.mu.Lock()
	holder := p.shares[caller]
	if holder == nil {
		holder = &share{caller: caller}
		p.shares[caller] = holder
		p.largest.Push(holder)
	}
	l := &Lease{pool: p, share: holder, end: end}
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

// Add takes more, or gives back if the amount is negative. On an error the lease keeps its
// amount. Nothing can be added to a released or ended lease.
func (l *Lease) Add(amount int64) error {
	p := l.pool
	p.mu.Lock()
	if l.ended {
		p.mu.Unlock()
		return &Error{Limit: p.limit, Caller: l.share.caller, Ended: true}
	}
	evicted, err := p.add(l, amount)
	p.mu.Unlock()
	p.tell(evicted, err)
	if err != nil {
		return err
	}
	return nil
}

// Amount returns the amount of the lease.
func (l *Lease) Amount() int64 {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.amount
}

// Release returns everything back. It may be called more than once, and on nil.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.pool.release(l)
}

// add changes the amount of a lease. It makes room if that is fair, and returns the evicted
// leases.
func (p *Pool) add(l *Lease, amount int64) ([]*Lease, *Error) {
	if amount <= 0 {
		p.change(l, max(amount, -l.amount))
		return nil, nil
	}
	if amount > p.limit.PerCaller-l.share.amount {
		return nil, &Error{Limit: p.limit, Caller: l.share.caller, Held: l.share.amount, Wants: amount, ByCaller: true}
	}
	evicted, enough := p.makeRoom(l.share, amount)
	if !enough {
		return nil, &Error{Limit: p.limit, Caller: l.share.caller, Held: l.share.amount, Wants: amount, Taken: p.taken}
	}
	p.change(l, amount)
	return evicted, nil
}

// makeRoom frees an amount, if need be by evicting the newest leases of the caller with most,
// provided that it keeps as much as the other would have. So two callers never evict each other
// in turns.
func (p *Pool) makeRoom(holder *share, amount int64) (evicted []*Lease, enough bool) {
	missing := amount - (p.limit.Total - p.taken)
	if missing <= 0 {
		return nil, true
	}
	largest := p.largest.Items[0]
	if largest == holder || missing > largest.endable || largest.amount-missing < holder.amount+amount {
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
	l.share.amount += amount
	if l.end != nil {
		l.share.endable += amount
	}
	p.taken += amount
	p.largest.Fix(l.share.index)
}

// begin adds a lease to those of its caller.
func (p *Pool) begin(l *Lease) {
	l.share.leases++
	if l.end == nil {
		return
	}
	l.older, l.share.newest = l.share.newest, l
	if l.older != nil {
		l.older.newer = l
	}
}

// release ends a lease, and forgets a caller whose last one it was.
func (p *Pool) release(l *Lease) {
	if l.ended {
		return
	}
	l.ended = true
	p.change(l, -l.amount)
	l.share.leases--
	if l.end != nil {
		if l.newer != nil {
			l.newer.older = l.older
		} else {
			l.share.newest = l.older
		}
		if l.older != nil {
			l.older.newer = l.newer
		}
		l.older, l.newer = nil, nil
	}
	if l.share.leases == 0 {
		delete(p.shares, l.share.caller)
		p.largest.Remove(l.share.index)
	}
}

// tell ends evicted leases, and reports refusals.
func (p *Pool) tell(evicted []*Lease, refused *Error) {
	for _, l := range evicted {
		err := &Error{Limit: p.limit, Caller: l.share.caller, Ended: true}
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
