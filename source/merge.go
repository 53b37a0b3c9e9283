package source

import (
	"cmp"
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
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

	made map[string]made // clusters of ours, by name
}

// made is a cluster that differs from what its source gave, and what it was
// made of: the same parts give the same pointer again.
type made struct {
	base       *Cluster
	assignment *endpointv3.ClusterLoadAssignment
	from       string // the assignment's source, where that is another than the base's
	checks     []*corev3.HealthCheck
	quarantine string
	result     *Cluster
}

// Merge makes one catalogue of the sources' sets, which come in the order of
// their precedence: where two have a cluster of one name, the earlier one's
// stands. An EDS cluster without endpoints in its own source gets them from the
// first source with a ClusterLoadAssignment of its service name. Where two
// clusters would be published under one service name with different
// endpoints, the later one is quarantined and has no Assignment. Clusters
// without health checks get the first defaults that match. Nil sets are
// sources that were not read yet; previous may be nil.
func Merge(previous *Catalog, sets []*Set, defaults []DefaultHealthChecks) *Catalog {
	m := &merger{made: make(map[string]made)}
	if previous != nil {
		m.previous = previous.made
	}
	m.join(sets)
	m.choose(sets)
	for i := range m.chosen {
		m.chosen[i].checks = defaultsFor(m.chosen[i], defaults)
	}
	m.shareServiceNames()
	catalog := &Catalog{made: m.made, Clusters: make([]*Cluster, 0, len(m.chosen))}
	for _, c := range m.chosen {
		catalog.Clusters = append(catalog.Clusters, m.build(c))
	}
	for _, set := range sets {
		if set != nil {
			catalog.Problems = append(catalog.Problems, set.Problems...)
		}
	}
	catalog.Problems = append(catalog.Problems, m.problems...)
	return catalog
}

type merger struct {
	previous, made map[string]made
	lone           map[*Cluster]bool     // lone assignments that a cluster uses
	joined         map[*Cluster]*Cluster // whose assignment EDS clusters got from other sources
	chosen         []made                // by name
	problems       []Problem
}

func (m *merger) problem(c *Cluster, warning bool, format string, args ...any) {
	m.problems = append(m.problems, Problem{
		File: c.File, Line: c.Line, Resource: c.Name, Message: fmt.Sprintf(format, args...), Warning: warning,
	})
}

// each goes over all clusters in the order of precedence.
func each(sets []*Set, visit func(*Cluster)) {
	for _, set := range sets {
		if set == nil {
			continue
		}
		for _, c := range set.Clusters {
			visit(c)
		}
	}
}

// join gives EDS clusters the endpoints that other sources have for them.
func (m *merger) join(sets []*Set) {
	assignments := make(map[string]*Cluster)
	each(sets, func(c *Cluster) {
		if (c.Config == nil || c.EDS() && c.Assignment != nil) && c.Quarantine == "" && assignments[c.ServiceName] == nil {
			assignments[c.ServiceName] = c
		}
	})
	unread := slices.ContainsFunc(sets, func(s *Set) bool { return !s.Answered() }) // which may have them
	m.lone = make(map[*Cluster]bool)
	m.joined = make(map[*Cluster]*Cluster)
	each(sets, func(c *Cluster) {
		if !c.EDS() || c.Assignment != nil {
			return
		}
		if from := assignments[c.ServiceName]; from != nil {
			m.lone[from] = from.Config == nil
			m.joined[c] = from
		} else if c.Quarantine == "" && !unread {
			m.problem(c, true, "no source has endpoints for it: it needs a ClusterLoadAssignment with cluster_name: %s", c.ServiceName)
		}
	})
}

// choose picks the first cluster of each name.
func (m *merger) choose(sets []*Set) {
	count := 0
	each(sets, func(*Cluster) { count++ })
	first := make(map[string]*Cluster, count)
	m.chosen = make([]made, 0, count)
	each(sets, func(c *Cluster) {
		if m.lone[c] {
			return
		}
		if other := first[c.Name]; other != nil {
			m.problem(c, false, "source %q, which comes first, has a cluster of this name too (%s): the one of source %q is left out",
				other.Source, place(other), c.Source)
			return
		}
		first[c.Name] = c
		chosen := made{base: c, assignment: c.Assignment, quarantine: c.Quarantine}
		if joined := m.joined[c]; joined != nil {
			chosen.assignment = joined.Assignment
			chosen.comesFrom(joined.Source)
		}
		m.chosen = append(m.chosen, chosen)
	})
}

// comesFrom notes the source of the assignment.
func (c *made) comesFrom(source string) {
	if c.from = source; source == c.base.Source {
		c.from = ""
	}
}

func place(c *Cluster) string {
	if c.Line == 0 {
		return c.File
	}
	return fmt.Sprintf("%s:%d", c.File, c.Line)
}

func defaultsFor(c made, defaults []DefaultHealthChecks) []*corev3.HealthCheck {
	if len(c.base.HealthChecks) > 0 || c.quarantine != "" {
		return c.base.HealthChecks
	}
	for _, each := range defaults {
		if Match(each.Glob, c.base.Name) {
			return each.HealthChecks
		}
	}
	return nil
}

// shareServiceNames sets aside whatever would be published under a service
// name that other endpoints have already. The clusters stay in the order of
// precedence until here, and are sorted by name in the end. What is published
// under the name of its ClusterLoadAssignment goes before what is not.
func (m *merger) shareServiceNames() {
	owner := make(map[string]*made, len(m.chosen))
	for _, inline := range []bool{false, true} {
		for i := range m.chosen {
			c := &m.chosen[i]
			if c.assignment == nil || inline != (c.base.Config != nil && !c.base.EDS()) {
				continue
			}
			name := c.base.ServiceName
			first := owner[name]
			switch {
			case first == nil:
				owner[name] = c
			case first.assignment != c.assignment && !proto.Equal(first.assignment, c.assignment):
				c.assignment = nil
				c.quarantine = fmt.Sprintf("cluster %q (%s) has other endpoints under the service name %q already: give one of them another name",
					first.base.Name, place(first.base), name)
				m.problem(c.base, false, "%s", c.quarantine)
			default: // one assignment, which is that of the first
				c.comesFrom(cmp.Or(first.from, first.base.Source))
			}
		}
	}
	slices.SortFunc(m.chosen, func(a, b made) int { return cmp.Compare(a.base.Name, b.base.Name) })
}

// build gives the source's own cluster where nothing was added, and else the
// one made before of the same parts, if any.
func (m *merger) build(c made) *Cluster {
	if c.assignment == c.base.Assignment && c.from == c.base.AssignmentSource && c.quarantine == c.base.Quarantine && len(c.checks) == len(c.base.HealthChecks) {
		return c.base
	}
	before, ok := m.previous[c.base.Name]
	if ok && before.base == c.base && before.assignment == c.assignment && before.from == c.from && before.quarantine == c.quarantine && sameChecks(before.checks, c.checks) {
		m.made[c.base.Name] = before
		return before.result
	}
	result := *c.base
	result.Assignment, result.AssignmentSource = c.assignment, c.from
	result.HealthChecks, result.Quarantine = c.checks, c.quarantine
	c.result = &result
	m.made[c.base.Name] = c
	return c.result
}

func sameChecks(a, b []*corev3.HealthCheck) bool {
	return slices.EqualFunc(a, b, func(a, b *corev3.HealthCheck) bool { return proto.Equal(a, b) })
}
