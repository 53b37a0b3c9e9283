package eds

import (
	"slices"
	"sync"
	"weak"

	"hdsd/eds/poll"
)

// group is the subscriptions whose first requests name the same resources, byte for byte, as
// those of Envoys with one configuration do. Each of them is a member, and has a watch of its
// own only for what it has differently from the others.
type group struct {
	// Set once.
	table *table
	key   string // the names on the wire
	names []string
	slots []*slot        // of the names
	at    map[string]int // the position of each name
	in    []int          // where its position is among those of each slot; guarded by the table's lock
	bytes int            // the length of all names
	list  uint64         // their hash

	mu      sync.Mutex
	members map[*member]struct{}
	latest  map[int]weak.Pointer[page] // by where they begin, without those that have changed
	known   []uint64                   // the latest versions; nil once one of them has changed
	changes uint64                     // how many there were
}

// position is where a group has a slot.
type position struct {
	group *group
	at    int
}

// newGroup returns a group of slots, nil where a name is given twice.
func newGroup(t *table, key string, names []string, slots []*slot) *group {
	g := &group{
		table: t, key: key, names: names, slots: slots, list: poll.Hash(names), at: make(map[string]int, len(names)),
		members: make(map[*member]struct{}), latest: make(map[int]weak.Pointer[page]),
	}
	for i, s := range slots {
		g.at[s.name] = i
		g.bytes += len(s.name)
	}
	if len(g.at) < len(slots) {
		return nil
	}
	return g
}

// add makes a subscription a member, under the table's lock.
func (g *group) add(u *subscription) {
	m := &member{group: g, sub: u}
	u.mu.Lock()
	u.member = m
	u.interest.named += len(g.slots)
	u.interest.bytes += g.bytes
	u.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[m] = struct{}{}
}

// remove removes a member, and tells whether it was the last one.
func (g *group) remove(m *member) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, m)
	return len(g.members) == 0
}

// notify queues a resource for every member that was sent it, or is about to be. It is called
// under the slot's lock.
func (g *group) notify(at int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes++
	g.known = nil
	for from, known := range g.latest {
		if p := known.Value(); p == nil || p.has(at) {
			delete(g.latest, from)
		}
	}
	for m := range g.members {
		m.changed(at)
	}
}

// page returns the group's resources from a position on, as many as the limit of bytes
// allows; nil: one of them does not exist.
func (g *group) page(from, limit int) *page {
	g.mu.Lock()
	p, changes := g.latest[from].Value(), g.changes
	g.mu.Unlock()
	if p != nil {
		return p
	}
	if p = newPage(g.slots, from, limit); p == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes == changes {
		g.latest[from] = weak.Make(p)
	}
	return p
}

// versions returns the latest version of each resource, 0 for one that does not exist. The
// caller must not change them.
func (g *group) versions() []uint64 {
	g.mu.Lock()
	known, changes := g.known, g.changes
	g.mu.Unlock()
	if known != nil {
		return known
	}
	all := make([]uint64, len(g.slots))
	for i, s := range g.slots {
		all[i] = versionOf(s.current())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes == changes {
		g.known = all
	}
	return all
}

// join makes a subscription a member of the group of the names that it asks for, which it
// makes if need be. It returns false if a name has no resource, is an alias, or stands for
// everything: such names make no group. Where a resource has gone since, nobody joins: its
// name is counted.
func (t *table) join(sub *subscription, key string, names []string) bool {
	if g := t.groupOf([]byte(key)); g != nil && slices.Contains(g.versions(), 0) {
		return false
	}
	t.mu.RLock()
	g := t.groups[key]
	if g != nil {
		g.add(sub)
	}
	t.mu.RUnlock()
	if g != nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if g = t.groups[key]; g == nil {
		if g = t.newGroup(key, names); g == nil {
			return false
		}
	}
	g.add(sub)
	return true
}

func (t *table) newGroup(key string, names []string) *group {
	slots := make([]*slot, len(names))
	for i, name := range names {
		s := t.slots[name]
		if s == nil || s.alias != nil || name == everything || len(name) > longestName || !s.has() {
			return nil
		}
		slots[i] = s
	}
	g := newGroup(t, key, names, slots)
	if g == nil {
		return nil
	}
	g.in = make([]int, len(slots))
	for i, s := range slots {
		s.mu.Lock()
		g.in[i] = len(s.positions)
		s.positions = append(s.positions, position{g, i})
		s.mu.Unlock()
	}
	t.groups[key] = g
	return g
}

// leave ends a membership under the table's lock. What the client has is forgotten where it
// has no watch of its own.
func (t *table) leave(m *member) {
	m.sub.mu.Lock()
	left := m.sub.member == m
	m.sub.member = nil
	m.sub.mu.Unlock()
	g := m.group
	if !left || !g.remove(m) {
		return
	}
	delete(t.groups, g.key)
	for i, s := range g.slots {
		s.leave(g.in[i])
		t.collect(s)
	}
}

// leave removes a position, under the table's lock. The last one takes its place: a slot may have
// many.
func (s *slot) leave(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.positions) - 1
	moved := s.positions[last]
	s.positions[i], moved.group.in[moved.at] = moved, i
	s.positions = slices.Delete(s.positions, last, last+1)
}

// sharing returns how many subscriptions are in a group with others.
func (t *table) sharing() (members int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, g := range t.groups {
		g.mu.Lock()
		if n := len(g.members); n > 1 {
			members += n
		}
		g.mu.Unlock()
	}
	return members
}

// groupOf returns the group of names on the wire; nil: there is none.
func (t *table) groupOf(key []byte) *group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.groups[string(key)]
}
