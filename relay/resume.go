package relay

import (
	"math"
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
	case l.delta && slices.Contains(r.Unsubscribe, "*"), !l.delta && len(r.Names) > 0:
		l.asks.wildcard = false
	}
	if !l.delta {
		l.asks.names = hashOf(r.Names)
		return
	}
	l.named.add(r)
}

// restore notes that a client has a resource from an earlier stream. It takes over a
// reference.
func (l *ledger) restore(name string, i *item, change uint64) {
	l.forget(name)
	l.held.put(i.with(change))
	l.setDirty(name, false)
}

// resumeDelta restores what the client says it has, and hdsd remembers. The rest stays
// claimed.
func (l *ledger) resumeDelta(r *message.Request) {
	items, others := l.memory.all(l.key), l.memory.others(l.key)
	rest := make([]claim, 0, max(r.Claims-len(items), 0))
	r.EachClaim(func(name, claimed string) {
		version, change, _ := message.Unmark(claimed)
		if i := items[name]; i != nil && i.version == version && l.wants(i.body) {
			delete(items, name)
			l.restore(name, i, change)
			return
		}
		for _, i := range others[name] { // it refused what it was sent last
			if i.version == version && l.wants(i.body) {
				i.refs.Add(1)
				l.restore(name, i, change)
				return
			}
		}
		rest = append(rest, claimOf(name, claimed))
	})
	for _, i := range items {
		l.memory.stock.release(i)
	}
	for _, some := range others {
		l.memory.stock.release(some...)
	}
	l.claims.set(rest)
}

// recall restores what a client asks for while the control plane is away. hdsd sends what
// the client may not have, and of clusters by state of the world all or nothing: those that are
// missing would be removed.
func (l *ledger) recall(r *message.Request, first bool) {
	asks := l.asks
	if l.delta && !first && !slices.Contains(r.Names, "*") {
		asks.wildcard = false // it was recalled
	}
	if !asks.wildcard && len(r.Names) == 0 {
		return
	}
	f := l.memory.recall(l.key, asks, r.Names)
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
	f := l.memory.recall(l.key, l.asks, r.Names)
	original, _, marked := message.Unmark(r.Version)
	if !f.whole || f.version != original || original == "" {
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
