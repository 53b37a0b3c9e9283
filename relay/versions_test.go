package relay

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"pgregory.net/rapid"

	"hdsd/eds"
	"hdsd/health"
	"hdsd/source"
)

// TestNoTwoVersionsHaveOneName, whatever clusters are called.
func TestNoTwoVersionsHaveOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("w(#[0-9]{0,2}){0,3}")
		number := rapid.IntRange(1, 12)
		a, n, b, m := name.Draw(t, "a"), number.Draw(t, "n"), name.Draw(t, "b"), number.Draw(t, "m")
		if (a != b || n != m) && versionName(a, n) == versionName(b, m) {
			t.Fatalf("version %d of %q and %d of %q are both called %q", n, a, m, b, versionName(a, n))
		}
	})
	if got := versionName("web", 1); got != "web" {
		t.Errorf("the first version is called %q", got)
	}
}

// TestAVersionKeepsItsNumber until the first one has gone. Then one takes its place in steps.
func TestAVersionKeepsItsNumber(t *testing.T) {
	var s slots
	for _, step := range []struct {
		present []uint64
		want    string
	}{
		{[]uint64{1}, "[1] [] false"},
		{[]uint64{2}, "[2] [] false"},
		{[]uint64{2, 1}, "[2 1] [] false"},
		{[]uint64{1, 2, 3, 4, 5, 6}, "[2 1 3 4] [5 6] false"},
		{[]uint64{1, 2, 4, 6}, "[2 1 6 4] [] false"},
		{[]uint64{1, 4}, "[0 1 0 4] [] true"},
		{[]uint64{1, 4}, "[1 1 0 4] [] true"},
		{[]uint64{1, 4, 7}, "[1 0 7 4] [] false"},
		{[]uint64{1, 4, 7}, "[1 0 7 4] [] false"},
	} {
		if slices.Contains(step.present, 7) {
			step.want = "[1 7 0 4] [] false"
		}
		s = s.next(step.present)
		if got := fmt.Sprint(s.groups, s.beyond, s.again); got != step.want {
			t.Errorf("with %v: %s, want %s", step.present, got, step.want)
		}
	}
}

// TestVersionsOfAClusterAreBounded: the other nodes get theirs as they came.
func TestVersionsOfAClusterAreBounded(t *testing.T) {
	l := newUnionLab(t)
	for i := range 100 {
		l.take(clusters, "web", checkedCluster(clusterv3.Cluster_STATIC, fmt.Sprint("/", i), "10.0.0.1"))
	}
	if got := l.clusters(); len(got) != maxVersions {
		t.Errorf("of 100 nodes with 100 checks, there are %d clusters", len(got))
	}
	if len(l.bounded) != 1 || l.bounded[0] != "web" {
		t.Errorf("nobody is told: %v", l.bounded)
	}
}

// TestAVersionDecidesForItsNodes alone: other nodes have the verdicts of theirs.
func TestAVersionDecidesForItsNodes(t *testing.T) {
	s := NewServer(Options{Health: true, MaxClusterEndpoints: 1000, MaxEndpoints: 1000, Checks: func(*clusterv3.Cluster, uint64) bool { return true }})
	l := &unionLab{t, s.catalogue}
	a, b := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/a")), l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/b"))
	listed := l.take(assignments, "web", assignmentOf("10.0.0.1"))
	l.clusters()
	s.book.own("web", l.owned["web"])
	wire := source.EncodeAssignment(assignmentOf("10.0.0.1")).Wire()
	s.book.Update(eds.Update{Assignments: []eds.Assignment{
		{Name: "web", Wire: wire, IDs: [][][]health.EndpointID{{{1}}}}, {Name: "web#2", Wire: wire, IDs: [][][]health.EndpointID{{{2}}}},
	}})
	see := func(cluster *item, want health.Status) {
		t.Helper()
		var held [kinds]*ledger
		held[clusters] = newLedger(clusters, true, [32]byte{}, s.memory, "", nil)
		held[assignments] = newLedger(assignments, true, [32]byte{}, s.memory, "", nil)
		held[assignments].peers = &held
		if cluster != nil {
			held[clusters].held.put(cluster.with(0))
		}
		p := held[assignments].panel(s, listed.body)
		for range 2 {
			moved := assignmentOf("10.0.0.1").GetEndpoints()[0]
			if got, _ := s.book.healthOf(s.book.judges(listed.body, p)...)(keyOf(moved, moved.GetLbEndpoints()[0]), health.Unknown); got != want {
				t.Errorf("it gets %v, want %v", got, want)
			}
		}
		if r := held[assignments].render(s, listed); want != health.Unknown && r.sent.change == 0 {
			t.Error("its assignment came as it is")
		}
	}
	s.book.SetHealth([]eds.Health{{ID: 1, Status: health.Healthy}})
	see(a, health.Healthy)
	see(nil, health.Healthy) // one without a verdict counts for nothing
	s.book.SetHealth([]eds.Health{{ID: 2, Status: health.Unhealthy}})
	see(a, health.Healthy)
	see(b, health.Unhealthy)
	see(nil, health.Unhealthy)
	if first, second := listed.renderFor(s, panelOf([]version{{"web", a.body.group}})), listed.renderFor(s, panelOf([]version{{"web", b.body.group}})); first.sent.change == second.sent.change {
		t.Error("both nodes are sent the same")
	}
}
