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

// Limits of the memory: resources, beyond which the largest caller loses its oldest part, and parts of a node
// and type. A part counts as partWeight resources more: it takes up to 570 bytes, and a resource that other
// parts have, too, up to 50.
const (
	maxRemembered = 1 << 20
	maxParts      = 1 << 10
	partWeight    = 16
)

// expiryStep is the number of resources that expire under one lock.
const expiryStep = 1 << 10

// nodeKey identifies a node by all that a control plane tells clients apart by, with a type and the variant of
// the protocol.
type nodeKey struct {
	node  [sha256.Size]byte
	kind  kind
	delta bool
}

// splits reports whether resources may go out one by one. A state-of-the-world response has to have all
// clusters.
func (k nodeKey) splits() bool { return k.delta || k.kind == assignments }

// keyOf returns a hash of a client's node, and of its identity for the control plane.
func (s *Server) keyOf(client context.Context, n *corev3.Node) [sha256.Size]byte {
	known := &corev3.Node{Id: n.GetId(), Cluster: n.GetCluster(), Metadata: n.GetMetadata(), Locality: n.GetLocality()}
	wire, _ := proto.MarshalOptions{Deterministic: true}.Marshal(known) // does not fail: it was decoded
	node := sha256.Sum256(wire)
	return sha256.Sum256(append(node[:], s.identity(client)...))
}

// scope says which resources of a type a stream asks for.
type scope struct {
	wildcard bool   // all
	names    uint64 // state of the world: hash of the names
}

// memory has the resources of ended streams, for a time.
type memory struct {
	stock *stock
	ttl   time.Duration
	limit int // limit of count

	panelMu sync.Mutex // held from the search for a panel until resources have it, so that the latest panel wins

	mu       sync.Mutex // guards the fields below
	records  map[nodeKey][]*part
	byExpiry *list.List // all parts, the first to expire first
	shares   shares     // of the callers
	size     int        // resources, and partWeight for each part
}

// part has the resources of a type that a stream had when it ended. A node may have several streams: a gRPC
// client has one for each target. Of the parts of a node, only the latest keeps a name. But a part of a
// wildcard keeps the names of later parts without one.
type part struct {
	key          nodeKey
	scope        scope
	expiry       time.Time
	version      string   // state of the world
	order        []string // state of the world: the clusters in order; nil: not all are known
	holdings     holdings
	alternatives map[string][]*delivery // other deliveries that the client may have: see doubts
	element      *list.Element          // in memory.byExpiry
	share        *share                 // of its caller
	shareElement *list.Element          // in share.parts
}

func newMemory(s *stock, keep time.Duration) *memory {
	return &memory{stock: s, ttl: keep, limit: maxRemembered, records: map[nodeKey][]*part{}, byExpiry: list.New(), shares: newShares()}
}

// remember makes a part of the holdings of a ledger and of other deliveries that its client may have. It takes
// over the references.
func (m *memory) remember(l *ledger, alternatives []*delivery, moment time.Time) {
	if l.holdings.count+len(alternatives) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Clone(m.records[l.key]) {
		switch {
		case !l.key.splits() && p.scope == l.scope: // the new part replaces it
			m.forget(p)
		case l.scope.wildcard || !p.scope.wildcard:
			m.giveWay(p, &l.holdings)
		}
	}
	p := &part{key: l.key, scope: l.scope, expiry: moment.Add(m.ttl), version: l.version, holdings: l.holdings}
	for _, s := range alternatives {
		p.addAlternative(s)
	}
	if len(l.order) == l.holdings.count {
		p.order = l.order
	}
	p.element = m.byExpiry.PushBack(p)
	m.shares.join(l.caller, p)
	m.records[l.key] = append(m.records[l.key], p)
	if m.count(p, partWeight+p.holdings.count+len(alternatives)); len(m.records[l.key]) > maxParts {
		m.forget(m.records[l.key][0])
	}
	for m.size > m.limit && m.byExpiry.Len() > 1 {
		m.forget(m.shares.oldest())
	}
}

// count adds to the count of a part.
func (m *memory) count(p *part, weight int) {
	m.size += weight
	m.shares.change(p, weight)
}

// giveWay removes the names of holdings from a part. It goes through the smaller of both.
func (m *memory) giveWay(p *part, held *holdings) {
	if held.count <= p.holdings.count {
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

// names lists the names of a part's deliveries.
func (p *part) names() []string {
	names := slices.Collect(maps.Keys(p.alternatives))
	for s := range p.holdings.all() {
		if p.alternatives[s.name()] == nil {
			names = append(names, s.name())
		}
	}
	return names
}

// heldNames lists the names that a part has holdings of. It goes through the smaller of both: a node may have
// many parts, and a response many names.
func heldNames[V any](p *part, names map[string]V) (shared []string) {
	if len(names) <= p.holdings.count {
		for name := range names {
			if p.holdings.get(name) != nil {
				shared = append(shared, name)
			}
		}
		return shared
	}
	for s := range p.holdings.all() {
		if _, ok := names[s.name()]; ok {
			shared = append(shared, s.name())
		}
	}
	return shared
}

// knownNames lists the names that a part has deliveries of.
func knownNames[V any](p *part, names map[string]V) []string {
	list := append(heldNames(p, names), commonKeys(p.alternatives, names)...)
	slices.Sort(list)
	return slices.Compact(list)
}

// commonKeys lists the keys of both maps. It goes through the smaller.
func commonKeys[A, B any](a map[string]A, b map[string]B) (names []string) {
	if len(a) > len(b) {
		return commonKeys(b, a)
	}
	for name := range a {
		if _, ok := b[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// take takes a name out of a part, and returns its deliveries, the latest at the end.
func (m *memory) take(p *part, name string) (deliveries []*delivery) {
	deliveries = p.alternatives[name]
	if last := p.holdings.remove(name); last != nil {
		deliveries = append(deliveries, last)
	}
	if len(deliveries) == 0 {
		return nil
	}
	delete(p.alternatives, name)
	m.count(p, -len(deliveries))
	if p.holdings.count+len(p.alternatives) == 0 {
		m.forget(p)
	}
	return deliveries
}

func (m *memory) drop(p *part, name string) { m.stock.releaseDeliveries(m.take(p, name)...) }

func (m *memory) forget(p *part) {
	for s := range p.holdings.all() {
		m.stock.releaseDeliveries(s)
	}
	for _, alternatives := range p.alternatives {
		m.count(p, -len(alternatives))
		m.stock.releaseDeliveries(alternatives...)
	}
	m.count(p, -partWeight-p.holdings.count)
	p.holdings, p.alternatives = holdings{}, nil
	m.byExpiry.Remove(p.element)
	m.shares.leave(p)
	removeFrom(m.records, p.key, p)
}

// replace takes the names of a response out of the parts of its node: the client has newer resources, or none,
// once it accepts. Assignments that only removed clusters use go with them.
func (m *memory) replace(l *ledger, o *offer, removed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	services := map[string]bool{}
	parts := slices.Clone(m.records[l.key])
	names := map[string]bool{} // of the response: it removes the name
	if len(parts) > 0 {
		for _, s := range o.resources {
			names[s.name()] = false
		}
		for name := range o.removed {
			names[name] = true
		}
		for _, name := range removed {
			names[name] = true
		}
	}
	for _, p := range slices.Backward(parts) {
		for _, name := range knownNames(p, names) {
			switch deliveries := m.take(p, name); {
			case names[name]:
				o.addRemoved(name, deliveries)
			case l.key.delta: // the client has said which of them it has
				m.stock.releaseDeliveries(deliveries...)
			default:
				inherit(l, name, deliveries)
			}
		}
		if !l.key.splits() && p.scope == l.scope { // the response has all clusters of the client
			for _, name := range p.names() {
				o.addRemoved(name, m.take(p, name))
			}
		}
	}
	if l.key.kind == clusters {
		for _, deliveries := range o.removed {
			for _, s := range deliveries {
				noteService(services, s)
			}
		}
		m.forgetUnused(l, services)
	}
}

// inherit gives a ledger deliveries of an earlier stream.
func inherit(l *ledger, name string, deliveries []*delivery) {
	if l.doubts.inherit(name, deliveries, l.holdings.get(name)); l.key.kind == assignments {
		l.panels.set(name, mixedPanel)
		l.panels.unsettle(name)
	}
}

// noteService adds the assignment that a cluster uses.
func noteService(services map[string]bool, s *delivery) {
	if s != nil && s.item.body.eds {
		services[s.item.body.service] = true
	}
}

// forgetUnused forgets those of some assignments that no cluster of a node uses any more.
func (m *memory) forgetUnused(l *ledger, services map[string]bool) {
	key := nodeKey{l.key.node, assignments, l.key.delta}
	if len(services) == 0 || len(m.records[key]) == 0 {
		return
	}
	for s := range l.holdings.all() {
		delete(services, s.item.body.service)
	}
	for _, p := range m.records[l.key] {
		for s := range p.holdings.all() {
			delete(services, s.item.body.service)
		}
	}
	for _, p := range slices.Clone(m.records[key]) {
		for _, service := range knownNames(p, services) {
			m.drop(p, service)
		}
	}
}

// expire forgets expired parts, a few at a time: streams that begin and end wait for the lock.
func (m *memory) expire(moment time.Time) {
	for m.expireSome(moment) {
	}
}

// expireSome forgets the first expired parts. It reports whether there may be more.
func (m *memory) expireSome(moment time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for target := m.size - expiryStep; m.size > target; {
		first := m.byExpiry.Front()
		if first == nil || moment.Before(first.Value.(*part).expiry) {
			return false
		}
		m.forget(first.Value.(*part))
	}
	return true
}

// knows reports whether there is a part of a node.
func (m *memory) knows(node [sha256.Size]byte, delta bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records[nodeKey{node, clusters, delta}])+len(m.records[nodeKey{node, assignments, delta}]) > 0
}

// sizeOf returns the number of remembered resources of a node.
func (m *memory) sizeOf(key nodeKey) (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		count += p.holdings.count + len(p.alternatives)
	}
	return count
}

// addAlternative adds a delivery that the client may have.
func (p *part) addAlternative(s *delivery) {
	if p.alternatives == nil {
		p.alternatives = map[string][]*delivery{}
	}
	p.alternatives[s.name()] = append(p.alternatives[s.name()], s)
}
