package targets

import (
	"cmp"
	"container/list"
	"iter"
	"net/netip"
	"slices"

	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// Table is what each address is to get. Rates are probes in 1,000 seconds.
type Table struct {
	limit   int64
	rates   map[[16]byte]int64            // by address, of the endpoints that are counted
	waiters map[health.Hash]*list.Element // in a place
	full    map[netip.Addr]*place
	places  *list.List          // of *place: those of full, in the order in which they came
	touched map[netip.Addr]bool // of full: where there may be room

	arrivals map[string]uint64 // by cluster: the order in which they came
	last     uint64            // of arrivals
}

// place is an address at which endpoints wait.
type place struct {
	queue    *list.List // of *waiter, in order
	hopeless *list.List // of *waiter: each asks for more than the limit
	crowd    Crowd
	element  *list.Element // of places
}

// waiter is an endpoint that waits.
type waiter struct {
	hash health.Hash
	rate int64
}

// Crowd are the endpoints that wait at an address.
type Crowd struct {
	Address   netip.Addr
	Endpoints int
	Cluster   string // of the one that came last
}

// New makes a table without endpoints and without a limit.
func New() *Table {
	t := &Table{arrivals: map[string]uint64{}}
	t.clear()
	return t
}

func (t *Table) clear() {
	t.rates, t.waiters, t.full = map[[16]byte]int64{}, map[health.Hash]*list.Element{}, map[netip.Addr]*place{}
	t.places, t.touched = list.New(), map[netip.Addr]bool{}
}

// Replace counts a version of a cluster in the place of the one before; either may be nil. What
// has no room waits until Admit at least.
func (t *Table) Replace(before, after *catalog.Cluster) {
	switch {
	case before == nil && after != nil:
		t.last++
		t.arrivals[after.Source.Name] = t.last
	case before != nil && after == nil:
		delete(t.arrivals, before.Source.Name)
	}
	t.change(before, after)
}

func (t *Table) change(before, after *catalog.Cluster) {
	for old, next := range catalog.ChangedTargets(before, after) {
		if old.Address == next.Address && next.Rate <= old.Rate && t.waiters[old.Hash] == nil {
			t.count(old.Address, next.Rate-old.Rate)
			continue
		}
		if old.Address.IsValid() {
			t.remove(&old)
		}
		if next.Address.IsValid() {
			t.add(&next, after.Source.Name)
		}
	}
}

// count adds to what an address is to get.
func (t *Table) count(address netip.Addr, rate int64) {
	key := address.As16()
	if t.rates[key] += rate; t.rates[key] == 0 {
		delete(t.rates, key)
	}
	if t.full[address] != nil {
		t.touched[address] = true
	}
}

func (t *Table) add(e *catalog.Target, cluster string) {
	p := t.full[e.Address]
	if p == nil && t.fits(e.Address, e.Rate) {
		t.count(e.Address, e.Rate)
		return
	}
	if p == nil {
		p = &place{queue: list.New(), hopeless: list.New(), crowd: Crowd{Address: e.Address}}
		p.element = t.places.PushBack(p)
		t.full[e.Address] = p
	}
	to := p.queue
	if e.Rate > t.limit {
		to = p.hopeless
	}
	t.waiters[e.Hash] = to.PushBack(&waiter{e.Hash, e.Rate})
	t.touched[e.Address], p.crowd.Cluster = true, cluster
}

func (t *Table) fits(address netip.Addr, rate int64) bool {
	return t.limit == 0 || t.rates[address.As16()]+rate <= t.limit
}

func (t *Table) remove(e *catalog.Target) {
	waits := t.waiters[e.Hash]
	if waits == nil {
		t.count(e.Address, -e.Rate)
		return
	}
	p := t.full[e.Address]
	p.queue.Remove(waits)    // Remove changes nothing
	p.hopeless.Remove(waits) // in the other list
	delete(t.waiters, e.Hash)
	t.touched[e.Address] = true
}

// Admit counts the endpoints that have waited and for which there is room now. It returns them.
func (t *Table) Admit() (admitted []health.Hash) {
	for address := range t.touched {
		p := t.full[address]
		for front := p.queue.Front(); front != nil; front = p.queue.Front() {
			w := front.Value.(*waiter)
			if !t.fits(address, w.rate) {
				break
			}
			t.rates[address.As16()] += w.rate
			p.queue.Remove(front)
			delete(t.waiters, w.hash)
			admitted = append(admitted, w.hash)
		}
		if p.queue.Len()+p.hopeless.Len() == 0 {
			delete(t.full, address)
			t.places.Remove(p.element)
		}
	}
	clear(t.touched)
	return admitted
}

// SetLimit sets how many probes a second an address gets at most, given the clusters that are
// counted; 0: any number. It returns the endpoints that wait from now on, or no longer. The cost is
// that of all clusters if the limit changes.
func (t *Table) SetLimit(limit uint32, clusters iter.Seq[*catalog.Cluster]) (changed []health.Hash) {
	if t.limit == int64(limit)*1000 {
		return nil
	}
	before := t.waiters
	t.clear()
	t.limit = int64(limit) * 1000
	for _, k := range slices.SortedFunc(clusters, func(a, b *catalog.Cluster) int {
		return cmp.Compare(t.arrivals[a.Source.Name], t.arrivals[b.Source.Name])
	}) {
		t.change(nil, k)
	}
	t.Admit()
	for hash := range before {
		if !t.Waits(hash) {
			changed = append(changed, hash)
		}
	}
	for hash := range t.waiters {
		if before[hash] == nil {
			changed = append(changed, hash)
		}
	}
	return changed
}

// Waits reports whether an endpoint waits until its address has room.
func (t *Table) Waits(hash health.Hash) bool { return t.waiters[hash] != nil }

// Waiting counts the addresses at which endpoints wait, and these endpoints.
func (t *Table) Waiting() (addresses, endpoints int) { return len(t.full), len(t.waiters) }

// First returns who waits at the address at which some have waited for longest. There have to be some.
func (t *Table) First() Crowd { return crowdOf(t.places.Front()) }

// Last returns who waits at the address at which some began to wait last. There have to be some.
func (t *Table) Last() Crowd { return crowdOf(t.places.Back()) }

func crowdOf(e *list.Element) Crowd {
	p := e.Value.(*place)
	p.crowd.Endpoints = p.queue.Len() + p.hopeless.Len()
	return p.crowd
}
