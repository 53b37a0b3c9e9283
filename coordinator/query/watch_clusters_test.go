package query

import (
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/api"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/peer"
	"hdsd/peer/access"
	"hdsd/source"
	"hdsd/source/sample"
)

// clusterLab is a backend of some clusters with one endpoint each, to watch by cluster.
type clusterLab struct {
	*fake
	*Backend
	t *testing.T
}

func newClusterLab(t *testing.T, clusters ...string) *clusterLab {
	var all []*source.Cluster
	for i, name := range clusters {
		all = append(all, sample.Web(name, fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)))
	}
	f := newFake(all...)
	return &clusterLab{f, backendOf(t, f), t}
}

// flip records a change of the endpoint of each of some clusters.
func (b *clusterLab) flip(to health.Status, clusters ...string) {
	var all []health.Transition
	b.mu.Lock()
	for _, name := range clusters {
		key := b.clusters[name].Endpoints[0].Key()
		all = append(all, health.Transition{Time: time.Now(), Endpoint: key, From: b.status[key], To: to, Reason: "it changes"})
		b.status[key] = to
	}
	b.mu.Unlock()
	b.Store.Append(all)
	b.Flipped(all)
}

// TestAWatchByClusterDoesNotWaitForTheDisk, which has no change yet.
func TestAWatchByClusterDoesNotWaitForTheDisk(t *testing.T) {
	b := newClusterLab(t, "api", "web")
	w := b.watch(api.WatchQuery{Cluster: "web"})
	b.next(w)
	flip := func(name string) health.Transition {
		return health.Transition{Time: time.Now(), Endpoint: b.clusters[name].Endpoints[0].Key(), From: health.Healthy, To: health.Unhealthy}
	}
	b.Flipped([]health.Transition{flip("api")})
	b.Flipped([]health.Transition{flip("web")})
	if e := b.next(w); len(e.Clusters.Clusters) != 1 || e.Clusters.Clusters[0].Name != "web" || e.Clusters.More {
		t.Errorf("%+v", e.Clusters)
	}
	b.Flipped(slices.Repeat([]health.Transition{flip("web")}, 3*flipsKept))
	if e := b.next(w); len(e.Clusters.Clusters) != 1 || !e.Clusters.More {
		t.Errorf("after more changes than are kept: %+v", e.Clusters)
	}
}

func (b *clusterLab) watch(q api.WatchQuery) api.Watcher {
	b.t.Helper()
	q.ByCluster = true
	w, err := b.Watch(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(w.Close)
	return w
}

// next returns the next event of a watch.
func (b *clusterLab) next(w api.Watcher) *api.Event {
	b.t.Helper()
	batch, err := w.Next(b.t.Context(), 1)
	if err != nil || len(batch.Events) != 1 || batch.Events[0].Token == "" {
		b.t.Fatalf("%+v, %v", batch, err)
	}
	return batch.Events[0]
}

// TestAWatchByCluster: after synced, it shows each cluster with a changed endpoint as it is now. A
// token resumes it.
func TestAWatchByCluster(t *testing.T) {
	b := newClusterLab(t, "api", "web")
	b.flip(health.Healthy, "api", "web")
	committed(t, b)
	w := b.watch(api.WatchQuery{})
	synced := b.next(w)
	if !synced.Synced {
		t.Fatalf("the first event is %+v", synced)
	}
	var err error
	if b.latest, err = b.NextSnapshot(t.Context()); err != nil { // the core is busy
		t.Fatal(err)
	}
	for _, name := range []string{"api", "web", "api"} {
		b.flip(health.Unhealthy, name)
		e := b.next(w)
		if e.Clusters == nil || e.Clusters.More || len(e.Clusters.Clusters) != 1 || e.Clusters.Clusters[0].Name != name || e.Clusters.Clusters[0].Unhealthy != 1 {
			t.Fatalf("after a change of %s: %+v", name, e.Clusters)
		}
	}
	committed(t, b) // else it would say that others may have changed, too
	resumed := b.watch(api.WatchQuery{Token: synced.Token, Cluster: "web"})
	if e := b.next(resumed); e.Clusters == nil || len(e.Clusters.Clusters) != 1 || e.Clusters.Clusters[0].Name != "web" {
		t.Fatalf("from the token on: %+v", e.Clusters)
	}
}

// TestAWatchByClusterIsBounded: an event has at most maxShown clusters, and says whether there are more.
func TestAWatchByClusterIsBounded(t *testing.T) {
	var names []string
	for i := range maxShown + 1 {
		names = append(names, fmt.Sprintf("cluster-%03d", i))
	}
	b := newClusterLab(t, names...)
	w := b.watch(api.WatchQuery{})
	b.next(w)
	b.flip(health.Unhealthy, names...)
	if e := b.next(w); len(e.Clusters.Clusters) != maxShown || !e.Clusters.More {
		t.Fatalf("%d clusters, more: %t", len(e.Clusters.Clusters), e.Clusters.More)
	}
	b.flip(health.Healthy, names[:maxShown]...)
	if e := b.next(w); len(e.Clusters.Clusters) != maxShown || e.Clusters.More {
		t.Fatalf("%d clusters, more: %t", len(e.Clusters.Clusters), e.Clusters.More)
	}
}

// TestAWatchByClusterKeepsToTheGrant: it shows no cluster that the caller may not see.
func TestAWatchByClusterKeepsToTheGrant(t *testing.T) {
	b := newClusterLab(t, "pay-a", "web")
	policy, problems := access.Compile(&configv1.Access{Grants: []*configv1.Grant{{San: "pay", ClusterNameGlob: "pay-*", Roles: []access.Role{access.Viewer}}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	authority := policy.Judge(access.Facts{Caller: peer.Caller{Identity: "pay", Names: []string{"pay"}, Leaf: &x509.Certificate{DNSNames: []string{"pay"}}}, Mutual: true})
	may := authority.Clusters(access.Need{Role: access.Viewer})
	w, err := b.Watch(access.With(t.Context(), narrow{access.FromContext(t.Context()), may}), api.WatchQuery{ByCluster: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b.next(w)
	b.flip(health.Unhealthy, "web")
	b.flip(health.Unhealthy, "pay-a")
	if e := b.next(w); len(e.Clusters.Clusters) != 1 || e.Clusters.Clusters[0].Name != "pay-a" || e.Clusters.Clusters[0].Source != "" {
		t.Fatalf("%+v", e.Clusters)
	}
}

// committed waits until all transitions are on disk.
func committed(t *testing.T, b *clusterLab) {
	t.Helper()
	for {
		next := b.Store.Committed()
		if _, place, err := b.Store.Latest(nil); err != nil || place > 0 && b.Store.Stats().Pending == 0 {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		<-next
	}
}
