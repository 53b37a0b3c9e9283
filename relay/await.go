package relay

import (
	"context"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// gatherTime is how long the catalogue gathers changes before it publishes them, while no response waits. So
// it mostly publishes a cluster together with its endpoints, and does not compete with the responses to a
// client that starts.
const gatherTime = 50 * time.Millisecond

// fewResources is the number of new resources up to which a response always waits. hdsd's core knows them
// after some milliseconds, and hdsd's own responses then have the health.
const fewResources = 100

// await waits until hdsd's core knows the changes up to a moment.
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

// gather waits for more changes, unless a response waits.
func (s *stock) gather(ctx context.Context) {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry:
	case <-ctx.Done():
	}
}

// awaits reports whether a response with a new resource has to wait until hdsd's core knows the resource,
// since that may change the response.
func (s *Server) awaits(x *body) bool {
	if x.refusal() != "" || !s.book.isEnabled() {
		return false
	}
	if x.kind == assignments {
		return s.stock.remembersAssignment(x.name) || s.book.missesEndpoints(x.name, x.assignment.Message())
	}
	if x.eds { // it has no endpoints: the answer is that of expects
		return s.book.knowsCluster(x.name) && s.stock.checkedAnew(x)
	}
	x.overlays.mu.Lock()
	defer x.overlays.mu.Unlock()
	return s.willCheck(x)
}

// remembers reports whether hdsd may know health of the endpoints of a version of a cluster, by its group,
// or of the first version.
func (s *stock) remembers(cluster string, group uint64) bool {
	return s.isRemembered != nil && (s.isRemembered(versionName(cluster, 0)) || s.isRemembered(versionName(cluster, group)))
}

// remembersAssignment is remembers for the clusters that use an assignment, or have its name.
func (s *stock) remembersAssignment(assignment string) bool {
	s.mu.Lock()
	used := s.remembered[assignment] > 0
	s.mu.Unlock()
	return used || s.remembers(assignment, 0)
}

// checkedAnew reports whether hdsd's core knows no other cluster of the name with the same check.
func (s *stock) checkedAnew(x *body) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.byName[clusters][x.name].list() {
		if known != x && known.group == x.group && known.moment <= s.applied {
			return false
		}
	}
	return true
}

func (b *book) isEnabled() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.enabled
}

// knowsCluster reports whether the book has a cluster.
func (b *book) knowsCluster(cluster string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.ContainsFunc(b.namesOf(subject{clusters, cluster}), func(name string) bool { _, known := b.clusters[name]; return known })
}

// missesEndpoints reports whether the book has an assignment, and no version of it has some endpoint of this
// one.
func (b *book) missesEndpoints(name string, a *endpointv3.ClusterLoadAssignment) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var sheets []*sheet
	for _, cluster := range b.namesOf(subject{assignments, name}) {
		if s := b.sheets[cluster]; s != nil {
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
