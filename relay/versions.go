package relay

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxVersions is how many versions of a cluster hdsd checks: ways in which nodes check it.
// Nodes with another one get it, and its endpoints, as they came.
const maxVersions = 4

// numbered matches names that end as hdsd's own for a version do.
var numbered = regexp.MustCompile("#[1-9][0-9]*$")

// versionName is hdsd's own name for a version of a cluster, which are numbered from 1. No two
// versions of any clusters have the same: of a name that ends as hdsd's do, the first one has a
// number, too.
func versionName(cluster string, number int) string {
	if number == 1 && !numbered.MatchString(cluster) {
		return cluster
	}
	return fmt.Sprintf("%s#%d", cluster, number)
}

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

func panelOf(versions []version) *panel {
	if len(versions) == 0 {
		return nil
	}
	var key strings.Builder
	for _, v := range versions {
		key.WriteString(strconv.FormatUint(v.group, 36) + " " + v.cluster + "\x00")
	}
	return &panel{versions, key.String()}
}

// maxPanels bounds what is kept of one resource as nodes with different versions get it.
const maxPanels = 16

// slots are the groups of a cluster's versions, by their numbers from 0; 0: free.
type slots struct {
	groups []uint64
	beyond []uint64 // for which there was no slot
	again  bool     // the next make changes something
}

// next returns the slots for the groups that nodes have, in the order in which they came. A
// version keeps its number. When the first one has gone, another takes its place in three steps,
// so that no endpoint loses its verdict: the first goes, another is there twice, and then once.
func (s slots) next(present []uint64) slots {
	now := slots{groups: slices.Clone(s.groups)}
	others, freed := false, false
	for i, g := range now.groups {
		if g != 0 && !slices.Contains(present, g) {
			now.groups[i] = 0
			freed = freed || i == 0
		}
		others = others || i > 0 && now.groups[i] != 0
	}
	if others {
		first := slices.IndexFunc(now.groups[1:], func(g uint64) bool { return g != 0 }) + 1
		switch twin := slices.Index(now.groups[1:], now.groups[0]) + 1; {
		case now.groups[0] == 0 && freed:
			now.again = true
		case now.groups[0] == 0:
			now.groups[0], now.again = now.groups[first], true
		case twin > 0:
			now.groups[twin] = 0
		}
	}
	for _, g := range present {
		if slices.Contains(now.groups, g) {
			continue
		}
		free := -1
		for i := range now.groups {
			if now.groups[i] == 0 && (i > 0 || !others) {
				free = i
				break
			}
		}
		switch {
		case free >= 0:
			now.groups[free] = g
		case len(now.groups) < maxVersions:
			now.groups = append(now.groups, g)
		default:
			now.beyond = append(now.beyond, g)
		}
	}
	return now
}

// own notes which versions there are of a cluster, and returns what that is about.
func (b *book) own(cluster string, now []owned) (touched []subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.made[cluster]
	if slices.Equal(before, now) {
		return nil
	}
	for _, o := range before {
		delete(b.versions, o.version)
		delete(b.owners, o.name)
		for _, s := range o.about() {
			without(b.names, s, o.name)
			touched = append(touched, s)
		}
	}
	for _, o := range now {
		b.versions[o.version] = o.name
		if o.name == "" {
			continue
		}
		b.owners[o.name] = o
		for _, s := range o.about() {
			b.names[s] = append(b.names[s], o.name)
			touched = append(touched, s)
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
	return []string{versionName(s.name, 1)}
}

// nameOf returns hdsd's own name for a version of a cluster; empty: it is not checked. A version
// that is not known yet is taken for the first one.
func (b *book) nameOf(x *body) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if name, known := b.versions[version{x.name, x.group}]; known {
		return name
	}
	return b.namesOf(subject{clusters, x.name})[0]
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

// render returns a resource with the latest health for this client.
func (l *ledger) render(s *Server, i *item) *rendering {
	return i.renderFor(s, l.panel(s, i.body))
}

// panel returns the versions of clusters by which the client takes an assignment.
func (l *ledger) panel(s *Server, x *body) *panel {
	if l.kind == clusters || l.peers == nil || l.peers[clusters] == nil {
		return nil
	}
	var by []version
	for _, name := range s.book.users(x.name) {
		if held := l.peers[clusters].held.get(name); held != nil && held.item.body.byEDS && held.item.body.service == x.name {
			by = append(by, version{name, held.item.body.group})
		}
	}
	return panelOf(by)
}

// regroup notes that the client has another version of a cluster: other verdicts may count.
func (l *ledger) regroup(before, now *sent) {
	if l.kind != clusters || l.peers == nil || l.peers[assignments] == nil || before != nil && before.item.body.group == now.item.body.group {
		return
	}
	if x, own := now.item.body, l.peers[assignments]; x.byEDS && own.held.get(x.service) != nil {
		own.setDirty(x.service, false)
	}
}
