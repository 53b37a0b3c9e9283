package source

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// DefaultHealthChecks are for clusters that match Glob and bring none.
type DefaultHealthChecks struct {
	Glob         string
	HealthChecks []*corev3.HealthCheck
}

// Catalog is what all sources together say. It is not changed once made.
type Catalog struct {
	Clusters []*Cluster // by Name, which is unique
	Problems []Problem  // the sources' own and those between them

	// What it was made of.
	sets     []*Set
	defaults []DefaultHealthChecks
	aliases  map[string][]string // by service name: clusters that have another name
	between  []between
}

// Merge makes one catalogue of the sources' sets, which come in the order of
// their precedence: where two have a cluster of one name, the earlier one's
// stands. An EDS cluster without endpoints in its own source gets them from the
// first source with a ClusterLoadAssignment of its service name. Where two
// clusters would be published under one service name with different
// endpoints, the later one is rejected and has no Assignment. Clusters
// without health checks get the first defaults that match. Nil sets are
// sources that were not read yet.
//
// The previous catalogue, if any, only saves work: clusters that what has
// changed since has nothing to do with are taken from there.
func Merge(previous *Catalog, sets []*Set, defaults []DefaultHealthChecks) *Catalog {
	if previous == nil {
		previous = &Catalog{}
	}
	next := &Catalog{sets: slices.Clone(sets), defaults: defaults, aliases: previous.aliases}
	m := &merger{previous: previous.Clusters, defaults: defaults, unread: unread(sets)}
	if d := previous.difference(next); d == nil {
		next.Clusters = m.merge(sets)
		next.aliases = aliasesOf(sets)
		next.between = m.problems
	} else {
		for _, c := range m.merge(d.of(sets)) {
			d.names[c.Name] = c
		}
		next.Clusters = Amend(previous.Clusters, d.names)
		if d.aliases {
			next.aliases = aliasesOf(sets)
		}
		next.between = d.amend(previous.between, m.problems)
	}
	for _, set := range sets {
		if set != nil {
			next.Problems = append(next.Problems, set.Problems...)
		}
	}
	for i := range next.between {
		next.Problems = append(next.Problems, next.between[i].Problem)
	}
	return next
}

// unread tells whether a source may have more than it has said.
func unread(sets []*Set) bool {
	return slices.ContainsFunc(sets, func(s *Set) bool { return !s.Answered() })
}

// between is a problem between sources, with its place among them.
type between struct {
	Problem
	rule rule
	set  int
}

// rule is one of those that say how sources become one, in their order.
type rule uint8

const (
	joining rule = iota
	choosing
	sharing
	sharingInline
)

func (a *between) compare(b *between) int {
	return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.set, b.set), cmp.Compare(a.Resource, b.Resource))
}
