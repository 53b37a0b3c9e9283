package targets

import (
	"cmp"
	"container/list"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"hdsd/catalog"
	"hdsd/health"
)

// Table holds the planned probes at each address. Rates are probes in 1,000 seconds.
type Table struct {
	limit   int64                         // of each address; 0: none
	rates   map[[16]byte]int64            // by address: the sum of the counted endpoints
	waiters map[health.Hash]*list.Element // waiting endpoints, in a list of their queue
	queues  map[netip.Addr]*queue
	order   *list.List          // of *queue: all queues, the oldest first
	changed map[netip.Addr]bool // addresses with a queue that may have room

	arrivals map[string]uint64 // by cluster: its number in the order of arrival
	arrival  uint64            // the latest number
}

// queue holds the endpoints that wait at an address.
type queue struct {
	waiting   *list.List // of *waiter, first come, first served
	oversized *list.List // of *waiter: each exceeds the limit alone, and blocks no other
	summary   Queue
	element   *list.Element // in Table.order
}

// waiter is a waiting endpoint.
type waiter struct {
	hash health.Hash
	rate int64
}

// Queue summarizes the endpoints that wait at an address.
type Queue struct {
	Address   netip.Addr
	Endpoints int    // that wait
	Cluster   string // of the latest endpoint
}

// New makes a table without endpoints and without a limit.
func New() *Table {
	t := &Table{arrivals: map[string]uint64{}}
	t.clear()
	return t
}

func (t *Table) clear() {
	t.rates, t.waiters, t.queues = map[[16]byte]int64{}, map[health.Hash]*list.Element{}, map[netip.Addr]*queue{}
	t.order, t.changed = list.New(), map[netip.Addr]bool{}
}

// Replace counts a version of a cluster in place of the previous one; either may be nil.
// Endpoints without room wait for a later Admit.
func (t *Table) Replace(previous, next *catalog.Cluster) {
	switch {
	case previous == nil && next != nil:
		t.arrival++
		t.arrivals[next.Source.Name] = t.arrival
	case previous != nil && next == nil:
		delete(t.arrivals, previous.Source.Name)
	}
	t.change(previous, next)
}

func (t *Table) change(previous, next *catalog.Cluster) {
	for removed, added := range catalog.ChangedTargets(previous, next) {
		if removed.Address == added.Address && added.Rate <= removed.Rate && t.waiters[removed.Hash] == nil {
			t.count(removed.Address, added.Rate-removed.Rate)
			continue
		}
		if removed.Address.IsValid() {
			t.remove(&removed)
		}
		if added.Address.IsValid() {
			t.add(&added, next.Source.Name)
		}
	}
}

// count adds to the rate of an address.
func (t *Table) count(address netip.Addr, rate int64) {
	key := address.As16()
	if t.rates[key] += rate; t.rates[key] == 0 {
		delete(t.rates, key)
	}
	if t.queues[address] != nil {
		t.changed[address] = true
	}
}

func (t *Table) add(e *catalog.Target, cluster string) {
	q := t.queues[e.Address]
	if q == nil && t.fits(e.Address, e.Rate) {
		t.count(e.Address, e.Rate)
		return
	}
	if q == nil {
		q = &queue{waiting: list.New(), oversized: list.New(), summary: Queue{Address: e.Address}}
		q.element = t.order.PushBack(q)
		t.queues[e.Address] = q
	}
	line := q.waiting
	if e.Rate > t.limit {
		line = q.oversized
	}
	t.waiters[e.Hash] = line.PushBack(&waiter{e.Hash, e.Rate})
	t.changed[e.Address], q.summary.Cluster = true, cluster
}

func (t *Table) fits(address netip.Addr, rate int64) bool {
	return t.limit == 0 || t.rates[address.As16()]+rate <= t.limit
}

func (t *Table) remove(e *catalog.Target) {
	element := t.waiters[e.Hash]
	if element == nil {
		t.count(e.Address, -e.Rate)
		return
	}
	q := t.queues[e.Address]
	q.waiting.Remove(element) // Remove ignores elements of another list
	q.oversized.Remove(element)
	delete(t.waiters, e.Hash)
	t.changed[e.Address] = true
}

// Admit counts the waiting endpoints that fit now, and returns them.
func (t *Table) Admit() (admitted []health.Hash) {
	for _, address := range slices.SortedFunc(maps.Keys(t.changed), netip.Addr.Compare) {
		q := t.queues[address]
		for front := q.waiting.Front(); front != nil; front = q.waiting.Front() {
			w := front.Value.(*waiter)
			if !t.fits(address, w.rate) {
				break
			}
			t.rates[address.As16()] += w.rate
			q.waiting.Remove(front)
			delete(t.waiters, w.hash)
			admitted = append(admitted, w.hash)
		}
		if q.len() == 0 {
			delete(t.queues, address)
			t.order.Remove(q.element)
		}
	}
	clear(t.changed)
	return admitted
}

// SetLimit sets the maximum of probes per second at an address; 0: any number. It takes all
// counted clusters. It returns the endpoints that begin or cease to wait. If the limit changes,
// it counts all clusters again.
func (t *Table) SetLimit(limit uint32, clusters iter.Seq[*catalog.Cluster]) (changed []health.Hash) {
	if t.limit == int64(limit)*1000 {
		return nil
	}
	previous := t.waiters
	t.clear()
	t.limit = int64(limit) * 1000
	for _, k := range slices.SortedFunc(clusters, func(a, b *catalog.Cluster) int {
		return cmp.Compare(t.arrivals[a.Source.Name], t.arrivals[b.Source.Name])
	}) {
		t.change(nil, k)
	}
	t.Admit()
	for hash := range previous {
		if !t.Waits(hash) {
			changed = append(changed, hash)
		}
	}
	for hash := range t.waiters {
		if previous[hash] == nil {
			changed = append(changed, hash)
		}
	}
	slices.Sort(changed)
	return changed
}

// Waits reports whether an endpoint waits until its address has room.
func (t *Table) Waits(hash health.Hash) bool { return t.waiters[hash] != nil }

// Waiting counts the addresses at which endpoints wait, and these endpoints.
func (t *Table) Waiting() (addresses, endpoints int) { return len(t.queues), len(t.waiters) }

// Oldest summarizes the oldest queue. Call it only while endpoints wait.
func (t *Table) Oldest() Queue { return summaryOf(t.order.Front()) }

// Newest summarizes the newest queue. Call it only while endpoints wait.
func (t *Table) Newest() Queue { return summaryOf(t.order.Back()) }

func summaryOf(e *list.Element) Queue {
	q := e.Value.(*queue)
	q.summary.Endpoints = q.len()
	return q.summary
}

func (q *queue) len() int { return q.waiting.Len() + q.oversized.Len() }
