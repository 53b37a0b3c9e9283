package relay

import (
	"context"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// TestAResponseWaitsForWhatMatters: for stored health, for endpoints that are new to an
// assignment that hdsd knows, and for health checks that have to be taken out of a cluster
// that lists its endpoints. What is simply new does not wait.
func TestAResponseWaitsForWhatMatters(t *testing.T) {
	stored := ""
	s := NewServer(Options{
		Health: true, Keep: time.Second, MaxClusterEndpoints: 1000, MaxEndpoints: 1000, Remembers: func(cluster string) bool { return cluster == stored },
		Checks: func(k *clusterv3.Cluster, _ uint64) bool { return len(k.GetHealthChecks()) > 0 },
	})
	l := &unionLab{t, s.catalogue}
	waits := func(text string, i *item, want bool) {
		t.Helper()
		if got := s.awaits(i.body); got != want {
			t.Errorf("%s waits: %t, want %t", text, got, want)
		}
		s.stock.release(i)
	}
	byEDS := checkedCluster(clusterv3.Cluster_EDS, "/")
	waits("a new cluster", l.take(clusters, "web", byEDS), false)
	waits("a new assignment", l.take(assignments, "web", assignmentOf("10.0.0.1")), false)
	waits("a new cluster that lists its endpoints", l.take(clusters, "web", checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1")), true)
	plain := checkedCluster(clusterv3.Cluster_STATIC, "/", "10.0.0.1")
	plain.HealthChecks = nil
	waits("such a cluster that hdsd will not check", l.take(clusters, "web", plain), false)

	stored = "web"
	waits("an assignment with stored health", l.take(assignments, "web", assignmentOf("10.0.0.1")), true)
	version := l.take(clusters, "web", byEDS)
	stored = versionName("web", version.body.group)
	s.stock.release(version)
	version = l.take(clusters, "web", byEDS)
	waits("an assignment of a version with stored health", l.take(assignments, "web", assignmentOf("10.0.0.1")), true)
	s.stock.release(version)
	stored = "shop"
	user := checkedCluster(clusterv3.Cluster_EDS, "/")
	user.Name, user.EdsClusterConfig.ServiceName = "shop", "web"
	i := l.take(clusters, "shop", user)
	waits("an assignment of a cluster with stored health", l.take(assignments, "web", assignmentOf("10.0.0.1")), true)
	s.stock.release(i)
	waits("an assignment without its cluster", l.take(assignments, "web", assignmentOf("10.0.0.1")), false)

	known := l.take(clusters, "web", byEDS)
	s.stock.applied = s.stock.learned
	ids := [][][]health.EndpointID{{{1}, {}}}
	s.book.Update(publish.Update{
		Clusters:    []publish.Cluster{{Name: "web", Message: byEDS, Checked: true}},
		Assignments: []publish.Assignment{{Name: "web", Wire: source.EncodeAssignment(assignmentOf("10.0.0.1", "10.0.0.2")).Wire(), IDs: ids}},
	})
	reordered := assignmentOf("10.0.0.2", "10.0.0.1")
	reordered.Policy = &endpointv3.ClusterLoadAssignment_Policy{}
	waits("an assignment with known endpoints", l.take(assignments, "web", reordered), false)
	waits("an assignment with a new endpoint", l.take(assignments, "web", assignmentOf("10.0.0.1", "10.0.0.3")), true)
	named := checkedCluster(clusterv3.Cluster_EDS, "/")
	named.AltStatName = "checked the same way"
	waits("a known cluster with another name for statistics", l.take(clusters, "web", named), false)
	waits("a known cluster with another check", l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/other")), true)
	s.stock.release(known)
	s.SetHealth(false)
	waits("without health, a new endpoint", l.take(assignments, "web", assignmentOf("10.0.0.3")), false)
}

// TestWhoWaitsHurriesTheCatalogue, which otherwise lets more come first.
func TestWhoWaitsHurriesTheCatalogue(t *testing.T) {
	s := newStock(10, 10, nil)
	gathered := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(gathered)
		<-s.wake
		s.gather(context.Background())
		s.setApplied(1)
	}()
	if _, moment, err := s.acquire(assignments, true, resourceOf("web", []byte{0x0a, 1, 'w'})); moment != 1 || err != nil {
		t.Fatalf("moment %d, %v", moment, err)
	}
	s.await(ctx, 1)
	<-gathered
	if len(s.hurry) != 0 {
		t.Error("the catalogue did not hear who waits")
	}
}

// TestAnExpectationThatWasWrong is corrected once hdsd knows the cluster's endpoints, although
// the cluster passed in between.
func TestAnExpectationThatWasWrong(t *testing.T) {
	s := NewServer(Options{Health: true, Keep: time.Second, MaxClusterEndpoints: 1000, MaxEndpoints: 1000, Checks: func(*clusterv3.Cluster, uint64) bool { return true }})
	l := &unionLab{t, s.catalogue}
	byEDS := checkedCluster(clusterv3.Cluster_EDS, "/")
	i := l.take(clusters, "web", byEDS)
	if i.render(s).sent.change == 0 {
		t.Error("its health checks stay, although hdsd will check it")
	}
	s.book.Update(publish.Update{Clusters: []publish.Cluster{{Name: "web", Message: byEDS}}}) // nobody can check its endpoints
	i.render(s)
	s.book.renew(s.stock.settle(map[string]bool{"web": true}, func(name string) string { return name }))
	if i.render(s).sent.change != 0 {
		t.Error("its health checks are gone, although hdsd does not check it")
	}
}

// TestNothingIsExpectedOfAClusterThatWasNotTakenOver: its clients check it until it is.
func TestNothingIsExpectedOfAClusterThatWasNotTakenOver(t *testing.T) {
	taken := false
	s := NewServer(Options{
		Health: true, Keep: time.Second, MaxClusterEndpoints: 1000, MaxEndpoints: 1000,
		Checks: func(*clusterv3.Cluster, uint64) bool { return true }, TakenOver: func(string) bool { return taken },
	})
	l := &unionLab{t, s.catalogue}
	byEDS := checkedCluster(clusterv3.Cluster_EDS, "/")
	i := l.take(clusters, "web", byEDS)
	if i.render(s).sent.change != 0 {
		t.Error("its health checks are gone before hdsd has a verdict")
	}
	taken = true
	s.book.Update(publish.Update{Clusters: []publish.Cluster{{Name: "web", Message: byEDS, Checked: true}}})
	if i.render(s).sent.change == 0 {
		t.Error("its health checks stay, although hdsd has taken it over")
	}
}

// TestAnExpectationOfAClusterThatHdsdRefuses is corrected, too: hdsd publishes nothing of it.
func TestAnExpectationOfAClusterThatHdsdRefuses(t *testing.T) {
	s := NewServer(Options{Health: true, Keep: time.Second, MaxClusterEndpoints: 1000, MaxEndpoints: 1000, Checks: func(*clusterv3.Cluster, uint64) bool { return true }})
	l := &unionLab{t, s.catalogue}
	i := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/"))
	if i.render(s).sent.change == 0 {
		t.Error("its health checks stay, although hdsd will check it")
	}
	s.book.renew(s.stock.settle(map[string]bool{"web": true}, func(name string) string { return name }))
	if i.render(s).sent.change != 0 {
		t.Error("its health checks are gone, although hdsd does not check it")
	}
}
