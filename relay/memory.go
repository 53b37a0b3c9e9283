package relay

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// maxRemembered is how many resources of nodes that have gone are remembered.
const maxRemembered = 1 << 20

// nodeKey stands for all that a control plane tells clients apart by, and for the variant of
// the protocol.
type nodeKey struct {
	node  [sha256.Size]byte
	kind  kind
	delta bool
}

// keyOf is the part of the key that is the client's: its node, and who the control plane is
// told that it is.
func (s *Server) keyOf(client context.Context, n *corev3.Node) [sha256.Size]byte {
	known := &corev3.Node{Id: n.GetId(), Cluster: n.GetCluster(), Metadata: n.GetMetadata(), Locality: n.GetLocality()}
	wire, _ := proto.MarshalOptions{Deterministic: true}.Marshal(known) // it was decoded
	node := sha256.Sum256(wire)
	return sha256.Sum256(append(node[:], s.identity(client)...))
}

// memory is what nodes had whose streams have ended, for a while.
type memory struct {
	stock *stock
	keep  time.Duration

	mu      sync.Mutex // guards what follows
	records map[nodeKey]*record
	order   []nodeKey // by the time at which they end; some may have come back since
	count   int       // resources
}

// record is what a node had of one type.
type record struct {
	until   time.Time
	version string // state of the world
	order   []string
	has     holdings
}

func newMemory(s *stock, keep time.Duration) *memory {
	return &memory{stock: s, keep: keep, records: map[nodeKey]*record{}}
}

// remember takes over what a ledger has, and its references.
func (m *memory) remember(key nodeKey, l *ledger, now time.Time) {
	if l.held.count == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[key]
	if r == nil {
		r = &record{}
		m.records[key] = r
	} else if at := slices.Index(m.order, key); at >= 0 {
		m.order = slices.Delete(m.order, at, at+1)
	}
	m.order = append(m.order, key)
	r.until, r.version, r.order = now.Add(m.keep), l.version, l.order
	if !l.splits() { // what it had is all there is
		m.clear(r)
	}
	m.count -= r.has.count
	if r.has.count == 0 {
		r.has = l.held
	} else {
		m.stock.unhold(r.has.take(&l.held)...)
	}
	m.count += r.has.count
	for m.count > maxRemembered && len(m.order) > 1 {
		m.forget(m.order[0])
	}
}

func (m *memory) drop(r *record, name string) {
	if before := r.has.remove(name); before != nil {
		m.count--
		m.stock.unhold(before)
	}
}

func (m *memory) clear(r *record) {
	for s := range r.has.all() {
		m.stock.unhold(s)
	}
	m.count -= r.has.count
	r.has = holdings{}
}

func (m *memory) forget(key nodeKey) {
	m.clear(m.records[key])
	delete(m.records, key)
	if at := slices.Index(m.order, key); at >= 0 {
		m.order = slices.Delete(m.order, at, at+1)
	}
}

// replace forgets what a node had of some names, because it has something newer.
func (m *memory) replace(key nodeKey, newer []*sent, removed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[key]
	if r == nil {
		return
	}
	for _, s := range newer {
		m.drop(r, s.name())
	}
	for _, name := range removed {
		m.drop(r, name)
	}
}

// expire forgets what is over.
func (m *memory) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.order) > 0 && !now.Before(m.records[m.order[0]].until) {
		m.forget(m.order[0])
	}
}

// recall returns what a node had of the wanted names, each with one more reference; nil: of all.
// ok is false if one is missing, or there is nothing.
func (m *memory) recall(key nodeKey, wanted []string) (items map[string]*item, version string, order []string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[key]
	if r == nil {
		return nil, "", nil, false
	}
	ok = true
	items = map[string]*item{}
	if wanted == nil {
		for s := range r.has.all() {
			items[s.name()] = hold(s).item
		}
	}
	for _, name := range wanted {
		s := r.has.get(name)
		switch {
		case s == nil:
			ok = false
		case items[name] == nil: // a client may give a name twice
			items[name] = hold(s).item
		}
	}
	return items, r.version, r.order, ok && len(items) > 0
}
