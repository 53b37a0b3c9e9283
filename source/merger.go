package source

import (
	"cmp"
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// merger merges all clusters, or some that share nothing with the others.
type merger struct {
	previous []*Cluster // by name
	defaults []DefaultHealthChecks
	unread   bool // a source may have more clusters than in its set

	lone     map[*Cluster]bool     // lone assignments that clusters use
	joined   map[*Cluster]*Cluster // EDS clusters with the assignment of another source
	chosen   []chosen
	problems []conflict
}

// chosen is the cluster that wins its name, and its additions.
type chosen struct {
	base             *Cluster
	set              int // index of its set
	assignment       *Assignment
	assignmentSource string // the assignment's source, if it is not the base's
	checks           []*corev3.HealthCheck
	rejected         string
}

// merge merges the clusters of all sets, sorted by name.
func (m *merger) merge(sets []*Set) []*Cluster {
	m.join(sets)
	m.choose(sets)
	for i := range m.chosen {
		m.chosen[i].checks = defaultsFor(m.chosen[i], m.defaults)
	}
	m.shareServiceNames()
	clusters := make([]*Cluster, len(m.chosen))
	for i := range m.chosen {
		clusters[i] = m.build(&m.chosen[i])
	}
	return clusters
}

func (m *merger) problem(r rule, set int, c *Cluster, warning bool, format string, args ...any) {
	m.problems = append(m.problems, conflict{rule: r, set: set, Problem: Problem{
		File: c.File, Line: c.Line, Resource: c.Name, Message: fmt.Sprintf(format, args...), Warning: warning,
	}})
}

// forEach visits all clusters in the order of precedence.
func forEach(sets []*Set, visit func(set int, c *Cluster)) {
	for i, set := range sets {
		if set == nil {
			continue
		}
		for _, c := range set.Clusters {
			visit(i, c)
		}
	}
}

// join gives EDS clusters the endpoints that other sources have for them.
func (m *merger) join(sets []*Set) {
	assignments, bad := make(map[string]*Cluster), make(map[string]*Cluster)
	forEach(sets, func(_ int, c *Cluster) {
		switch {
		case c.Rejected != "" && c.Lone && c.Config == nil && bad[c.ServiceName] == nil:
			bad[c.ServiceName] = c
		case c.Rejected == "" && (c.Config == nil || c.EDS() && c.Assignment != nil) && assignments[c.ServiceName] == nil:
			assignments[c.ServiceName] = c
		}
	})
	m.lone = make(map[*Cluster]bool)
	m.joined = make(map[*Cluster]*Cluster)
	forEach(sets, func(set int, c *Cluster) {
		if !c.EDS() || c.Assignment != nil {
			return
		}
		if lone := cmp.Or(assignments[c.ServiceName], bad[c.ServiceName]); lone != nil {
			m.lone[lone] = lone.Config == nil
			m.joined[c] = lone
		} else if c.Rejected == "" && !m.unread {
			m.problem(joining, set, c, true, "no source has endpoints for it: it needs a ClusterLoadAssignment with cluster_name: %s", c.ServiceName)
		}
	})
}

// choose picks the first cluster of each name.
func (m *merger) choose(sets []*Set) {
	count := 0
	forEach(sets, func(int, *Cluster) { count++ })
	first := make(map[string]*Cluster, count)
	m.chosen = make([]chosen, 0, count)
	forEach(sets, func(set int, c *Cluster) {
		if m.lone[c] {
			return
		}
		if other := first[c.Name]; other != nil {
			m.problem(choosing, set, c, false, "source %q, which comes first, has a cluster of this name too (%s): the one of source %q is left out",
				other.Source, place(other), c.Source)
			return
		}
		first[c.Name] = c
		choice := chosen{base: c, set: set, assignment: c.Assignment, rejected: c.Rejected}
		if joined := m.joined[c]; joined != nil {
			choice.join(joined)
		}
		m.chosen = append(m.chosen, choice)
	})
}

// join takes the assignment of another cluster, unless it is rejected.
func (c *chosen) join(lone *Cluster) {
	if lone.Rejected == "" {
		c.assignment = lone.Assignment
		c.comesFrom(lone.Source)
	} else if c.rejected == "" {
		c.rejected = "its ClusterLoadAssignment: " + lone.Rejected
	}
}

// comesFrom records the source of the assignment.
func (c *chosen) comesFrom(source string) {
	if c.assignmentSource = source; source == c.base.Source {
		c.assignmentSource = ""
	}
}

func place(c *Cluster) string {
	if c.Line == 0 {
		return c.File
	}
	return fmt.Sprintf("%s:%d", c.File, c.Line)
}

func defaultsFor(c chosen, defaults []DefaultHealthChecks) []*corev3.HealthCheck {
	if len(c.base.HealthChecks) > 0 || c.rejected != "" {
		return c.base.HealthChecks
	}
	for _, rule := range defaults {
		if Match(rule.Glob, c.base.Outside()) {
			return rule.HealthChecks
		}
	}
	return nil
}

// shareServiceNames rejects clusters whose service name is already published with other
// endpoints. A cluster whose ClusterLoadAssignment has that name goes first; the rest
// go in the order of precedence. At the end, all are sorted by name.
func (m *merger) shareServiceNames() {
	owner := make(map[string]*chosen, len(m.chosen))
	for _, rule := range []rule{sharing, sharingInline} {
		for i := range m.chosen {
			c := &m.chosen[i]
			if c.assignment == nil || rule == sharingInline != (c.base.Config != nil && !c.base.EDS()) {
				continue
			}
			name := c.base.ServiceName
			first := owner[name]
			switch {
			case first == nil:
				owner[name] = c
			case !first.assignment.Equal(c.assignment):
				c.assignment = nil
				const format = "%s has other endpoints under the service name %q already: give one of them another name"
				c.rejected = fmt.Sprintf(format, "another cluster", name)
				m.problem(rule, c.set, c.base, false, format, fmt.Sprintf("cluster %q (%s)", first.base.Name, place(first.base)), name)
			default: // the same assignment as the first's
				c.comesFrom(cmp.Or(first.assignmentSource, first.base.Source))
			}
		}
	}
	slices.SortFunc(m.chosen, func(a, b chosen) int { return cmp.Compare(a.base.Name, b.base.Name) })
}

// build returns the source's own cluster if nothing was added. Otherwise it returns a new one,
// or the previous one if that has the same parts.
func (m *merger) build(c *chosen) *Cluster {
	if c.assignment == c.base.Assignment && c.assignmentSource == c.base.AssignmentSource && c.rejected == c.base.Rejected && len(c.checks) == len(c.base.HealthChecks) {
		return c.base
	}
	before := find(m.previous, c.base.Name)
	if before != nil && before.base == c.base && before.Assignment == c.assignment && before.AssignmentSource == c.assignmentSource &&
		before.Rejected == c.rejected && sameChecks(before.HealthChecks, c.checks) {
		return before
	}
	result := *c.base
	result.base = c.base
	result.Assignment, result.AssignmentSource = c.assignment, c.assignmentSource
	result.HealthChecks, result.Rejected = c.checks, c.rejected
	return &result
}

func sameChecks(a, b []*corev3.HealthCheck) bool {
	return slices.EqualFunc(a, b, func(a, b *corev3.HealthCheck) bool { return proto.Equal(a, b) })
}
