package relay

import (
	"context"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// calm is how long the catalogue gathers what comes before it hands it on, while no
// response waits. So a cluster and its endpoints are mostly handed on together, and
// learning does not compete with the responses to a client that starts.
const calm = 50 * time.Millisecond

// few is how many new resources a response may have so that it waits in any case. hdsd learns
// them in some milliseconds, and its own answers then know what the client has.
const few = 100

// await waits until hdsd's core knows what was learned up to a moment.
func (s *stock) await(ctx context.Context, moment uint64) {
	for {
		s.mu.Lock()
		done, progress := s.applied >= moment, s.progress
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case s.hurry <- struct{}{}:
		default:
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return
		}
	}
}

// gather lets more come, unless a response waits.
func (s *stock) gather(ctx context.Context) {
	over := time.NewTimer(calm)
	defer over.Stop()
	select {
	case <-over.C:
	case <-s.hurry:
	case <-ctx.Done():
	}
}

// awaits reports whether a response with a resource that is new has to wait until hdsd's
// core knows the resource. It has to if that may change what the client gets.
func (s *Server) awaits(x *body) bool {
	if x.refusal() != "" || !s.book.isOn() {
		return false
	}
	if x.kind == assignments {
		return s.stock.mayRemember(x.name) || s.book.lacks(x.name, x.lists.Message())
	}
	if x.byEDS { // it has no endpoints, and expects says whether hdsd will check it
		return s.book.has(x.name) && s.stock.checkedAnew(x)
	}
	x.last.mu.Lock()
	defer x.last.mu.Unlock()
	return s.willCheck(x)
}

// remembers reports whether hdsd may know health of the endpoints of a version of a cluster that
// nobody has sent since it started; 0: of the first one.
func (s *stock) remembers(cluster string, group uint64) bool {
	return s.knows != nil && (s.knows(versionName(cluster, 0)) || s.knows(versionName(cluster, group)))
}

// mayRemember is remembers of the clusters that use an assignment, or of one of its name.
func (s *stock) mayRemember(assignment string) bool {
	s.mu.Lock()
	used := s.remembered[assignment] > 0
	s.mu.Unlock()
	return used || s.remembers(assignment, 0)
}

// checkedAnew reports whether no other cluster of the name that hdsd's core knows is
// checked in the same way.
func (s *stock) checkedAnew(x *body) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.byName[clusters][x.name].list() {
		if other != x && other.group == x.group && other.moment <= s.applied {
			return false
		}
	}
	return true
}

func (b *book) isOn() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.on
}

// has reports whether hdsd knows a cluster.
func (b *book) has(cluster string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.ContainsFunc(b.namesOf(subject{clusters, cluster}), func(name string) bool { _, known := b.clusters[name]; return known })
}

// lacks reports whether the book knows an assignment, but not all endpoints of this one: of its
// versions, no one has them.
func (b *book) lacks(name string, a *endpointv3.ClusterLoadAssignment) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var sheets []*sheet
	for _, own := range b.namesOf(subject{assignments, name}) {
		if s := b.sheets[own]; s != nil {
			sheets = append(sheets, s)
		}
	}
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			key := keyOf(group, e)
			if !slices.ContainsFunc(sheets, func(s *sheet) bool { _, known := s.ids[key]; return known }) {
				return len(sheets) > 0
			}
		}
	}
	return false
}
