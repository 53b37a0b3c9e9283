package relay

import (
	"slices"
	"sync"
)

// hdsd keeps minChanges for streams that have not read them yet, or changesPerResource for each resource
// if these are more: some resources change more than once. A stream that is further behind looks at all
// resources of its client.
const (
	fewChanges  = 1 << 10
	changesEach = 4
)

// changes lists the resources whose health may have changed, in order. The core adds each of them once,
// however many streams there are, and waits for no stream.
type changes struct {
	mu    sync.Mutex
	first uint64 // number of the first of the subjects
	all   []subject
}

// add adds changed resources; nil stands for all resources. It may drop the oldest of those before.
func (c *changes) add(changed []subject, resources int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil { // every stream is behind
		c.first, c.all = c.first+uint64(len(c.all))+1, nil
		return
	}
	if limit := max(changesEach*resources, fewChanges); len(c.all)+len(changed) > limit {
		drop := min(len(c.all), max(len(c.all)+len(changed)-limit/2, 0))
		c.first, c.all = c.first+uint64(drop), slices.Clone(c.all[drop:]) // readers may have the old array
	}
	c.all = append(c.all, changed...)
}

// since returns the changes from a number on, and the number for the next call. If some are not kept any
// more, anything may have changed.
func (c *changes) since(number uint64) (subjects []subject, anything bool, next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = c.first + uint64(len(c.all))
	if number < c.first {
		return nil, true, next
	}
	return c.all[number-c.first : len(c.all) : len(c.all)], false, next
}

// markDirty marks the resources of the client that may have changed. The caller holds mu.
func (st *stream) touched() {
	subjects, anything, next := st.server.changes.since(st.seen)
	st.seen = next
	for _, l := range st.ledgers {
		if l == nil {
			continue
		}
		if n := l.peers.node; n != nil && l.key.kind == assignments {
			assignmentChanges, anyAssignment, next := n.changes.since(l.peers.seen)
			l.peers.seen = next
			if anything = anything || anyAssignment; len(assignmentChanges) > 0 {
				subjects = slices.Concat(subjects, assignmentChanges) // assignments are the last type
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
		for _, s := range subjects {
			if s.kind == l.key.kind {
				touch(s.name)
			}
		}
	}
}
