package relay

import (
	"bytes"
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stock has the clusters and assignments of connected and remembered nodes, each once. hdsd checks them.
type stock struct {
	maxEndpoints      int                       // of one cluster
	maxEndpointsOfAll int                       // of all clusters
	isRemembered      func(cluster string) bool // Options.Remembers
	names             atomic.Int64              // number of names; written with mu held

	mu       sync.Mutex         // guards the fields below
	items    map[uint64][]*item // by the hash of their bytes
	bodies   map[uint64][]*body // by identity
	byName   [kinds]map[string]*roster
	total    int              // weight of all resources that there is room for
	waiting  *list.List       // the other resources
	dirty    map[subject]bool // changed since the catalogue was last made
	learned  uint64           // number of changes
	applied  uint64           // number of those that hdsd's core knows
	progress chan struct{}    // closed when applied grows
	wake     chan struct{}
	hurry    chan struct{}    // a response waits
	settled  map[string]bool  // by hdsd's name of a cluster: it has endpoints, and hdsd has decided whether to check it
	promised map[string]int64 // by cluster without endpoints that clients do not check: begin in Unix nanoseconds; 0: given back

	remembered map[string]int // by assignment: number of its clusters of which hdsd may know health
}

func newStock(maxEndpoints, maxTotal int, knows func(cluster string) bool) *stock {
	return &stock{
		maxEndpoints: maxEndpoints, maxEndpointsOfAll: maxTotal, isRemembered: knows,
		items: map[uint64][]*item{}, bodies: map[uint64][]*body{}, byName: [kinds]map[string]*roster{{}, {}},
		dirty: map[subject]bool{}, progress: make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		settled: map[string]bool{}, promised: map[string]int64{}, waiting: list.New(), remembered: map[string]int{},
	}
}

// findBody returns a body of the stock; nil: there is none.
func (s *stock) findBody(identity uint64, k kind, name string, wire []byte) *body {
	for _, x := range s.bodies[identity] {
		if x.kind == k && x.name == name && bytes.Equal(x.wire, wire) {
			return x
		}
	}
	return nil
}

func (s *stock) addBody(x *body) {
	if x.defect == "" && s.total+x.weight() > s.maxEndpointsOfAll {
		x.excess.Store(true)
		x.element = s.waiting.PushBack(x)
	} else {
		s.total += x.weight()
	}
	s.bodies[x.identity] = append(s.bodies[x.identity], x)
	list := s.byName[x.kind][x.name]
	if list == nil {
		list = &roster{}
		s.byName[x.kind][x.name] = list
	}
	list.add(x)
	s.countNames()
	if x.remembered {
		s.remembered[x.service]++
	}
	s.markChanged(x)
}

// countNames counts the names again after a resource was added or removed.
func (s *stock) countNames() {
	s.names.Store(int64(len(s.byName[clusters]) + len(s.byName[assignments])))
}

// markChanged counts a change: a resource was added, removed or admitted.
func (s *stock) markChanged(x *body) {
	s.learned++
	x.moment = s.learned
	s.dirty[subject{x.kind, x.name}] = true
	s.wakeUp()
}

// wakeUp has the catalogue built again.
func (s *stock) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stock) removeBody(x *body) {
	if x.excess.Load() {
		s.waiting.Remove(x.element)
	} else {
		s.total -= x.weight()
	}
	removeFrom(s.bodies, x.identity, x)
	list := s.byName[x.kind][x.name]
	if list.remove(x); list.size() == 0 {
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
	s.markChanged(x)
	s.admit()
}

// admit lets waiting resources in while there is room, the oldest first.
func (s *stock) admit() {
	for first := s.waiting.Front(); first != nil; first = s.waiting.Front() {
		x := first.Value.(*body)
		if s.total+x.weight() > s.maxEndpointsOfAll {
			return
		}
		s.waiting.Remove(first)
		s.total += x.weight()
		x.excess.Store(false)
		s.markChanged(x)
	}
}

// removeFrom removes a value of a key.
func removeFrom[K, V comparable](m map[K][]V, key K, value V) {
	values := slices.DeleteFunc(m[key], func(v V) bool { return v == value })
	if len(values) > 0 {
		m[key] = values
	} else {
		delete(m, key)
	}
}

// setApplied notes that hdsd's core knows the changes up to a moment.
func (s *stock) setApplied(moment uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = max(s.applied, moment)
	close(s.progress)
	s.progress = make(chan struct{})
}

// decided reports whether hdsd knows endpoints of a cluster, or has given it back since none came.
func (s *stock) decided(own, cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin, promised := s.promised[cluster]
	return s.settled[own] || promised && begin == 0
}

// promiseTimeout is how long clients do not check a cluster whose endpoints hdsd does not know yet. By
// default, an Envoy waits as long for the endpoints.
const promiseTimeout = 15 * time.Second

// promise notes that clients do not check a cluster, since hdsd expects to check it.
func (s *stock) promise(cluster string, moment time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, promised := s.promised[cluster]; !promised && s.byName[clusters][cluster] != nil {
		s.promised[cluster] = moment.UnixNano()
	}
}

// breakPromises gives clusters back whose endpoints did not come in time, and returns them.
func (s *stock) breakPromises(moment time.Time) (broken []subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, begin := range s.promised {
		if begin != 0 && moment.UnixNano()-begin >= int64(promiseTimeout) {
			s.promised[name] = 0
			broken = append(broken, subject{clusters, name})
		}
	}
	return broken
}
