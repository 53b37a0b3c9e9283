package relay

import (
	"maps"
	"math"
	"runtime"
	"slices"

	"hdsd/relay/message"
)

// unknownChange stands for a change that hdsd does not know, so that it sends the resource.
const unknownChange = math.MaxUint64

// ask notes what the client asks for of the type from now on. No names in the first request,
// and in those by state of the world that follow it, are all that there is.
func (l *ledger) ask(r *message.Request, first bool) {
	switch {
	case slices.Contains(r.Names, "*"), first && len(r.Names) == 0:
		l.asks.wildcard = true
	case l.key.delta && slices.Contains(r.Unsubscribe, "*"), !l.key.delta && len(r.Names) > 0:
		l.asks.wildcard = false
	}
	if !l.key.delta {
		l.asks.names = hashOf(r.Names)
		return
	}
	l.named.add(r)
}

// restore notes that a client has a resource from an earlier stream. It takes over a
// reference.
func (l *ledger) restore(name string, i *item, change uint64) {
	l.forget(name)
	now := i.with(change)
	l.putHeld(now)
	l.panels.set(name, i.panel)
	l.regroup(nil, now)
	l.setDirty(name, false)
}

// workStep is how many claims are worked at before other goroutines get their turn: those of
// verdicts, for instance, if the other processors are busy.
const workStep = 512

// siblings returns what other streams of the node have, or may have, of what a request claims. hdsd may
// take a stream for alive that the client has left. The caller holds no lock of a stream.
func (st *stream) siblings(k kind, r *message.Request) map[string][]*item {
	n := st.server.nodes.find(st.node)
	if n == nil || r.Claims == 0 {
		return nil
	}
	n.mu.Lock()
	ledgers := slices.Clone(n.ledgers[k])
	n.mu.Unlock()
	all := map[string][]*item{}
	for _, l := range ledgers {
		if other := l.peers.stream; other != st && l.key.delta {
			other.mu.Lock()
			addClaimed(l, r, all)
			other.mu.Unlock()
		}
	}
	return all
}

// addClaimed adds what the client has, or may have, of what a request of its node claims.
func addClaimed(l *ledger, r *message.Request, all map[string][]*item) {
	var names []string // the fewer of both
	if r.Claims < l.held.count {
		names = slices.Collect(maps.Keys(r.Claimed()))
	} else {
		names = l.names()
	}
	for _, name := range names {
		may := slices.Concat([]*sent{l.held.get(name), l.doubts.good[name]}, l.doubts.refused[name], l.doubts.removed[name])
		for _, o := range l.offers {
			may = append(may, o.gone[name]...)
		}
		for _, s := range may {
			if s != nil {
				all[name] = append(all[name], hold(s).item)
			}
		}
	}
}

// resumeDelta restores what the client says it has, and hdsd remembers, or knows by its siblings. The
// rest stays claimed. It returns the request as the control plane gets it.
func (l *ledger) resumeDelta(r *message.Request, wire []byte, e *message.Edit, siblings map[string][]*item) ([]byte, error) {
	items, others := l.memory.claimed(l.key, r)
	for name, all := range siblings {
		others[name] = append(others[name], all...)
	}
	step, said := 0, map[string]bool{} // of names with others: the client has the latest
	if l.claims.reserve(r.Claims) {
		e.Claims = r.Claims
	} else {
		e.NoVersions = true
	}
	e.Known = func(name, version []byte) bool {
		if step++; step%workStep == 0 {
			runtime.Gosched()
		}
		if known, latest := l.resumeOne(items, others, name, version); known {
			if len(others[string(name)]) > 0 {
				said[string(name)] = latest
			}
			return true
		}
		l.claims.add(name, version)
		return l.held.count > 0 && l.held.get(string(name)) != nil
	}
	out, err := message.RewriteRequest(true, wire, e)
	if len(said) > 0 {
		l.memory.settle(l.key, "", func(name string) (latest, known bool) { latest, known = said[name]; return latest, known })
	}
	l.claims.keep()
	for _, i := range items {
		l.memory.stock.release(i)
	}
	for _, some := range others {
		l.memory.stock.release(some...)
	}
	return out, err
}

// resumeOne restores a resource that the client says it has, if hdsd remembers it. latest says that it is the
// latest.
func (l *ledger) resumeOne(items map[string]*item, others map[string][]*item, name, claimed []byte) (known, latest bool) {
	last, refused := items[string(name)], others[string(name)]
	if last == nil && refused == nil {
		return false, false
	}
	version, change, _ := message.Unmark(string(claimed))
	if last != nil && last.version == version && l.wants(last.body) {
		delete(items, string(name))
		l.restore(last.body.name, last, change)
		return true, true
	}
	for _, i := range refused { // it refused what it was sent last
		if i.version == version && l.wants(i.body) {
			i.refs.Add(1)
			l.restore(i.body.name, i, change)
			return true, false
		}
	}
	return false, false
}

// recall restores what a client asks for while the control plane is away. hdsd sends what
// the client may not have, and of clusters by state of the world all or nothing: those that are
// missing would be removed.
func (l *ledger) recall(r *message.Request, first bool) {
	asks := l.asks
	if l.key.delta && !first && !slices.Contains(r.Names, "*") {
		asks.wildcard = false // it was recalled
	}
	if !asks.wildcard && len(r.Names) == 0 {
		return
	}
	f, recalled := l.memory.recall(l.key, asks, r.Names, ""), map[string]bool{}
	for name, i := range f.items {
		if l.held.get(name) != nil {
			l.memory.stock.release(i)
			continue
		}
		l.restore(name, i, unknownChange)
		recalled[name] = true
	}
	if !l.key.delta { // else it has said what it has
		l.memory.recallDoubts(l, recalled)
	}
	if l.version == "" {
		l.version = f.version
	}
	if !l.key.splits() {
		l.order, l.partial = f.order, !f.whole
	}
}

// resumeState restores what the client has by its version, if hdsd remembers all of it.
func (l *ledger) resumeState(r *message.Request) bool {
	original, _, marked := message.Unmark(r.Version)
	if original == "" {
		return false
	}
	f := l.memory.recall(l.key, l.asks, r.Names, original)
	if !f.whole || f.version != original {
		for _, i := range f.items {
			l.memory.stock.release(i)
		}
		return false
	}
	change := uint64(0)
	if marked {
		change = unknownChange
	}
	l.memory.settle(l.key, original, func(name string) (latest, known bool) { return true, f.items[name] != nil || !l.key.splits() })
	for name, i := range f.items {
		l.restore(name, i, change)
	}
	l.version, l.order = f.version, f.order
	return true
}
