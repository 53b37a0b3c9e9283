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

	"hdsd/relay/message"
)

// Bounds of what is remembered of nodes that have gone: resources of all, of which the caller that has
// most gives way, and streams of a node and type that had different ones. A stream counts as partWeight
// resources more: it takes up to 570 bytes, and a resource that others have, too, up to 50.
const (
	maxRemembered = 1 << 20
	maxParts      = 1 << 10
	partWeight    = 16
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
	most  int // resources, and partWeight for each part

	settling sync.Mutex // held while a panel is found and resources go to it, so that the latest panel wins

	mu      sync.Mutex // guards what follows
	records map[nodeKey][]*part
	order   *list.List // of all parts, by the time at which they end
	shares  shares     // of the callers
	count   int        // as most
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
	share   *share             // of its caller
	among   *list.Element      // in share.parts
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
	return &memory{stock: s, keep: keep, most: maxRemembered, records: map[nodeKey][]*part{}, order: list.New(), shares: newShares()}
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
	m.shares.join(l.caller, p)
	m.records[l.key] = append(m.records[l.key], p)
	if m.add(p, partWeight+p.has.count+len(others)); len(m.records[l.key]) > maxParts {
		m.forget(m.records[l.key][0])
	}
	for m.count > m.most && m.order.Len() > 1 {
		m.forget(m.shares.oldest())
	}
}

// add notes how many resources more a part counts as.
func (m *memory) add(p *part, more int) {
	m.count += more
	m.shares.change(p, more)
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
func among[V any](p *part, names map[string]V) (shared []string) {
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

// common lists the keys of both. It looks through the smaller.
func common[A, B any](a map[string]A, b map[string]B) (names []string) {
	if len(a) > len(b) {
		return common(b, a)
	}
	for name := range a {
		if _, ok := b[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// take takes a name out of a part, and returns what the client may have had, the latest at the end.
func (m *memory) take(p *part, name string) (all []*sent) {
	last := p.has.remove(name)
	if last == nil {
		return nil
	}
	all = append(p.others[name], last)
	delete(p.others, name)
	m.add(p, -len(all))
	if p.has.count == 0 {
		m.forget(p)
	}
	return all
}

func (m *memory) drop(p *part, name string) { m.stock.unhold(m.take(p, name)...) }

func (m *memory) forget(p *part) {
	for s := range p.has.all() {
		m.stock.unhold(s)
	}
	for _, others := range p.others {
		m.add(p, -len(others))
		m.stock.unhold(others...)
	}
	m.add(p, -partWeight-p.has.count)
	p.has, p.others = holdings{}, nil
	m.order.Remove(p.place)
	m.shares.leave(p)
	without(m.records, p.key, p)
}

// replace takes out what a node had of the names of a response, because it has something newer or
// nothing once it accepts that. What only removed clusters use goes with them.
func (m *memory) replace(l *ledger, o *offer, removed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	services := map[string]bool{}
	parts := slices.Clone(m.records[l.key])
	names := map[string]bool{} // of the response, and whether it removes them
	if len(parts) > 0 {
		for _, s := range o.brings {
			names[s.name()] = false
		}
		for name := range o.gone {
			names[name] = true
		}
		for _, name := range removed {
			names[name] = true
		}
	}
	for _, p := range slices.Backward(parts) {
		for _, name := range among(p, names) {
			switch all := m.take(p, name); {
			case names[name]:
				o.take(name, all)
			case l.key.delta: // it has said what it has
				m.stock.unhold(all...)
			default:
				bequeath(l, name, all)
			}
		}
		if !l.key.splits() && p.asks == l.asks && p.has.count > 0 { // the response has all that there is
			var rest []string
			for s := range p.has.all() {
				rest = append(rest, s.name())
			}
			for _, name := range rest {
				o.take(name, m.take(p, name))
			}
		}
	}
	if l.key.kind == clusters {
		for _, all := range o.gone {
			for _, s := range all {
				note(services, s)
			}
		}
		m.release(l, services)
	}
}

// bequeath gives a ledger what its client may have of a name from an earlier stream.
func bequeath(l *ledger, name string, all []*sent) {
	if l.doubts.inherit(name, all, l.held.get(name)); l.key.kind == assignments {
		l.panels.set(name, mixed)
		l.panels.unsettle(name)
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
// what such a stream had. With a version, it is nothing if that had another one.
func (m *memory) recall(key nodeKey, asks scope, names []string, version string) *found {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	parts := m.records[key]
	var same *part
	var all []*part // those whose resources all belong to it
	for _, p := range slices.Backward(parts) {
		if same == nil && p.asks == asks {
			same = p
		}
		if asks.wildcard && p.asks.wildcard && (key.splits() || p == same) {
			all = append(all, p)
		}
	}
	if version != "" && slices.ContainsFunc(all, func(p *part) bool { return p.version != version }) {
		return f
	}
	for _, p := range all {
		for s := range p.has.all() {
			f.add(p, s)
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

// claimed returns what a node had, and what else it may have had, by name: all of it, or that of the
// names that a request claims if these are fewer. A small request may be about a large node.
func (m *memory) claimed(key nodeKey, r *message.Request) (items map[string]*item, others map[string][]*item) {
	var names map[string]bool // nil: all
	if r.Claims < m.size(key) {
		names = r.Claimed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	others = map[string][]*item{}
	for _, p := range slices.Backward(m.records[key]) {
		add := func(name string) {
			for _, s := range p.others[name] {
				others[name] = append(others[name], hold(s).item)
			}
		}
		if names == nil {
			for s := range p.has.all() {
				f.add(p, s)
			}
			for name := range p.others {
				add(name)
			}
			continue
		}
		for _, name := range among(p, names) {
			f.add(p, p.has.get(name))
		}
		for _, name := range common(p.others, names) {
			add(name)
		}
	}
	return f.items, others
}

// size returns how many resources of a node are remembered.
func (m *memory) size(key nodeKey) (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		count += p.has.count + len(p.others)
	}
	return count
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
