package relay

import (
	"slices"
	"sync"
)

// hdsd keeps minChanges for streams that have not read them yet, or changesPerResource for each resource
// if these are more: some resources change more than once. A stream that is further behind looks at all
// resources of its client.
const (
	minChanges         = 1 << 10
	changesPerResource = 4
)

// changes lists the resources whose health may have changed, in order. The core adds each of them once,
// however many streams there are, and waits for no stream.
type changes struct {
	mu       sync.Mutex
	first    uint64 // number of the first of the subjects
	subjects []subject
}

// add adds changed resources; nil stands for all resources. It may drop the oldest of those before.
func (c *changes) add(changed []subject, resources int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil { // every stream is behind
		c.first, c.subjects = c.first+uint64(len(c.subjects))+1, nil
		return
	}
	if limit := max(changesPerResource*resources, minChanges); len(c.subjects)+len(changed) > limit {
		drop := min(len(c.subjects), max(len(c.subjects)+len(changed)-limit/2, 0))
		c.first, c.subjects = c.first+uint64(drop), slices.Clone(c.subjects[drop:]) // readers may have the old array
	}
	c.subjects = append(c.subjects, changed...)
}

// since returns the changes from a number on, and the number for the next call. If some are not kept any
// more, anything may have changed.
func (c *changes) since(number uint64) (subjects []subject, anything bool, next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = c.first + uint64(len(c.subjects))
	if number < c.first {
		return nil, true, next
	}
	return c.subjects[number-c.first : len(c.subjects) : len(c.subjects)], false, next
}

// markDirty marks the resources of the client that may have changed. The caller holds mu.
func (st *stream) markDirty() {
	subjects, anything, next := st.server.changes.since(st.seenChange)
	st.seenChange = next
	for _, l := range st.ledgers {
		if l == nil {
			continue
		}
		if n := l.links.node; n != nil && l.key.kind == assignments {
			assignmentChanges, anyAssignment, next := n.changes.since(l.links.seenChange)
			l.links.seenChange = next
			if anything = anything || anyAssignment; len(assignmentChanges) > 0 {
				subjects = slices.Concat(subjects, assignmentChanges) // assignments are the last type
			}
		}
		touch := func(name string) {
			if l.holdings.get(name) != nil {
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
