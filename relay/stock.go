package relay

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"hdsd/relay/message"
)

// stock is what the connected nodes have, each resource once. Its content is what hdsd
// checks.
type stock struct {
	maxEndpoints int // of one cluster
	maxTotal     int // endpoints of all

	mu       sync.Mutex // guards what follows
	byHash   map[uint64][]*body
	byName   [kinds]map[string][]*body // in the order in which they came
	total    int                       // weight of all
	dirty    map[subject]bool          // changed since the catalogue was last made
	learned  uint64                    // counts changes
	applied  uint64                    // of these, those that hdsd's core knows
	progress chan struct{}             // closed when applied grows
	wake     chan struct{}
	settled  map[string]bool // by cluster: it has endpoints, so hdsd has decided whether to check it
}

func newStock(maxEndpoints, maxTotal int) *stock {
	return &stock{
		maxEndpoints: maxEndpoints, maxTotal: maxTotal, byHash: map[uint64][]*body{}, byName: [kinds]map[string][]*body{{}, {}},
		dirty: map[subject]bool{}, progress: make(chan struct{}), wake: make(chan struct{}, 1), settled: map[string]bool{},
	}
}

// take returns a resource as nodes are given it, with one more reference. The moment is for
// await.
func (s *stock) take(k kind, u *message.Unit) (i *item, moment uint64) {
	hash := xxhash.Sum64(u.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.find(k, u.Name, u.Body, hash)
	if x == nil {
		s.mu.Unlock()
		fresh := newBody(k, u.Name, u.Body, s.maxEndpoints) // decoding takes time
		s.mu.Lock()
		if x = s.find(k, u.Name, u.Body, hash); x == nil {
			x = fresh
			s.add(x)
		}
	}
	for _, i = range x.items {
		if i.version == u.Version && i.wrapped == u.Wrapped && bytes.Equal(i.extra, u.Extra) {
			i.refs++
			return i, x.moment
		}
	}
	i = &item{body: x, version: u.Version, extra: u.Extra, wrapped: u.Wrapped, refs: 1}
	x.items = append(x.items, i)
	return i, x.moment
}

func (s *stock) find(k kind, name string, wire []byte, hash uint64) *body {
	for _, x := range s.byHash[hash] {
		if x.kind == k && x.name == name && bytes.Equal(x.wire, wire) {
			return x
		}
	}
	return nil
}

func (s *stock) add(x *body) {
	if s.total += x.weight(); s.total > s.maxTotal && x.wrong == "" {
		x.wrong = "the nodes of the relay have more endpoints, or resources without any, than limits.max_source_endpoints allows: raise it and restart hdsd"
	}
	s.byHash[x.hash] = append(s.byHash[x.hash], x)
	s.byName[x.kind][x.name] = append(s.byName[x.kind][x.name], x)
	s.touch(x)
}

// touch notes that a resource came or went.
func (s *stock) touch(x *body) {
	s.learned++
	x.moment = s.learned
	s.dirty[subject{x.kind, x.name}] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// release gives references back; nil is none.
func (s *stock) release(all ...*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range all {
		if i == nil {
			continue
		}
		if i.refs--; i.refs > 0 {
			continue
		}
		x := i.body
		if x.items = slices.DeleteFunc(x.items, func(other *item) bool { return other == i }); len(x.items) == 0 {
			s.remove(x)
		}
	}
}

func (s *stock) remove(x *body) {
	s.total -= x.weight()
	is := func(other *body) bool { return other == x }
	if s.byHash[x.hash] = slices.DeleteFunc(s.byHash[x.hash], is); len(s.byHash[x.hash]) == 0 {
		delete(s.byHash, x.hash)
	}
	named := s.byName[x.kind]
	if named[x.name] = slices.DeleteFunc(named[x.name], is); len(named[x.name]) == 0 {
		delete(named, x.name)
	}
	s.touch(x)
}

// hold returns an item with one more reference; nil is none.
func (s *stock) hold(i *item) *item {
	if i == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i.refs++
	return i
}

// await waits until hdsd knows what was learned up to a moment.
func (s *stock) await(ctx context.Context, moment uint64) {
	for {
		s.mu.Lock()
		done, progress := s.applied >= moment, s.progress
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return
		}
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

// decided reports whether hdsd knows endpoints of a cluster.
func (s *stock) decided(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled[cluster]
}
