package relay

import (
	"slices"
	"sync"
)

// fewChanges is how many changes are kept in any case for streams that have not looked yet.
// Where nodes have many resources, changesEach are kept for each, since some change more than
// once. A stream that is further behind looks at all that its client has.
const (
	fewChanges  = 1 << 10
	changesEach = 4
)

// changes are the resources whose health may have changed, in order. The core notes each
// once, however many streams there are, and waits for none of them.
type changes struct {
	mu    sync.Mutex
	first uint64 // the number of the first one in all
	all   []subject
}

// add notes resources; nil: all that there are. It keeps some for each resource, or those of
// this call.
func (c *changes) add(changed []subject, resources int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil { // everybody is behind
		c.first, c.all = c.first+uint64(len(c.all))+1, nil
		return
	}
	if most := max(changesEach*resources, fewChanges); len(c.all)+len(changed) > most {
		drop := min(len(c.all), max(len(c.all)+len(changed)-most/2, 0))
		c.first, c.all = c.first+uint64(drop), slices.Clone(c.all[drop:]) // readers may have the old array
	}
	c.all = append(c.all, changed...)
}

// since returns what was noted after a number, or that it may be anything, and the number to
// ask with next.
func (c *changes) since(number uint64) (some []subject, anything bool, next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = c.first + uint64(len(c.all))
	if number < c.first {
		return nil, true, next
	}
	return c.all[number-c.first : len(c.all) : len(c.all)], false, next
}

// touched notes what may have changed. The caller holds mu.
func (st *stream) touched() {
	some, anything, next := st.server.changes.since(st.seen)
	st.seen = next
	for _, l := range st.ledgers {
		if l == nil {
			continue
		}
		if n := l.peers.node; n != nil && l.key.kind == assignments {
			theirs, all, next := n.changes.since(l.peers.seen)
			l.peers.seen = next
			if anything = anything || all; len(theirs) > 0 {
				some = slices.Concat(some, theirs) // of its last type
			}
		}
		touch := func(name string) {
			if l.held.get(name) != nil {
				l.setDirty(name, false)
			} else if l.key.kind == assignments && len(l.doubts.removed[name]) > 0 {
				l.panels.unsettle(name)
			}
		}
		if anything {
			for _, name := range l.names() {
				touch(name)
			}
			continue
		}
		for _, s := range some {
			if s.kind == l.key.kind {
				touch(s.name)
			}
		}
	}
}
