package source

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// DefaultHealthChecks apply to clusters that match Glob and have no health checks.
type DefaultHealthChecks struct {
	Glob         string
	HealthChecks []*corev3.HealthCheck
}

// Catalog is the merged content of all sources. It is immutable.
type Catalog struct {
	Clusters []*Cluster // by Name, which is unique
	Problems []Problem  // the sources' own and those between them

	// The input of the merge.
	sets      []*Set
	defaults  []DefaultHealthChecks
	aliases   map[string][]string // by service name: clusters with another name
	conflicts []conflict
}

// Merge makes one catalogue of the sources' sets, which come in the order of their
// precedence:
//   - Of several clusters with one name, the earliest wins.
//   - An EDS cluster without endpoints in its own source gets them from the first
//     source that has a ClusterLoadAssignment of its service name.
//   - If two clusters would be published under one service name with different
//     endpoints, the later one is rejected and has no Assignment.
//   - Clusters without health checks get the first defaults that match.
//
// Nil sets are sources that were not read yet. The previous catalogue, if any, only
// saves work: Merge reuses the clusters that no change since concerns.
func Merge(previous *Catalog, sets []*Set, defaults []DefaultHealthChecks) *Catalog {
	if previous == nil {
		previous = &Catalog{}
	}
	next := &Catalog{sets: slices.Clone(sets), defaults: defaults, aliases: previous.aliases}
	m := &merger{previous: previous.Clusters, defaults: defaults, unread: unread(sets)}
	if d := previous.difference(next); d == nil {
		next.Clusters = m.merge(sets)
		next.aliases = aliasesOf(sets)
		next.conflicts = m.problems
	} else {
		for _, c := range m.merge(d.restrict(sets)) {
			d.names[c.Name] = c
		}
		next.Clusters = Amend(previous.Clusters, d.names)
		if d.aliases {
			next.aliases = aliasesOf(sets)
		}
		next.conflicts = d.amend(previous.conflicts, m.problems)
	}
	for _, set := range sets {
		if set != nil {
			next.Problems = append(next.Problems, set.Problems...)
		}
	}
	for i := range next.conflicts {
		next.Problems = append(next.Problems, next.conflicts[i].Problem)
	}
	return next
}

// unread reports whether a source may have more clusters than in its set.
func unread(sets []*Set) bool {
	return slices.ContainsFunc(sets, func(s *Set) bool { return !s.Answered() })
}

// conflict is a problem between sources, with its place in their order.
type conflict struct {
	Problem
	rule rule
	set  int
}

// rule is a step of the merge, in the order of the steps.
type rule uint8

const (
	joining rule = iota
	choosing
	sharing
	sharingInline
)

func (a *conflict) compare(b *conflict) int {
	return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.set, b.set), cmp.Compare(a.Resource, b.Resource))
}
