package eds

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"hdsd/eds/poll"
)

// group is a set of subscriptions whose first requests name the same resources, byte for byte.
// Envoys with one configuration send such requests. The members share the names and the first
// pages.
type group struct {
	// Set once.
	key       string // the names on the wire
	names     []string
	slots     []*slot        // of the names
	positions map[string]int // position of each name
	places    []int          // index of the group in each slot's positions; guarded by the table's lock
	bytes     int            // length of all names
	list      uint64         // hash of the names
	copies    *atomic.Int64  // bytes of the copies of the table's pages

	mu           sync.Mutex
	members      map[*subscription]struct{}
	latest       map[int]weak.Pointer[page] // by first position, without changed ones
	versionCache []uint64                   // current version of each slot; nil if stale
	changes      uint64                     // number of changes
}

// position is the place of a slot in a group.
type position struct {
	group *group
	index int
}

// notify queues a resource for every member that has it, or is about to. It is called under the
// slot's lock.
func (g *group) notify(position int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes++
	g.versionCache = nil
	for start, ref := range g.latest {
		if p := ref.Value(); p == nil || p.contains(position) {
			delete(g.latest, start)
		}
	}
	for u := range g.members {
		u.interest.changed(u, position)
	}
}

// watches returns the members' own watches of a resource. It is called under the slot's lock.
func (g *group) watches(position int) (watches []*watch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for u := range g.members {
		u.mu.Lock()
		if w := u.interest.watch(position); w != nil {
			watches = append(watches, w)
		}
		u.mu.Unlock()
	}
	return watches
}

// page returns the group's resources from a position on, as many as the limit of bytes allows,
// or nil if one of them does not exist.
func (g *group) page(start, limit int) *page {
	g.mu.Lock()
	p, changes := g.latest[start].Value(), g.changes
	g.mu.Unlock()
	if p != nil {
		return p
	}
	if p = newPage(g.slots, start, limit, g.copies); p == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes == changes {
		g.latest[start] = weak.Make(p)
	}
	return p
}

// versions returns the latest version of each resource, 0 for a missing one. The caller must not
// change them.
func (g *group) versions() []uint64 {
	g.mu.Lock()
	cached, changes := g.versionCache, g.changes
	g.mu.Unlock()
	if cached != nil {
		return cached
	}
	versions := make([]uint64, len(g.slots))
	for i, s := range g.slots {
		versions[i] = versionOf(s.current())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes == changes {
		g.versionCache = versions
	}
	return versions
}

// join makes a subscription a member of the group of the requested names, and makes the group if
// missing. It returns false if a name has no resource, is repeated, is an alias, or stands for
// everything: such names make no group. After a resource is removed, none can join: its name is
// counted.
func (t *table) join(u *subscription, key string, names []string) bool {
	if g := t.groupOf([]byte(key)); g != nil && slices.Contains(g.versions(), 0) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[key]
	if g == nil {
		if g = t.newGroup(key, names); g == nil {
			return false
		}
	}
	u.mu.Lock()
	u.interest.group, u.interest.named, u.interest.bytes = g, len(names), g.bytes
	u.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[u] = struct{}{}
	return true
}

func (t *table) newGroup(key string, names []string) *group {
	g := &group{
		key: key, names: names, list: poll.Hash(names), copies: &t.copies, positions: make(map[string]int, len(names)),
		members: make(map[*subscription]struct{}), latest: make(map[int]weak.Pointer[page]),
	}
	for i, name := range names {
		s := t.slots[name]
		if s == nil || s.alias != nil || name == wildcard || len(name) > longestName || !s.exists() {
			return nil
		}
		g.slots, g.positions[s.name] = append(g.slots, s), i
		g.bytes += len(name)
	}
	if len(g.positions) < len(names) {
		return nil
	}
	g.places = make([]int, len(names))
	for i, s := range g.slots {
		s.mu.Lock()
		g.places[i] = len(s.positions)
		s.positions = append(s.positions, position{g, i})
		s.mu.Unlock()
	}
	t.groups[key] = g
	return g
}

// leave ends the membership of a subscription that ends, under the table's lock.
func (t *table) leave(u *subscription) {
	g := u.interest.group
	if g == nil {
		return
	}
	g.mu.Lock()
	delete(g.members, u)
	last := len(g.members) == 0
	g.mu.Unlock()
	if !last {
		return
	}
	delete(t.groups, g.key)
	for i, s := range g.slots {
		s.leave(g.places[i])
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
	s.positions[i], moved.group.places[moved.index] = moved, i
	s.positions = slices.Delete(s.positions, last, last+1)
}

// sharing returns the number of subscriptions that share a group.
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

// groupOf returns the group of names on the wire, or nil.
func (t *table) groupOf(key []byte) *group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.groups[string(key)]
}
