package coordinator

import (
	"slices"
	"time"

	"hdsd/canary"
	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// lineage is a cluster as it is and as it was before, as far as checkers may
// still be sent it. The core owns it.
type lineage struct {
	present *catalog.Cluster
	stable  map[canary.Build]*catalog.Cluster // the last one proven for a build, where the present one is not
	part    map[canary.Build]*given           // of the present one, what is proven
	renewed map[[2]*catalog.Cluster][]bool    // what renewed gives
	places  map[*catalog.Cluster]map[health.Hash]int
}

// given is what a checker is sent of a cluster: nothing where cluster is nil.
type given struct {
	cluster  *catalog.Cluster
	withheld map[canary.Shape]bool // endpoints of these shapes are not sent
}

var nothing = &given{}

// succeed puts another version of a cluster in the place of the present one,
// which stays in use where it is proven and the new one is not. What renewed
// gives of the two is known.
func (c *core) succeed(after *catalog.Cluster, renewed []bool, now time.Time) {
	name := after.Source.Name
	l := c.lineages[name]
	if l == nil {
		l = &lineage{stable: map[canary.Build]*catalog.Cluster{}}
		c.lineages[name] = l
	}
	before := l.present
	proven := map[canary.Build]bool{}
	for _, known := range c.recipients {
		proven[known.build] = proven[known.build] || before != nil && c.canary.Proven(known.build, name)
	}
	suspect := len(c.canary.Standing(name).Losses) > 0
	c.canary.Set(now, name, versionOf(after))
	if suspect {
		c.unsaved[name] = true
	}
	for build, was := range proven {
		switch {
		case c.canary.Proven(build, name):
			delete(l.stable, build)
		case was:
			l.stable[build] = before
		}
	}
	l.present, l.part, l.places = after, map[canary.Build]*given{}, map[*catalog.Cluster]map[health.Hash]int{}
	l.renewed = map[[2]*catalog.Cluster][]bool{{before, after}: renewed}
}

// versionOf gives a cluster as the canary knows it.
func versionOf(k *catalog.Cluster) canary.Version {
	v := canary.Version{Shapes: slices.Clone(k.Shapes)}
	slices.Sort(v.Shapes)
	v.Shapes = slices.Compact(v.Shapes)
	if k.Checked != nil {
		v.Probe = k.Checked.Timing.InitialJitter + k.Checked.Timing.Timeout
	}
	return v
}

// outgrow forgets the versions before, where the present one is proven.
func (c *core) outgrow(name string) {
	l := c.lineages[name]
	if l == nil {
		return
	}
	for build := range l.stable {
		if c.canary.Proven(build, name) {
			delete(l.stable, build)
		}
	}
	clear(l.part)
}

// usable is what a checker may have of a cluster that it is not to try now:
// what is proven of it, or what it was before where that has more.
func (c *core) usable(l *lineage, known *recipient) *given {
	part := c.partOf(l, known.build)
	before := l.stable[known.build]
	if before == nil || before.Checked == nil || !known.Abilities.Has(before.Checked.Needs...) {
		return part
	}
	for _, hash := range before.Hashes {
		if _, stays := l.place(l.present, hash); stays {
			if _, sent := l.sent(part, hash); !sent {
				return &given{cluster: before}
			}
		}
	}
	return part
}

// partOf gives the part of the present cluster that is proven for a build.
func (c *core) partOf(l *lineage, build canary.Build) *given {
	part := l.part[build]
	if part != nil {
		return part
	}
	k := l.present
	part = &given{cluster: k, withheld: map[canary.Shape]bool{}}
	some := false
	for _, shape := range k.Shapes {
		if c.canary.ProvenShape(build, k.Source.Name, shape) {
			some = true
		} else {
			part.withheld[shape] = true
		}
	}
	if !some {
		part = nothing
	}
	l.part[build] = part
	return part
}

// same tells whether two are the same, so that endpoints need not be looked at.
func (g *given) same(other *given) bool {
	return g == other || g.cluster == other.cluster && len(g.withheld)+len(other.withheld) == 0
}

// sent gives the index of an endpoint in a version of its cluster, if it is
// sent.
func (l *lineage) sent(g *given, hash health.Hash) (index int, ok bool) {
	if g.cluster == nil {
		return 0, false
	}
	if index, ok = l.place(g.cluster, hash); !ok {
		return 0, false
	}
	return index, !g.withheld[g.cluster.Shapes[index]]
}

func (l *lineage) place(k *catalog.Cluster, hash health.Hash) (index int, ok bool) {
	places := l.places[k]
	if places == nil {
		places = make(map[health.Hash]int, len(k.Hashes))
		for i, hash := range k.Hashes {
			places[hash] = i
		}
		l.places[k] = places
	}
	index, ok = places[hash]
	return index, ok
}

// differs tells whether a checker takes an endpoint, by its index in after, for
// another than in before.
func (l *lineage) differs(before, after *catalog.Cluster, index int) bool {
	if before == after {
		return false
	}
	pair := [2]*catalog.Cluster{before, after}
	found, ok := l.renewed[pair]
	if !ok {
		found = catalog.ChangedProbes(before, after)
		l.renewed[pair] = found
	}
	return found != nil && found[index]
}
