package relay

import (
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

// resumeDelta restores what the client says it has, and hdsd remembers. The rest stays claimed. It
// returns the request as the control plane gets it.
func (l *ledger) resumeDelta(r *message.Request, wire []byte, e *message.Edit) ([]byte, error) {
	items, others := l.memory.claimed(l.key, r)
	step := 0
	if l.claims.reserve(r.Claims) {
		e.Claims = r.Claims
	} else {
		e.NoVersions = true
	}
	e.Known = func(name, version []byte) bool {
		if step++; step%workStep == 0 {
			runtime.Gosched()
		}
		if l.resumeOne(items, others, name, version) {
			return true
		}
		l.claims.add(name, version)
		return l.held.count > 0 && l.held.get(string(name)) != nil
	}
	out, err := message.RewriteRequest(true, wire, e)
	l.claims.keep()
	for _, i := range items {
		l.memory.stock.release(i)
	}
	for _, some := range others {
		l.memory.stock.release(some...)
	}
	return out, err
}

// resumeOne restores a resource that the client says it has, if hdsd remembers it.
func (l *ledger) resumeOne(items map[string]*item, others map[string][]*item, name, claimed []byte) bool {
	last, refused := items[string(name)], others[string(name)]
	if last == nil && refused == nil {
		return false
	}
	version, change, _ := message.Unmark(string(claimed))
	if last != nil && last.version == version && l.wants(last.body) {
		delete(items, string(name))
		l.restore(last.body.name, last, change)
		return true
	}
	for _, i := range refused { // it refused what it was sent last
		if i.version == version && l.wants(i.body) {
			i.refs.Add(1)
			l.restore(i.body.name, i, change)
			return true
		}
	}
	return false
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
	f := l.memory.recall(l.key, asks, r.Names, "")
	for name, i := range f.items {
		if l.held.get(name) != nil {
			l.memory.stock.release(i)
			continue
		}
		l.restore(name, i, unknownChange)
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
	for name, i := range f.items {
		l.restore(name, i, change)
	}
	l.version, l.order = f.version, f.order
	return true
}
