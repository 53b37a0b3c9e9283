package relay

import (
	"slices"

	"hdsd/relay/message"
)

// recollection has the remembered resources that a stream asks for. Each item has one more reference.
type recollection struct {
	items      map[string]*item
	version    string   // state of the world; empty: none, or several
	order      []string // state of the world: the clusters in the order of the response, or of the request
	complete   bool     // it has all resources that the stream had
	hasVersion bool     // version is set
}

// recall returns the resources of a node that a stream asks for. A stream with a wildcard gets those of such a
// stream. If version is not empty, and such a stream had another one, recall returns none.
func (m *memory) recall(key nodeKey, asks scope, names []string, version string) *recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &recollection{items: map[string]*item{}}
	parts := m.records[key]
	var same *part
	var wildcards []*part // parts of which the stream gets everything
	for _, p := range slices.Backward(parts) {
		if same == nil && p.scope == asks {
			same = p
		}
		if asks.wildcard && p.scope.wildcard && (key.splits() || p == same) {
			wildcards = append(wildcards, p)
		}
	}
	if version != "" && slices.ContainsFunc(wildcards, func(p *part) bool { return p.version != version }) {
		return f
	}
	for _, p := range wildcards {
		for s := range p.holdings.all() {
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
		for _, name := range heldNames(p, wanted) {
			f.add(p, p.holdings.get(name))
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
		f.order, f.complete = nil, !missing && len(f.items) > 0
	case same != nil && same.order != nil && !slices.ContainsFunc(same.order, func(name string) bool { return f.items[name] == nil }):
		f.order, f.complete = same.order, true
	default:
		f.complete = !asks.wildcard && !missing && len(f.items) > 0
	}
	return f
}

// recallAlternatives gives a ledger the other deliveries that its client may have of recalled names.
func (m *memory) recallAlternatives(l *ledger, names map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[l.key] {
		for _, name := range commonKeys(p.alternatives, names) {
			if now := l.holdings.get(name); p.holdings.get(name) != nil && p.holdings.get(name).item == now.item {
				for _, s := range p.alternatives[name] {
					retain(s)
				}
				l.doubts.begin(name, nil, now)
				inherit(l, name, slices.Clone(p.alternatives[name]))
			}
		}
	}
}

// dropAlternatives drops the other deliveries of names whose version the node has said. answer reports whether the
// node has said the version of a name (known), and whether that is the latest.
func (m *memory) dropAlternatives(key nodeKey, version string, answer func(name string) (latest, known bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Clone(m.records[key]) {
		if p.version != version {
			continue
		}
		for name, deliveries := range p.alternatives {
			switch latest, known := answer(name); {
			case !known:
			case latest && p.holdings.get(name) != nil:
				delete(p.alternatives, name)
				m.count(p, -len(deliveries))
				m.stock.releaseDeliveries(deliveries...)
			default:
				m.drop(p, name)
			}
		}
	}
}

// claimed returns the resources of a node and the others that it may have, by name: all, or those that a request
// claims if these are fewer. A small request may be about a large node.
func (m *memory) claimed(key nodeKey, r *message.Request) (items map[string]*item, alternatives map[string][]*item) {
	var names map[string]bool // nil: all
	if r.Claims < m.sizeOf(key) {
		names = r.Claimed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &recollection{items: map[string]*item{}}
	alternatives = map[string][]*item{}
	for _, p := range slices.Backward(m.records[key]) {
		add := func(name string) {
			for _, s := range p.alternatives[name] {
				alternatives[name] = append(alternatives[name], retain(s).item)
			}
		}
		if names == nil {
			for s := range p.holdings.all() {
				f.add(p, s)
			}
			for name := range p.alternatives {
				add(name)
			}
			continue
		}
		for _, name := range heldNames(p, names) {
			f.add(p, p.holdings.get(name))
		}
		for _, name := range commonKeys(p.alternatives, names) {
			add(name)
		}
	}
	return f.items, alternatives
}

// add adds a resource of a part, unless a later part has the name.
func (f *recollection) add(p *part, s *delivery) {
	if f.items[s.name()] != nil {
		return
	}
	f.items[s.name()] = retain(s).item
	if f.hasVersion && f.version != p.version {
		f.version = ""
	} else if !f.hasVersion {
		f.version, f.hasVersion = p.version, true
	}
}
