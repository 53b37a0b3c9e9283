package relay

import (
	"slices"

	"hdsd/relay/message"
)

// found is what is remembered of what a stream asks for. Each item has one more reference.
type found struct {
	items   map[string]*item
	version string   // state of the world; empty if they came with several
	order   []string // state of the world: the clusters as they came, or as they are asked for
	whole   bool     // nothing else belongs to it
	some    bool     // there is a version
}

// recall returns what a node had of what a stream asks for. A stream that asks for all is given
// what such a stream had. With a version, it is nothing if that had another one.
func (m *memory) recall(key nodeKey, asks scope, names []string, version string) *found {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	parts := m.records[key]
	var same *part
	var wildcards []*part // those whose resources all belong to it
	for _, p := range slices.Backward(parts) {
		if same == nil && p.asks == asks {
			same = p
		}
		if asks.wildcard && p.asks.wildcard && (key.splits() || p == same) {
			wildcards = append(wildcards, p)
		}
	}
	if version != "" && slices.ContainsFunc(wildcards, func(p *part) bool { return p.version != version }) {
		return f
	}
	for _, p := range wildcards {
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

// recallDoubts gives a ledger what else its client may have of names that it has recalled.
func (m *memory) recallDoubts(l *ledger, names map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[l.key] {
		for _, name := range common(p.others, names) {
			if now := l.held.get(name); p.has.get(name) != nil && p.has.get(name).item == now.item {
				for _, s := range p.others[name] {
					hold(s)
				}
				l.doubts.open(name, nil, now)
				bequeath(l, name, slices.Clone(p.others[name]))
			}
		}
	}
}

// settle drops what else a node may have had of names of which it has said what it has. latest says that
// it has the latest.
func (m *memory) settle(key nodeKey, version string, answer func(name string) (latest, known bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Clone(m.records[key]) {
		if p.version != version {
			continue
		}
		for name, deliveries := range p.others {
			switch latest, known := answer(name); {
			case !known:
			case latest && p.has.get(name) != nil:
				delete(p.others, name)
				m.add(p, -len(deliveries))
				m.stock.unhold(deliveries...)
			default:
				m.drop(p, name)
			}
		}
	}
}

// claimed returns what a node had, and what else it may have had, by name: all of it, or that of the
// names that a request claims if these are fewer. A small request may be about a large node.
func (m *memory) claimed(key nodeKey, r *message.Request) (items map[string]*item, alternatives map[string][]*item) {
	var names map[string]bool // nil: all
	if r.Claims < m.size(key) {
		names = r.Claimed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &found{items: map[string]*item{}}
	alternatives = map[string][]*item{}
	for _, p := range slices.Backward(m.records[key]) {
		add := func(name string) {
			for _, s := range p.others[name] {
				alternatives[name] = append(alternatives[name], hold(s).item)
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
	return f.items, alternatives
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
