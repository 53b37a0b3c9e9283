package source

import (
	"maps"
	"slices"
)

// difference is the clusters to merge again: the changed ones, all that share a name or service
// name with one of them, all that share one with those, and so on. All others stay as merged
// before.
type difference struct {
	names   map[string]*Cluster // and service names; nil: not merged yet, or no cluster has the name
	aliases bool                // the aliases differ
	todo    []string
}

// difference compares the parts of two catalogues. It returns nil if everything has to be
// merged.
func (c *Catalog) difference(next *Catalog) *difference {
	if !slices.EqualFunc(c.sets, next.sets, (*Set).comparable) || unread(c.sets) != unread(next.sets) || !sameDefaults(c.defaults, next.defaults) {
		return nil
	}
	d := &difference{names: make(map[string]*Cluster)}
	for i, set := range next.sets {
		if set == c.sets[i] {
			continue
		}
		changed, removed := Changes(c.sets[i].Clusters, set.Clusters)
		for _, cluster := range slices.Concat(changed, removed) {
			d.add(cluster.Name, cluster.ServiceName)
			d.aliases = d.aliases || c.sets[i].Find(cluster.Name).alias() != set.Find(cluster.Name).alias()
		}
	}
	for len(d.todo) > 0 {
		name := d.todo[0]
		d.todo = d.todo[1:]
		for _, set := range slices.Concat(c.sets, next.sets) {
			if cluster := set.Find(name); cluster != nil {
				d.add(cluster.ServiceName)
			}
		}
		d.add(c.aliases[name]...)
	}
	return d
}

// add adds names, and collects the clusters that share them.
func (d *difference) add(names ...string) {
	for _, name := range names {
		if _, ok := d.names[name]; !ok {
			d.names[name] = nil
			d.todo = append(d.todo, name)
		}
	}
}

// restrict returns sets with only the clusters that have to be merged.
func (d *difference) restrict(sets []*Set) []*Set {
	names := slices.Sorted(maps.Keys(d.names))
	restricted := make([]*Set, len(sets))
	for i, set := range sets {
		restricted[i] = &Set{}
		for _, name := range names {
			if c := set.Find(name); c != nil {
				restricted[i].Clusters = append(restricted[i].Clusters, c)
			}
		}
	}
	return restricted
}

// amend returns the problems between sources, with those found now in place of those of
// the same names.
func (d *difference) amend(before, now []conflict) []conflict {
	remaining := slices.DeleteFunc(slices.Clone(before), func(p conflict) bool {
		_, repeated := d.names[p.Resource]
		return repeated
	})
	if len(now) > 0 {
		remaining = append(remaining, now...)
		slices.SortFunc(remaining, func(a, b conflict) int { return a.compare(&b) })
	}
	return remaining
}

// aliasesOf lists clusters by service name, if that is not their name.
func aliasesOf(sets []*Set) map[string][]string {
	aliases := make(map[string][]string)
	forEach(sets, func(_ int, c *Cluster) {
		if alias := c.alias(); alias != "" {
			aliases[alias] = append(aliases[alias], c.Name)
		}
	})
	return aliases
}

// alias returns a cluster's service name, or "" if that is its name.
func (c *Cluster) alias() string {
	if c == nil || c.ServiceName == c.Name {
		return ""
	}
	return c.ServiceName
}

// Find returns the cluster of a name, or nil. The set may be nil.
func (s *Set) Find(name string) *Cluster {
	if s == nil {
		return nil
	}
	return find(s.Clusters, name)
}

// comparable reports whether two sets are of the same source, after it was read.
func (s *Set) comparable(other *Set) bool {
	return s == other || s != nil && other != nil && s.Source == other.Source
}

// sameDefaults reports whether the defaults are identical, not just equal.
func sameDefaults(a, b []DefaultHealthChecks) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
