package relay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hdsd/health"
)

// maxVersions is how many versions of a cluster hdsd checks: ways in which nodes check it.
// Nodes with another one get it, and its endpoints, as they came.
const maxVersions = 4

// versionName is hdsd's own name for a version of a cluster, by what it says of how to check it: the
// same after a restart. The first version, of group 0 here, has the name of the cluster. No two
// versions of any clusters have the same: of a name that ends as hdsd's do, the first one has a
// suffix, too.
func versionName(cluster string, group uint64) string {
	if _, version := health.SplitVersion(cluster); group == 0 && version == "" {
		return cluster
	}
	return fmt.Sprintf("%s#%016x", cluster, group)
}

// unchecked is the group of a panel for all versions of a cluster that hdsd does not check. No body has it.
const unchecked = 0

// version is a way in which nodes check a cluster.
type version struct {
	cluster string
	group   uint64 // see body
}

// owned is a version with hdsd's own name, and the name of the assignment that has its endpoints.
type owned struct {
	version
	name, service string // no name: it is not checked
}

// panel is the versions of clusters by which a node takes an assignment; nil: not known, or there
// is one of each.
type panel struct {
	versions []version
	key      string
}

// panelOf returns the panel of nodes that have these versions. Those that hdsd does not check are one: so
// a resource has few panels, however many versions nodes have.
func (b *book) panelOf(versions []version) *panel {
	if len(versions) == 0 {
		return nil
	}
	b.mu.RLock()
	for i, v := range versions {
		if name, known := b.versions[v]; known && name == "" {
			versions[i].group = unchecked
		}
	}
	b.mu.RUnlock()
	slices.SortFunc(versions, func(a, b version) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), cmp.Compare(a.group, b.group))
	})
	versions = slices.Compact(versions)
	var key strings.Builder
	for _, v := range versions {
		key.WriteString(strconv.FormatUint(v.group, 36) + " " + v.cluster + "\x00")
	}
	return &panel{versions, key.String()}
}

// panels are those by which a client has assignments, and may have them.
type panels struct {
	now       map[string]*panel // by assignment; without nil
	unsettled []string          // assignments that may have another one
}

// mixed stands for several panels.
var mixed = &panel{key: "\x00"}

func (p *panels) set(assignment string, now *panel) {
	switch {
	case now == nil:
		delete(p.now, assignment)
	case p.now == nil:
		p.now = map[string]*panel{assignment: now}
	default:
		p.now[assignment] = now
	}
}

func (p *panels) unsettle(assignment string) { p.unsettled = append(p.unsettled, assignment) }

// is reports whether two are the same; nil is not known.
func (p *panel) is(other *panel) bool {
	return p == other || p != nil && other != nil && p.key == other.key
}

// maxPanels bounds what is kept of one resource as nodes with different versions get it.
const maxPanels = 16

// slots are the groups of a cluster's versions, by how hdsd calls them.
type slots struct {
	first  uint64   // the one with the name of the cluster; 0: none
	others []uint64 // those with names of their own; for a moment, with the first one
	beyond []uint64 // those that are not checked
	again  bool     // the next make changes something
}

// next returns the slots for the groups that nodes have, in the order in which they came. A version
// keeps its name, and one that had a name of its own before a restart (stored) has it again. When the
// first one has gone, another takes its place in three steps, so that no endpoint loses its verdict:
// the first goes, another is there twice, and then once. While nodes have yet to come back, it has not
// gone.
func (s slots) next(present []uint64, awaited bool, stored func(group uint64) bool) slots {
	gone := func(g uint64) bool { return !slices.Contains(present, g) }
	now := slots{first: s.first, others: slices.DeleteFunc(slices.Clone(s.others), gone)}
	if gone(now.first) {
		now.first = 0
	}
	switch free := now.first == 0; {
	case len(now.others) == 0 || free && (awaited || s.first != 0):
	case free:
		now.first = now.others[0]
	default:
		now.others = slices.DeleteFunc(now.others, func(g uint64) bool { return g == now.first })
	}
	for _, g := range present {
		switch own := stored(g); {
		case g == now.first || slices.Contains(now.others, g):
		case now.first == 0 && !own && (awaited || len(now.others) == 0):
			now.first = g
		case len(now.others) < maxVersions-1:
			now.others = append(now.others, g)
		default:
			now.beyond = append(now.beyond, g)
		}
	}
	now.again = len(now.others) > 0 && (now.first == 0 || slices.Contains(now.others, now.first))
	return now
}

// own notes which versions there are of a cluster, and returns what the changes are about, once each:
// not what is about a version that stays as it is, since all that have it would look at it again.
func (b *book) own(cluster string, now []owned) (touched []subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.made[cluster]
	if slices.Equal(before, now) {
		return nil
	}
	changed := map[owned]bool{}
	for _, o := range before {
		changed[o] = true
		if delete(b.versions, o.version); o.name == "" {
			continue
		}
		delete(b.owners, o.name)
		for _, s := range o.about() {
			without(b.names, s, o.name)
		}
	}
	for _, o := range now {
		changed[o] = !changed[o]
		if b.versions[o.version] = o.name; o.name == "" {
			continue
		}
		b.owners[o.name] = o
		for _, s := range o.about() {
			b.names[s] = append(b.names[s], o.name)
		}
	}
	named := map[subject]bool{} // what the changes are about: whether one of a version that is checked is
	for _, o := range slices.Concat(before, now) {
		if !changed[o] {
			continue
		}
		for _, s := range o.about() {
			named[s] = named[s] || o.name != ""
		}
	}
	for s, checked := range named {
		if touched = append(touched, s); checked {
			b.raise(s) // others have no verdicts
		}
	}
	if b.made[cluster] = now; len(now) == 0 {
		delete(b.made, cluster)
	}
	return touched
}

// about lists the resources whose health a version decides: its assignment, and the cluster.
func (o *owned) about() []subject {
	return []subject{{assignments, o.service}, {clusters, o.cluster}}
}

// about lists the resources whose health something with hdsd's own name decides.
func (b *book) about(name string) []subject {
	if o, known := b.owners[name]; known {
		return o.about()
	}
	return []subject{{assignments, name}, {clusters, name}}
}

// namesOf returns hdsd's own names for what decides the health of a resource.
func (b *book) namesOf(s subject) []string {
	if names := b.names[s]; len(names) > 0 {
		return names
	}
	return []string{versionName(s.name, 0)}
}

// judgment returns what stands for all that decides the health of a resource for the nodes with a
// panel, and hdsd's own name for the first: of a cluster, its version. Empty: it is not checked.
func (b *book) judgment(x *body, p *panel) (own, judges string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := b.judges(x, p)
	if len(names) > 0 {
		own = names[0]
	}
	return own, strings.Join(names, "\x00")
}

// judges returns hdsd's own names for what decides the health of a resource for the nodes with a
// panel. A version that is not known yet has the verdicts of the others. The caller holds the lock.
func (b *book) judges(x *body, p *panel) (names []string) {
	var by []version
	switch {
	case x.kind == clusters:
		by = []version{{x.name, x.group}}
	case p == nil:
		return b.namesOf(subject{assignments, x.name})
	default:
		by = p.versions
	}
	for _, v := range by {
		name, known := b.versions[v]
		switch {
		case x.kind == assignments && v.group == unchecked:
		case !known:
			names = append(names, b.namesOf(subject{clusters, v.cluster})...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}

// users lists the clusters of which there are versions that use an assignment, if there are
// several versions.
func (b *book) users(assignment string) (all []string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := b.names[subject{assignments, assignment}]
	if len(names) < 2 {
		return nil
	}
	for _, name := range names {
		all = append(all, b.owners[name].cluster)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// settle returns an item for the client's panel. It takes over a reference, and returns one.
func (l *ledger) settle(s *Server, i *item) *item {
	name := i.body.name
	p := l.panel(s, name)
	if !p.is(l.panels.now[name]) { // what it had may have another one
		l.panels.unsettle(name)
		l.panels.set(name, mixed)
	}
	if p.is(i.panel) {
		return i
	}
	defer s.stock.release(i)
	return s.stock.as(i, p)
}

// resettle has everything that the client has, or may have, for its panels of now: also what it has
// not answered, and may never answer.
func (l *ledger) resettle(s *Server) {
	if len(l.panels.unsettled) == 0 {
		return
	}
	now := map[string]*panel{} // of assignments with another one than before
	for _, name := range l.panels.unsettled {
		p := l.panel(s, name)
		if p.is(l.panels.now[name]) {
			continue
		}
		now[name] = p
		l.panels.set(name, p)
	}
	if l.panels.unsettled = nil; len(now) == 0 {
		return
	}
	for name, p := range now {
		if held := l.held.get(name); held != nil {
			l.held.set(s.stock.transfer(held, p))
		}
		l.doubts.resettle(name, p)
	}
	for _, o := range l.offers {
		for i, brought := range o.brings {
			if p, moved := now[brought.name()]; moved {
				o.brings[i] = s.stock.transfer(brought, p)
			}
		}
		for name, p := range now {
			s.stock.transferAll(o.gone[name], p)
		}
	}
}

// transfer returns what was sent as an item of a panel. It takes over a reference, and returns one.
func (s *stock) transfer(x *sent, p *panel) *sent {
	if x == nil || p.is(x.item.panel) {
		return x
	}
	defer s.unhold(x)
	return s.as(x.item, p).with(x.change)
}

func (s *stock) transferAll(all []*sent, p *panel) {
	for i, x := range all {
		all[i] = s.transfer(x, p)
	}
}

// panel returns the versions of clusters by which the client takes an assignment.
func (l *ledger) panel(s *Server, assignment string) *panel {
	if l.key.kind == clusters {
		return nil
	}
	var all []version
	for _, name := range s.book.users(assignment) {
		if own := l.peers.clusters(); own != nil {
			if have := withVersion(nil, own.held.get(name), assignment); len(have) > 0 {
				all = append(all, have...)
				continue
			}
		}
		all = append(all, s.versions(l.key, l.peers.node, name, assignment)...)
	}
	return s.book.panelOf(all)
}

// regroup notes that the client has another version of a cluster: other verdicts may count.
func (l *ledger) regroup(before, now *sent) {
	x := now.item.body
	if l.key.kind != clusters || !x.byEDS || before != nil && before.item.body.group == x.group {
		return
	}
	if own := l.peers.assignments(); own != nil && own.held.get(x.service) != nil {
		own.setDirty(x.service, false)
	}
	if l.peers.node != nil {
		l.peers.node.changed(x.service)
		l.memory.regroup(l.peers.server, l.key.node, x.service)
	}
}
