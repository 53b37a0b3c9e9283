package relay

import (
	"maps"
	"math"
	"runtime"
	"slices"

	"hdsd/relay/message"
)

// unknownChange is a change that no rendering has, so that hdsd sends the resource again.
const unknownChange = math.MaxUint64

// setScope notes the resources that a request asks for. No names ask for all in the first request, and in those by
// state of the world that follow it without names.
func (l *ledger) setScope(r *message.Request, first bool) {
	switch {
	case slices.Contains(r.Names, "*"), first && len(r.Names) == 0:
		l.scope.wildcard = true
	case l.key.delta && slices.Contains(r.Unsubscribe, "*"), !l.key.delta && len(r.Names) > 0:
		l.scope.wildcard = false
	}
	if !l.key.delta {
		l.scope.names = hashNames(r.Names)
		return
	}
	l.subscriptions.add(r)
}

// restore notes that the client has a resource of an earlier stream. It takes over a reference.
func (l *ledger) restore(name string, i *item, change uint64) {
	l.forget(name)
	latest := i.delivery(change)
	l.setHolding(latest)
	l.panels.set(name, i.panel)
	l.regroup(nil, latest)
	l.setDirty(name, false)
}

// workStep is the number of claims after which other goroutines get the processor, such as those of verdicts.
const workStep = 512

// siblings returns the resources that other streams of the node have, or may have, of the names that a request
// claims: the client may have left a stream that hdsd takes for alive. The caller holds no lock of a stream.
func (st *stream) siblings(k kind, r *message.Request) map[string][]*item {
	n := st.server.nodes.find(st.node)
	if n == nil || r.Claims == 0 {
		return nil
	}
	n.mu.Lock()
	ledgers := slices.Clone(n.ledgers[k])
	n.mu.Unlock()
	items := map[string][]*item{}
	for _, l := range ledgers {
		if other := l.links.stream; other != st && l.key.delta {
			other.mu.Lock()
			addClaimed(l, r, items)
			other.mu.Unlock()
		}
	}
	return items
}

// addClaimed adds the resources of a ledger that a request of its node claims.
func addClaimed(l *ledger, r *message.Request, items map[string][]*item) {
	var names []string
	if r.Claims < l.holdings.count {
		names = slices.Collect(maps.Keys(r.Claimed()))
	} else {
		names = l.names()
	}
	for _, name := range names {
		deliveries := slices.Concat([]*delivery{l.holdings.get(name), l.doubts.good[name]}, l.doubts.refused[name], l.doubts.removed[name])
		for _, o := range l.offers {
			deliveries = append(deliveries, o.removed[name]...)
		}
		for _, s := range deliveries {
			if s != nil {
				items[name] = append(items[name], retain(s).item)
			}
		}
	}
}

// resumeDelta restores the claimed resources that hdsd remembers, or that siblings found. The others stay claims.
// It returns the request for the control plane.
func (l *ledger) resumeDelta(r *message.Request, wire []byte, e *message.Edit, siblings map[string][]*item) ([]byte, error) {
	items, alternatives := l.memory.claimed(l.key, r)
	for name, list := range siblings {
		alternatives[name] = append(alternatives[name], list...)
	}
	step, claimed := 0, map[string]bool{} // of names with others: the client has the latest
	if l.claims.reserve(r.Claims) {
		e.Claims = r.Claims
	} else {
		e.NoVersions = true
	}
	e.Known = func(name, version []byte) bool {
		if step++; step%workStep == 0 {
			runtime.Gosched()
		}
		if known, latest := l.resumeOne(items, alternatives, name, version); known {
			if len(alternatives[string(name)]) > 0 {
				claimed[string(name)] = latest
			}
			return true
		}
		l.claims.add(name, version)
		return l.holdings.count > 0 && l.holdings.get(string(name)) != nil
	}
	result, err := message.RewriteRequest(true, wire, e)
	if len(claimed) > 0 {
		l.memory.dropAlternatives(l.key, "", func(name string) (latest, known bool) { latest, known = claimed[name]; return latest, known })
	}
	l.claims.trim()
	for _, i := range items {
		l.memory.stock.release(i)
	}
	for _, list := range alternatives {
		l.memory.stock.release(list...)
	}
	return result, err
}

// resumeOne restores a claimed resource. It reports whether hdsd knows the resource. latest says that it is the
// latest.
func (l *ledger) resumeOne(items map[string]*item, alternatives map[string][]*item, name, claimed []byte) (known, latest bool) {
	last, refused := items[string(name)], alternatives[string(name)]
	if last == nil && refused == nil {
		return false, false
	}
	version, change, _ := message.Unmark(string(claimed))
	if last != nil && last.version == version && l.wants(last.body) {
		delete(items, string(name))
		l.restore(last.body.name, last, change)
		return true, true
	}
	for _, i := range refused { // it has refused the latest
		if i.version == version && l.wants(i.body) {
			i.refs.Add(1)
			l.restore(i.body.name, i, change)
			return true, false
		}
	}
	return false, false
}

// recall restores the resources that a client asks for while the control plane is away, and has them go out. By
// state of the world, clusters go out only if all are known: the client would remove missing ones.
func (l *ledger) recall(r *message.Request, first bool) {
	asks := l.scope
	if l.key.delta && !first && !slices.Contains(r.Names, "*") {
		asks.wildcard = false // an earlier request has recalled all
	}
	if !asks.wildcard && len(r.Names) == 0 {
		return
	}
	f, recalled := l.memory.recall(l.key, asks, r.Names, ""), map[string]bool{}
	for name, i := range f.items {
		if l.holdings.get(name) != nil {
			l.memory.stock.release(i)
			continue
		}
		l.restore(name, i, unknownChange)
		recalled[name] = true
	}
	if !l.key.delta { // a delta client has claimed its versions
		l.memory.recallAlternatives(l, recalled)
	}
	if l.version == "" {
		l.version = f.version
	}
	if !l.key.splits() {
		l.order, l.partial = f.order, !f.complete
	}
}

// resumeState restores the resources of the client's version, if hdsd remembers all of them.
func (l *ledger) resumeState(r *message.Request) bool {
	original, _, marked := message.Unmark(r.Version)
	if original == "" {
		return false
	}
	f := l.memory.recall(l.key, l.scope, r.Names, original)
	if !f.complete || f.version != original {
		for _, i := range f.items {
			l.memory.stock.release(i)
		}
		return false
	}
	change := uint64(0)
	if marked {
		change = unknownChange
	}
	l.memory.dropAlternatives(l.key, original, func(name string) (latest, known bool) { return true, f.items[name] != nil || !l.key.splits() })
	for name, i := range f.items {
		l.restore(name, i, change)
	}
	l.version, l.order = f.version, f.order
	return true
}
