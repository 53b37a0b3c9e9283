package relay

import (
	"bytes"
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stock is what the connected nodes have, each resource once. Its content is what hdsd
// checks.
type stock struct {
	maxEndpoints int                       // of one cluster
	maxTotal     int                       // endpoints of all
	knows        func(cluster string) bool // Options.Remembers
	names        atomic.Int64              // how many names the resources have; written with mu held

	mu       sync.Mutex         // guards what follows
	items    map[uint64][]*item // by hash of their bytes
	bodies   map[uint64][]*body // by identity
	byName   [kinds]map[string]*roster
	total    int              // weight of all that there is room for
	waiting  *list.List       // of those for which there is none
	dirty    map[subject]bool // changed since the catalogue was last made
	learned  uint64           // counts changes
	applied  uint64           // of these, those that hdsd's core knows
	progress chan struct{}    // closed when applied grows
	wake     chan struct{}
	hurry    chan struct{}    // a response waits
	settled  map[string]bool  // by hdsd's own name of a cluster: it has endpoints, so hdsd has decided whether to check it
	promised map[string]int64 // by cluster without endpoints that clients do not check: since when, in Unix nanoseconds; 0: no longer

	remembered map[string]int // by name of an assignment: clusters of which hdsd may know health
}

func newStock(maxEndpoints, maxTotal int, knows func(cluster string) bool) *stock {
	return &stock{
		maxEndpoints: maxEndpoints, maxTotal: maxTotal, knows: knows,
		items: map[uint64][]*item{}, bodies: map[uint64][]*body{}, byName: [kinds]map[string]*roster{{}, {}},
		dirty: map[subject]bool{}, progress: make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		settled: map[string]bool{}, promised: map[string]int64{}, waiting: list.New(), remembered: map[string]int{},
	}
}

// find returns a body that is there; nil: there is none.
func (s *stock) find(identity uint64, k kind, name string, wire []byte) *body {
	for _, x := range s.bodies[identity] {
		if x.kind == k && x.name == name && bytes.Equal(x.wire, wire) {
			return x
		}
	}
	return nil
}

func (s *stock) add(x *body) {
	if x.wrong == "" && s.total+x.weight() > s.maxTotal {
		x.crowded.Store(true)
		x.turn = s.waiting.PushBack(x)
	} else {
		s.total += x.weight()
	}
	s.bodies[x.identity] = append(s.bodies[x.identity], x)
	named := s.byName[x.kind][x.name]
	if named == nil {
		named = &roster{}
		s.byName[x.kind][x.name] = named
	}
	named.add(x)
	s.countNames()
	if x.remembered {
		s.remembered[x.service]++
	}
	s.touch(x)
}

// countNames is called when a resource came or went.
func (s *stock) countNames() {
	s.names.Store(int64(len(s.byName[clusters]) + len(s.byName[assignments])))
}

// touch notes that a resource came or went.
func (s *stock) touch(x *body) {
	s.learned++
	x.moment = s.learned
	s.dirty[subject{x.kind, x.name}] = true
	s.wakeUp()
}

// wakeUp has the catalogue made again.
func (s *stock) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stock) remove(x *body) {
	if x.crowded.Load() {
		s.waiting.Remove(x.turn)
	} else {
		s.total -= x.weight()
	}
	without(s.bodies, x.identity, x)
	named := s.byName[x.kind][x.name]
	if named.remove(x); named.size() == 0 {
		delete(s.byName[x.kind], x.name)
		if x.kind == clusters {
			delete(s.promised, x.name)
		}
	}
	s.countNames()
	if x.remembered {
		if s.remembered[x.service]--; s.remembered[x.service] == 0 {
			delete(s.remembered, x.service)
		}
	}
	s.touch(x)
	s.admit()
}

// admit lets resources in that wait for room, first come, first served.
func (s *stock) admit() {
	for first := s.waiting.Front(); first != nil; first = s.waiting.Front() {
		x := first.Value.(*body)
		if s.total+x.weight() > s.maxTotal {
			return
		}
		s.waiting.Remove(first)
		s.total += x.weight()
		x.crowded.Store(false)
		s.touch(x)
	}
}

// without removes one of those under a key.
func without[K, V comparable](all map[K][]V, key K, one V) {
	left := slices.DeleteFunc(all[key], func(other V) bool { return other == one })
	if len(left) > 0 {
		all[key] = left
	} else {
		delete(all, key)
	}
}

// know says that hdsd knows what was learned up to a moment.
func (s *stock) know(moment uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = max(s.applied, moment)
	close(s.progress)
	s.progress = make(chan struct{})
}

// decided reports whether hdsd knows endpoints of a cluster, or knows none for so long that it
// expects none.
func (s *stock) decided(own, cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, promised := s.promised[cluster]
	return s.settled[own] || promised && since == 0
}

// promiseTimeout is how long clients may be without health checks of their own in a cluster that
// hdsd has seen no endpoints of. After so long, an Envoy goes on without these by default.
const promiseTimeout = 15 * time.Second

// promise notes that clients do not check a cluster because hdsd expects to.
func (s *stock) promise(cluster string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, promised := s.promised[cluster]; !promised && s.byName[clusters][cluster] != nil {
		s.promised[cluster] = now.UnixNano()
	}
}

// breakPromises gives clusters back of which no endpoints came. It returns them.
func (s *stock) breakPromises(now time.Time) (broken []subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, since := range s.promised {
		if since != 0 && now.UnixNano()-since >= int64(promiseTimeout) {
			s.promised[name] = 0
			broken = append(broken, subject{clusters, name})
		}
	}
	return broken
}
