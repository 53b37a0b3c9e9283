package relay

import (
	"container/list"
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// Bounds of what is remembered of nodes that have gone: resources of all, and streams of a
// node and type that had different ones.
const (
	maxRemembered = 1 << 20
	maxParts      = 1 << 10
)

// fewForgotten is how many resources are forgotten while others wait.
const fewForgotten = 1 << 10

// nodeKey stands for all that a control plane tells clients apart by, and for the variant of
// the protocol.
type nodeKey struct {
	node  [sha256.Size]byte
	kind  kind
	delta bool
}

// splits reports whether resources may go out one by one. The clusters of a
// state-of-the-world response have to be complete.
func (k nodeKey) splits() bool { return k.delta || k.kind == assignments }

// keyOf is the part of the key that is the client's: its node, and who the control plane is
// told that it is.
func (s *Server) keyOf(client context.Context, n *corev3.Node) [sha256.Size]byte {
	known := &corev3.Node{Id: n.GetId(), Cluster: n.GetCluster(), Metadata: n.GetMetadata(), Locality: n.GetLocality()}
	wire, _ := proto.MarshalOptions{Deterministic: true}.Marshal(known) // it was decoded
	node := sha256.Sum256(wire)
	return sha256.Sum256(append(node[:], s.identity(client)...))
}

// scope is what a stream asks for of a type.
type scope struct {
	wildcard bool   // all that there is
	names    uint64 // state of the world: a hash of the names
}

// memory is what nodes had whose streams have ended, for a while.
type memory struct {
	stock *stock
	keep  time.Duration

	mu      sync.Mutex // guards what follows
	records map[nodeKey][]*part
	order   *list.List // of all parts, by the time at which they end
	count   int        // resources
}

// part is what a stream of a node had of one type, when it ended. A node may have several
// streams: a gRPC client has one for each target. Of a name, the latest part counts, and the
// others do not have it. Only a part of all that there is stays whole.
type part struct {
	key     nodeKey
	asks    scope
	until   time.Time
	version string   // state of the world
	order   []string // state of the world: the clusters as they came; nil: not all are known
	has     holdings
	others  map[string][]*sent // what the client may have had instead, or as well: see doubts
	place   *list.Element      // in memory.order
}

// found is what is remembered of what a stream asks for. Each item has one more reference.
type found struct {
	items   map[string]*item
	version string   // state of the world; empty if they came with several
	order   []string // state of the world: the clusters as they came, or as they are asked for
	whole   bool     // nothing else belongs to it
	some    bool     // there is a version
}

func newMemory(s *stock, keep time.Duration) *memory {
	return &memory{stock: s, keep: keep, records: map[nodeKey][]*part{}, order: list.New()}
}

// remember takes over what a ledger has, what else its client may have, and the references.
func (m *memory) remember(l *ledger, others []*sent, now time.Time) {
	if l.held.count == 0 {
		m.stock.unhold(others...)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Clone(m.records[l.key]) {
		switch {
		case !l.key.splits() && p.asks == l.asks: // what it had is all there is
			m.forget(p)
		case l.asks.wildcard || !p.asks.wildcard:
			m.giveWay(p, &l.held)
		}
	}
	p := &part{key: l.key, asks: l.asks, until: now.Add(m.keep), version: l.version, has: l.held}
	for _, s := range others {
		p.add(s)
	}
	if len(l.order) == l.held.count {
		p.order = l.order
	}
	p.place = m.order.PushBack(p)
	m.records[l.key] = append(m.records[l.key], p)
	if m.count += p.has.count + len(others); len(m.records[l.key]) > maxParts {
		m.forget(m.records[l.key][0])
	}
	for m.count > maxRemembered && m.order.Len() > 1 {
		m.forget(m.order.Front().Value.(*part))
	}
}

// giveWay takes the names out of a part that are held. It looks through the smaller of both.
func (m *memory) giveWay(p *part, held *holdings) {
	if held.count <= p.has.count {
		for s := range held.all() {
			m.drop(p, s.name())
		}
		return
	}
	var shared []string
	for s := range p.has.all() {
		if name := s.name(); held.get(name) != nil {
			shared = append(shared, name)
		}
	}
	for _, name := range shared {
		m.drop(p, name)
	}
}

// among lists the names that a part has. It looks through the smaller of both: a node may have
// many parts, and a response many names.
func among(p *part, names map[string]bool) (shared []string) {
	if len(names) <= p.has.count {
		for name := range names {
			if p.has.get(name) != nil {
				shared = append(shared, name)
			}
		}
		return shared
	}
	for s := range p.has.all() {
		if _, ok := names[s.name()]; ok {
			shared = append(shared, s.name())
		}
	}
	return shared
}

// drop takes a name out of a part, and returns what it had.
func (m *memory) drop(p *part, name string) *sent {
	before := p.has.remove(name)
	if before != nil {
		m.count--
		if others := p.others[name]; len(others) > 0 {
			m.count -= len(others)
			m.stock.unhold(others...)
			delete(p.others, name)
		}
		if m.stock.unhold(before); p.has.count == 0 {
			m.forget(p)
		}
	}
	return before
}

func (m *memory) forget(p *part) {
	for s := range p.has.all() {
		m.stock.unhold(s)
	}
	for _, others := range p.others {
		m.count -= len(others)
		m.stock.unhold(others...)
	}
	m.count -= p.has.count
	p.has, p.others = holdings{}, nil
	m.order.Remove(p.place)
	without(m.records, p.key, p)
}

// replace forgets what a node had of the names of a response, because it has something newer
// or nothing. What only removed clusters use goes with them.
func (m *memory) replace(l *ledger, o *offer, removed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	services := map[string]bool{}
	parts := slices.Clone(m.records[l.key])
	names := map[string]bool{} // of the response, and whether the control plane removes them
	if len(parts) > 0 {
		for _, s := range o.brings {
			names[s.name()] = false
		}
		for name := range o.gone {
			names[name] = false
		}
		for _, name := range removed {
			names[name] = true
		}
	}
	for _, p := range parts {
		for _, name := range among(p, names) {
			if before := m.drop(p, name); names[name] {
				note(services, before)
			}
		}
		if !l.key.splits() && p.asks == l.asks && p.has.count > 0 { // the response has all that there is
			for s := range p.has.all() {
				note(services, s)
			}
			m.forget(p)
		}
	}
	if l.kind == clusters {
		for _, all := range o.gone {
			for _, s := range all {
				note(services, s)
			}
		}
		m.release(l, services)
	}
}

// note notes the assignment that a cluster uses.
func note(services map[string]bool, s *sent) {
	if s != nil && s.item.body.byEDS {
		services[s.item.body.service] = true
	}
}

// release forgets assignments that no cluster of a node uses any more.
func (m *memory) release(l *ledger, services map[string]bool) {
	key := nodeKey{l.key.node, assignments, l.key.delta}
	if len(services) == 0 || len(m.records[key]) == 0 {
		return
	}
	for s := range l.held.all() {
		delete(services, s.item.body.service)
	}
	for _, p := range m.records[l.key] {
		for s := range p.has.all() {
			delete(services, s.item.body.service)
		}
	}
	for _, p := range slices.Clone(m.records[key]) {
		for _, service := range among(p, services) {
			m.drop(p, service)
		}
	}
}

// expire forgets what is over, a little at a time: streams that begin and end wait for the lock.
func (m *memory) expire(now time.Time) {
	for m.expireSome(now) {
	}
}

// expireSome forgets the first of what is over. It reports whether there may be more.
func (m *memory) expireSome(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for stop := m.count - fewForgotten; m.count > stop; {
		first := m.order.Front()
		if first == nil || now.Before(first.Value.(*part).until) {
			return false
		}
		m.forget(first.Value.(*part))
	}
	return true
}

// knows reports whether something is remembered of a node.
func (m *memory) knows(node [sha256.Size]byte, delta bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records[nodeKey{node, clusters, delta}])+len(m.records[nodeKey{node, assignments, delta}]) > 0
}

// recall returns what a node had of what a stream asks for. A stream that asks for all is given
// what such a stream had.
func (m *memory) recall(key nodeKey, asks scope, names []string) *found {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	parts := m.records[key]
	var same *part
	for _, p := range slices.Backward(parts) {
		if same == nil && p.asks == asks {
			same = p
		}
		if asks.wildcard && p.asks.wildcard && (key.splits() || p == same) {
			for s := range p.has.all() {
				f.add(p, s)
			}
		}
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		if name != "*" && f.items[name] == nil {
			wanted[name] = true
		}
	}
	found := make(map[string]bool, len(wanted))
	for _, p := range slices.Backward(parts) {
		for _, name := range among(p, wanted) {
			f.add(p, p.has.get(name))
			delete(wanted, name)
			found[name] = true
		}
	}
	missing := len(wanted) > 0
	for _, name := range names {
		if found[name] {
			f.order = append(f.order, name)
			delete(found, name)
		}
	}
	switch {
	case key.splits():
		f.order, f.whole = nil, !missing && len(f.items) > 0
	case same != nil && same.order != nil && !slices.ContainsFunc(same.order, func(name string) bool { return f.items[name] == nil }):
		f.order, f.whole = same.order, true
	default:
		f.whole = !asks.wildcard && !missing && len(f.items) > 0
	}
	return f
}

// all returns everything that a node had.
func (m *memory) all(key nodeKey) map[string]*item {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	for _, p := range slices.Backward(m.records[key]) {
		for s := range p.has.all() {
			f.add(p, s)
		}
	}
	return f.items
}

// others returns what else a node may have had, by name.
func (m *memory) others(key nodeKey) (all map[string][]*item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		for name, others := range p.others {
			if all == nil {
				all = map[string][]*item{}
			}
			for _, s := range others {
				all[name] = append(all[name], hold(s).item)
			}
		}
	}
	return all
}

// add notes what a client may have had.
func (p *part) add(s *sent) {
	if p.others == nil {
		p.others = map[string][]*sent{}
	}
	p.others[s.name()] = append(p.others[s.name()], s)
}

// add adds what a part has, unless a later one has the name.
func (f *found) add(p *part, s *sent) {
	if f.items[s.name()] != nil {
		return
	}
	f.items[s.name()] = hold(s).item
	if f.some && f.version != p.version {
		f.version = ""
	} else if !f.some {
		f.version, f.some = p.version, true
	}
}
