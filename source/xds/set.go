package xds

import (
	"fmt"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/envoy"
	"hdsd/source"
)

// parts are the parts of a cluster. Equal parts keep the pointer.
type parts struct {
	config     *clusterv3.Cluster
	assignment *source.Assignment
	rejected   string
	lone       bool // the parts are only an assignment
	stale      bool // the lease of the assignment is over
}

// cluster reports whether the parts are of a cluster, not of an assignment alone, nor
// empty.
func (p parts) cluster() bool { return p != (parts{}) && !p.lone }

// build makes the set of known resources. While a cluster waits for its endpoints, its version
// from the set before stays; a new one is left out. Guarded by Source.mu.
func (s *Source) build(now time.Time) *source.Set {
	s.refresh(now)
	set := &source.Set{Source: s.options.Name, Clusters: s.latest.clusters, Problems: slices.Clip(s.latest.problems)}
	for _, k := range []*talk{&s.clusters.talk, &s.assignments.talk, &s.foreign} {
		if k.unnamed != "" {
			s.problem(set, "", false, "a response of the management server about %s: %s", k.typeURL, k.unnamed)
		}
		if len(k.silent) > 0 {
			s.problem(set, "", true, "%s", silence(k.silent))
		}
	}
	if s.unread() && !s.toldAssignments() {
		s.problem(set, "", false, "the management server has not sent its clusters within %s: %s", s.settings.fetchTimeout, s.silenceAdvice())
	}
	return set
}

// unread reports whether the server may have clusters and has never answered about them.
func (s *Source) unread() bool {
	return !s.clusters.talk.heard && len(s.clusters.entries) == 0 && !s.unserved()
}

// silenceAdvice returns the remedy for a silent server.
func (s *Source) silenceAdvice() string {
	if s.clusters.talk.open {
		return "it can be reached, but may know no node such as hdsd's: set sources[].node as it expects, such as {cluster: eg}"
	}
	return "check that it can be reached"
}

// unserved reports whether each server answers that it does not serve clusters, but
// serves assignments. Then there are no clusters to wait for.
func (s *Source) unserved() bool {
	return s.toldAssignments() && len(s.clusters.entries) == 0 && s.clusters.talk.unserved >= len(s.settings.servers())
}

// fallback describes the last valid version, if there is one.
func (e *entry) fallback() string {
	if e.good == nil {
		return ""
	}
	return " (its last valid version stays in use)"
}

// parts returns the parts of a cluster, unless it has to wait for its endpoints.
func (s *Source) parts(e *entry, set *source.Set, now time.Time) (p parts, ok bool) {
	if e.refused != nil {
		s.problem(set, e.name, false, "what the management server says of it is refused: %s%s", e.refused.reason, e.fallback())
	}
	if e.report != "" {
		s.problem(set, e.name, true, "the management server says: %s", e.report)
	}
	if e.good == nil {
		if e.refused != nil {
			p.rejected = e.refused.reason
		}
		return p, e.refused != nil
	}
	p.config = e.good.decoded.config
	if !envoy.IsEDS(p.config) {
		p.assignment = e.good.decoded.lists
		return p, true
	}
	name, isAssignment := assignmentOf(e.good)
	if !isAssignment {
		return p, true
	}
	a := s.assignments.entries[name]
	if a.waiting(now, s.settings.fetchTimeout) {
		return p, false
	}
	p.assignment, p.rejected = s.endpoints(e.name, a, set)
	p.stale = a.stale
	return p, true
}

// endpoints returns the endpoints that an assignment has for a cluster, or the reason why there
// are none.
func (s *Source) endpoints(cluster string, a *entry, set *source.Set) (assignment *source.Assignment, rejected string) {
	if a.refused != nil {
		s.problem(set, cluster, false, "the ClusterLoadAssignment %q that the management server sent is refused: %s%s", a.name, a.refused.reason, a.fallback())
	}
	if a.report != "" {
		s.problem(set, cluster, true, "the management server says of the ClusterLoadAssignment %q: %s", a.name, a.report)
	}
	switch {
	case a.stale:
		s.problem(set, cluster, true, "it has no endpoints: the lease of the ClusterLoadAssignment %q (policy.endpoint_stale_after) is over, "+
			"and the management server has not renewed it", a.name)
		return a.good.decoded.lists, ""
	case a.good != nil:
		return a.good.decoded.lists, ""
	case a.refused != nil:
		return nil, "its ClusterLoadAssignment: " + a.refused.reason
	case a.gone:
		s.problem(set, cluster, true, "it has no endpoints: the management server has no ClusterLoadAssignment %q", a.name)
	case a.lapsed:
		s.problem(set, cluster, true, "it has no endpoints: the TTL of the ClusterLoadAssignment %q is over", a.name)
	case a.report == "":
		s.problem(set, cluster, true, "it has no endpoints: the management server has not sent the ClusterLoadAssignment %q within %s",
			a.name, s.settings.fetchTimeout)
	}
	return nil, ""
}

// cluster makes a cluster of its parts.
func (s *Source) cluster(name string, p parts) *source.Cluster {
	c := &source.Cluster{
		Source: s.options.Name, Name: name, ServiceName: name, File: s.server,
		Config: p.config, Assignment: p.assignment, HealthChecks: p.config.GetHealthChecks(), Rejected: p.rejected, Lone: p.lone, Stale: p.stale,
	}
	if service := p.config.GetEdsClusterConfig().GetServiceName(); service != "" && c.EDS() {
		c.ServiceName = service
	}
	return c
}

func (s *Source) problem(set *source.Set, name string, warning bool, format string, args ...any) {
	set.Problems = append(set.Problems, source.Problem{File: s.server, Resource: name, Message: fmt.Sprintf(format, args...), Warning: warning})
}

// same reports whether two sets are equal.
func same(a, b *source.Set) bool {
	return b != nil && a.Awaited == b.Awaited && a.Unread == b.Unread && slices.Equal(a.Clusters, b.Clusters) && slices.Equal(a.Problems, b.Problems)
}
