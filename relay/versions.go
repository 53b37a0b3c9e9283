package relay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hdsd/health"
)

// maxVersions limits the versions of a cluster that hdsd checks. Nodes with another version get it, and its
// endpoints, unchanged.
const maxVersions = 4

// versionName returns hdsd's name of a version of a cluster, by its group: the same after a restart. The
// first version, by group 0, has the name of the cluster. All versions of all clusters have different names:
// if a cluster's name ends like one of hdsd's, its first version has a suffix, too.
func versionName(cluster string, group uint64) string {
	if _, version := health.SplitVersion(cluster); group == 0 && version == "" {
		return cluster
	}
	return fmt.Sprintf("%s#%016x", cluster, group)
}

// uncheckedGroup stands in panels for all versions of a cluster that hdsd does not check. No body has it.
const uncheckedGroup = 0

// version is a cluster with one of the checks that nodes have for it.
type version struct {
	cluster string
	group   uint64 // hash of the checks: see body
}

// versionEntry is a version with hdsd's name, and the name of the assignment with its endpoints.
type versionEntry struct {
	version
	name, service string // empty name: hdsd does not check the version
}

// panel has the versions of clusters that decide the health of an assignment for a node. A nil panel stands
// for all versions: those of the node are not known, or each cluster has one version.
type panel struct {
	versions []version
	key      string
}

// panelOf returns the panel of nodes with these versions. In a panel, the versions that hdsd does not check
// are one, so that a resource has few panels, however many versions nodes have.
func (b *book) panelOf(versions []version) *panel {
	if len(versions) == 0 {
		return nil
	}
	b.mu.RLock()
	for i, v := range versions {
		if name, known := b.nameByVersion[v]; known && name == "" {
			versions[i].group = uncheckedGroup
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

// panels has the panel of each assignment of a client.
type panels struct {
	current   map[string]*panel // by assignment; without nil panels
	unsettled []string          // assignments whose panel may have changed
}

// mixedPanel stands for different panels: the client has, or may have, an assignment with several.
var mixedPanel = &panel{key: "\x00"}

func (p *panels) set(assignment string, current *panel) {
	switch {
	case current == nil:
		delete(p.current, assignment)
	case p.current == nil:
		p.current = map[string]*panel{assignment: current}
	default:
		p.current[assignment] = current
	}
}

func (p *panels) unsettle(assignment string) { p.unsettled = append(p.unsettled, assignment) }

// equal reports whether two panels are the same.
func (p *panel) equal(x *panel) bool {
	return p == x || p != nil && x != nil && p.key == x.key
}

// maxPanels limits the overlays of a resource for different panels.
const maxPanels = 16

// slots has the groups of a cluster's versions, by the names that hdsd gives them.
type slots struct {
	first      uint64   // group with the name of the cluster; 0: none
	suffixed   []uint64 // groups with a suffix; while names change, the first one, too
	unchecked  []uint64 // groups that hdsd does not check
	unfinished bool     // the next build has to update the slots again
}

// update returns the slots for the groups that nodes have, the oldest first. A version keeps its name, and
// gets the suffix again that it had before a restart (stored). When the first version has gone, another takes
// its name in three steps, so that no endpoint loses its verdict: the first goes, the other has both names,
// and then only the new one. While nodes have yet to come back (awaited), the first version has not gone.
func (s slots) update(present []uint64, awaited bool, stored func(group uint64) bool) slots {
	gone := func(g uint64) bool { return !slices.Contains(present, g) }
	next := slots{first: s.first, suffixed: slices.DeleteFunc(slices.Clone(s.suffixed), gone)}
	if gone(next.first) {
		next.first = 0
	}
	switch free := next.first == 0; {
	case len(next.suffixed) == 0 || free && (awaited || s.first != 0):
	case free:
		next.first = next.suffixed[0]
	default:
		next.suffixed = slices.DeleteFunc(next.suffixed, func(g uint64) bool { return g == next.first })
	}
	for _, g := range present {
		switch wasStored := stored(g); {
		case g == next.first || slices.Contains(next.suffixed, g):
		case next.first == 0 && !wasStored && (awaited || len(next.suffixed) == 0):
			next.first = g
		case len(next.suffixed) < maxVersions-1:
			next.suffixed = append(next.suffixed, g)
		default:
			next.unchecked = append(next.unchecked, g)
		}
	}
	next.unfinished = len(next.suffixed) > 0 && (next.first == 0 || slices.Contains(next.suffixed, next.first))
	return next
}

// setVersions notes the versions of a cluster, and returns the resources of changed versions, each once.
// Streams do not have to look at the resources of other versions again.
func (b *book) setVersions(cluster string, current []versionEntry) (touched []subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	previous := b.entries[cluster]
	if slices.Equal(previous, current) {
		return nil
	}
	changed := map[versionEntry]bool{}
	for _, o := range previous {
		changed[o] = true
		if delete(b.nameByVersion, o.version); o.name == "" {
			continue
		}
		delete(b.entryByName, o.name)
		for _, s := range o.subjects() {
			removeFrom(b.namesBySubject, s, o.name)
		}
	}
	for _, o := range current {
		changed[o] = !changed[o]
		if b.nameByVersion[o.version] = o.name; o.name == "" {
			continue
		}
		b.entryByName[o.name] = o
		for _, s := range o.subjects() {
			b.namesBySubject[s] = append(b.namesBySubject[s], o.name)
		}
	}
	named := map[subject]bool{} // resources of changed versions: hdsd checks one of the versions
	for _, o := range slices.Concat(previous, current) {
		if !changed[o] {
			continue
		}
		for _, s := range o.subjects() {
			named[s] = named[s] || o.name != ""
		}
	}
	for s, checked := range named {
		if touched = append(touched, s); checked {
			b.raise(s) // unchecked versions have no verdicts
		}
	}
	if b.entries[cluster] = current; len(current) == 0 {
		delete(b.entries, cluster)
	}
	return touched
}

// subjects returns the resources whose health a version decides: its assignment, and the cluster.
func (o *versionEntry) subjects() []subject {
	return []subject{{assignments, o.service}, {clusters, o.cluster}}
}

// subjects returns the resources whose health a cluster decides, by hdsd's name.
func (b *book) subjects(name string) []subject {
	if o, known := b.entryByName[name]; known {
		return o.subjects()
	}
	return []subject{{assignments, name}, {clusters, name}}
}

// namesOf returns hdsd's names of the clusters that decide the health of a resource.
func (b *book) namesOf(s subject) []string {
	if names := b.namesBySubject[s]; len(names) > 0 {
		return names
	}
	return []string{versionName(s.name, 0)}
}

// deciderKey returns a key of the clusters that decide the health of a resource for nodes with a panel, and
// hdsd's name of the first one: of a cluster, its version. Empty: hdsd does not check it.
func (b *book) deciderKey(x *body, p *panel) (own, judges string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := b.deciders(x, p)
	if len(names) > 0 {
		own = names[0]
	}
	return own, strings.Join(names, "\x00")
}

// deciders returns hdsd's names of the clusters that decide the health of a resource for nodes with a panel.
// A version that the book does not have yet gets the verdicts of the others. The caller holds the lock.
func (b *book) deciders(x *body, p *panel) (names []string) {
	var versions []version
	switch {
	case x.kind == clusters:
		versions = []version{{x.name, x.group}}
	case p == nil:
		return b.namesOf(subject{assignments, x.name})
	default:
		versions = p.versions
	}
	for _, v := range versions {
		name, known := b.nameByVersion[v]
		switch {
		case x.kind == assignments && v.group == uncheckedGroup:
		case !known:
			names = append(names, b.namesOf(subject{clusters, v.cluster})...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}

// users lists the clusters whose versions use an assignment, if there are several versions.
func (b *book) users(assignment string) (list []string) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := b.namesBySubject[subject{assignments, assignment}]
	if len(names) < 2 {
		return nil
	}
	for _, name := range names {
		list = append(list, b.entryByName[name].cluster)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// forPanel returns the item of a resource for the client's panel. It takes over a reference, and returns one.
func (l *ledger) forPanel(s *Server, i *item) *item {
	name := i.body.name
	p := l.panel(s, name)
	if !p.equal(l.panels.current[name]) { // earlier deliveries may have another panel
		l.panels.unsettle(name)
		l.panels.set(name, mixedPanel)
	}
	if p.equal(i.panel) {
		return i
	}
	defer s.stock.release(i)
	return s.stock.forPanel(i, p)
}

// updatePanels gives every delivery that the client has, or may have, the current panel. Offers are among
// them: the client may never answer them.
func (l *ledger) updatePanels(s *Server) {
	if len(l.panels.unsettled) == 0 {
		return
	}
	current := map[string]*panel{} // of assignments with another panel than before
	for _, name := range l.panels.unsettled {
		p := l.panel(s, name)
		if p.equal(l.panels.current[name]) {
			continue
		}
		current[name] = p
		l.panels.set(name, p)
	}
	if l.panels.unsettled = nil; len(current) == 0 {
		return
	}
	for name, p := range current {
		if held := l.holdings.get(name); held != nil {
			l.holdings.set(s.stock.transfer(held, p))
		}
		l.doubts.setPanel(name, p)
	}
	for _, o := range l.offers {
		for i, brought := range o.resources {
			if p, moved := current[brought.name()]; moved {
				o.resources[i] = s.stock.transfer(brought, p)
			}
		}
		for name, p := range current {
			s.stock.transferAll(o.removed[name], p)
		}
	}
}

// transfer returns a delivery for a panel. It takes over a reference, and returns one.
func (s *stock) transfer(x *delivery, p *panel) *delivery {
	if x == nil || p.equal(x.item.panel) {
		return x
	}
	defer s.releaseDeliveries(x)
	return s.forPanel(x.item, p).delivery(x.change)
}

func (s *stock) transferAll(deliveries []*delivery, p *panel) {
	for i, x := range deliveries {
		deliveries[i] = s.transfer(x, p)
	}
}

// panel returns the panel of an assignment for the client.
func (l *ledger) panel(s *Server, assignment string) *panel {
	if l.key.kind == clusters {
		return nil
	}
	var versions []version
	for _, name := range s.book.users(assignment) {
		if sibling := l.links.clusters(); sibling != nil {
			if held := withVersion(nil, sibling.holdings.get(name), assignment); len(held) > 0 {
				versions = append(versions, held...)
				continue
			}
		}
		versions = append(versions, s.versions(l.key, l.links.node, name, assignment)...)
	}
	return s.book.panelOf(versions)
}

// regroup updates the panels of a cluster's assignment if the client has another version of the cluster.
func (l *ledger) regroup(previous, latest *delivery) {
	x := latest.item.body
	if l.key.kind != clusters || !x.eds || previous != nil && previous.item.body.group == x.group {
		return
	}
	if sibling := l.links.assignments(); sibling != nil && sibling.holdings.get(x.service) != nil {
		sibling.setDirty(x.service, false)
	}
	if l.links.node != nil {
		l.links.node.changed(x.service)
		l.memory.updateNodePanels(l.links.server, l.key.node, x.service)
	}
}
