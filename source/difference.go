package source

import (
	"maps"
	"slices"
)

// difference is what has to be merged anew: the clusters that changed, and
// those that share a name or a service name with one of these, or with one of
// those, and so on. All others become what they were.
type difference struct {
	names   map[string]*Cluster // and service names; nil: not merged yet, or nothing is called so
	aliases bool                // they are not what they were
	todo    []string
}

// difference is that between what two catalogues are made of; nil where all has
// to be merged.
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
		for _, one := range slices.Concat(changed, removed) {
			d.add(one.Name, one.ServiceName)
			d.aliases = d.aliases || c.sets[i].find(one.Name).alias() != set.find(one.Name).alias()
		}
	}
	for len(d.todo) > 0 {
		name := d.todo[0]
		d.todo = d.todo[1:]
		for _, set := range slices.Concat(c.sets, next.sets) {
			if one := set.find(name); one != nil {
				d.add(one.ServiceName)
			}
		}
		d.add(c.aliases[name]...)
	}
	return d
}

// add adds names, with whatever will be found to share them.
func (d *difference) add(names ...string) {
	for _, name := range names {
		if _, known := d.names[name]; !known {
			d.names[name] = nil
			d.todo = append(d.todo, name)
		}
	}
}

// of gives the clusters of the sets that are to be merged.
func (d *difference) of(sets []*Set) []*Set {
	names := slices.Sorted(maps.Keys(d.names))
	some := make([]*Set, len(sets))
	for i, set := range sets {
		some[i] = &Set{}
		for _, name := range names {
			if c := set.find(name); c != nil {
				some[i].Clusters = append(some[i].Clusters, c)
			}
		}
	}
	return some
}

// amend gives the problems between sources with those found now in the place
// of those of the same names.
func (d *difference) amend(before, now []between) []between {
	all := slices.DeleteFunc(slices.Clone(before), func(p between) bool {
		_, again := d.names[p.Resource]
		return again
	})
	if len(now) > 0 {
		all = append(all, now...)
		slices.SortFunc(all, func(a, b between) int { return a.compare(&b) })
	}
	return all
}

// aliasesOf names clusters by the service names that are not their names.
func aliasesOf(sets []*Set) map[string][]string {
	all := make(map[string][]string)
	each(sets, func(_ int, c *Cluster) {
		if alias := c.alias(); alias != "" {
			all[alias] = append(all[alias], c.Name)
		}
	})
	return all
}

// alias is a cluster's service name where that is not its name, else empty.
func (c *Cluster) alias() string {
	if c == nil || c.ServiceName == c.Name {
		return ""
	}
	return c.ServiceName
}

func (s *Set) find(name string) *Cluster {
	if s == nil {
		return nil
	}
	return find(s.Clusters, name)
}

// comparable tells whether two sets are of one source that was read.
func (s *Set) comparable(other *Set) bool {
	return s == other || s != nil && other != nil && s.Source == other.Source
}

// sameDefaults tells whether defaults are the same, and not only alike.
func sameDefaults(a, b []DefaultHealthChecks) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
