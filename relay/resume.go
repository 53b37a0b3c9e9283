package relay

import (
	"math"
	"slices"

	"hdsd/relay/message"
)

// unknownChange stands for a change that hdsd does not know, so that it sends the resource.
const unknownChange = math.MaxUint64

// restore notes that a client has a resource from an earlier stream. It takes over a
// reference.
func (l *ledger) restore(name string, i *item, change uint64) {
	l.forget(l.remove(name))
	l.held.put(i.with(change))
	l.setDirty(name)
}

// resumeDelta restores what the client says it has, and hdsd remembers. The rest stays
// claimed.
func (l *ledger) resumeDelta(r *message.Request) {
	items, _, _, _ := l.memory.recall(l.key, nil)
	rest := make([]claim, 0, max(r.Claims-len(items), 0))
	r.EachClaim(func(name, claimed string) {
		version, change, _ := message.Unmark(claimed)
		if i := items[name]; i != nil && i.version == version {
			delete(items, name)
			l.restore(name, i, change)
			return
		}
		rest = append(rest, claimOf(name, claimed))
	})
	for _, i := range items {
		l.stock.release(i)
	}
	l.claims.set(rest)
}

// recall restores what a client asks for while the control plane is away. hdsd sends what
// the client may not have.
func (l *ledger) recall(r *message.Request, first bool) {
	wanted := r.Names
	if slices.Contains(wanted, "*") || len(wanted) == 0 && (first || !l.delta) {
		wanted = nil
	} else if len(wanted) == 0 {
		return
	}
	items, version, order, _ := l.memory.recall(l.key, wanted)
	for name, i := range items {
		if l.held.get(name) != nil {
			l.stock.release(i)
			continue
		}
		l.restore(name, i, unknownChange)
	}
	if l.version == "" {
		l.version = version
	}
	if len(l.order) == 0 {
		l.order = order
	}
}

// resumeState restores what the client has by its version, if hdsd remembers all of it.
func (l *ledger) resumeState(r *message.Request) bool {
	wanted := r.Names
	if l.kind == clusters || slices.Contains(wanted, "*") || len(wanted) == 0 {
		wanted = nil
	}
	items, version, order, ok := l.memory.recall(l.key, wanted)
	original, _, marked := message.Unmark(r.Version)
	if !ok || version != original {
		for _, i := range items {
			l.stock.release(i)
		}
		return false
	}
	change := uint64(0)
	if marked {
		change = unknownChange
	}
	for name, i := range items {
		l.restore(name, i, change)
	}
	l.version, l.order = version, order
	return true
}
