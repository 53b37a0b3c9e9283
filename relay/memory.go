package relay

import (
	"container/list"
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
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

func newMemory(s *stock, keep time.Duration) *memory {
	return &memory{stock: s, keep: keep, most: maxRemembered, records: map[nodeKey][]*part{}, order: list.New(), shares: newShares()}
}

// remember takes over what a ledger has, what else its client may have, and the references.
func (m *memory) remember(l *ledger, others []*sent, now time.Time) {
	if l.held.count+len(others) == 0 {
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
	for _, name := range p.names() {
		if held.get(name) != nil {
			m.drop(p, name)
		}
	}
}

// names lists the names that a part has, or may have.
func (p *part) names() []string {
	names := slices.Collect(maps.Keys(p.others))
	for s := range p.has.all() {
		if p.others[s.name()] == nil {
			names = append(names, s.name())
		}
	}
	return names
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

// known lists the names that a part has, or may have.
func known[V any](p *part, names map[string]V) []string {
	all := append(among(p, names), common(p.others, names)...)
	slices.Sort(all)
	return slices.Compact(all)
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
	all = p.others[name]
	if last := p.has.remove(name); last != nil {
		all = append(all, last)
	}
	if len(all) == 0 {
		return nil
	}
	delete(p.others, name)
	m.add(p, -len(all))
	if p.has.count+len(p.others) == 0 {
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
		for _, name := range known(p, names) {
			switch all := m.take(p, name); {
			case names[name]:
				o.take(name, all)
			case l.key.delta: // it has said what it has
				m.stock.unhold(all...)
			default:
				bequeath(l, name, all)
			}
		}
		if !l.key.splits() && p.asks == l.asks { // the response has all that there is
			for _, name := range p.names() {
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
		for _, service := range known(p, services) {
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
