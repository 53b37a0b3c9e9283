package relay

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// TestNoTwoVersionsHaveOneName, whatever clusters are called.
func TestNoTwoVersionsHaveOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("w(#[0-9a-f]{15,17}){0,2}")
		group := rapid.Uint64Range(0, 12)
		a, n, b, m := name.Draw(t, "a"), group.Draw(t, "n"), name.Draw(t, "b"), group.Draw(t, "m")
		if rapid.Bool().Draw(t, "alike") {
			b = versionName(a, n)
		}
		if (a != b || n != m) && versionName(a, n) == versionName(b, m) {
			t.Fatalf("version %d of %q and %d of %q are both called %q", n, a, m, b, versionName(a, n))
		}
	})
	if got := versionName("web", 0); got != "web" {
		t.Errorf("the first version is called %q", got)
	}
}

// TestAVersionKeepsItsName until the first one has gone. Then one takes its place in steps. After a
// restart it has the name that it had, whatever comes first.
func TestAVersionKeepsItsName(t *testing.T) {
	type step struct {
		present []uint64
		awaited bool // nodes have yet to come back
		want    string
	}
	for name, test := range map[string]struct {
		stored uint64
		steps  []step
	}{
		"versions that come and go": {0, []step{
			{[]uint64{1}, false, "1 [] [] false"},
			{[]uint64{2}, false, "2 [] [] false"},
			{[]uint64{2, 1}, false, "2 [1] [] false"},
			{[]uint64{1, 2, 3, 4, 5, 6}, false, "2 [1 3 4] [5 6] false"},
			{[]uint64{1, 2, 4, 6}, false, "2 [1 4 6] [] false"},
			{[]uint64{1, 4}, false, "0 [1 4] [] true"},
			{[]uint64{1, 4}, false, "1 [1 4] [] true"},
			{[]uint64{1, 4, 7}, false, "1 [4 7] [] false"},
		}},
		"a new one while the first goes": {0, []step{
			{[]uint64{1, 2}, false, "1 [2] [] false"},
			{[]uint64{2, 3}, false, "0 [2 3] [] true"},
			{[]uint64{2, 3}, false, "2 [2 3] [] true"},
			{[]uint64{2, 3}, false, "2 [3] [] false"},
		}},
		"a restart": {2, []step{
			{[]uint64{2}, true, "0 [2] [] true"},
			{[]uint64{2}, true, "0 [2] [] true"},
			{[]uint64{2, 1}, true, "1 [2] [] false"},
			{[]uint64{2, 1}, false, "1 [2] [] false"},
		}},
		"a restart after which the first does not come": {2, []step{
			{[]uint64{2}, true, "0 [2] [] true"},
			{[]uint64{2}, false, "2 [2] [] true"},
			{[]uint64{2}, false, "2 [] [] false"},
		}},
		"one that was stored and comes alone": {2, []step{
			{[]uint64{2}, false, "0 [2] [] true"},
			{[]uint64{2}, false, "2 [2] [] true"},
			{[]uint64{2}, false, "2 [] [] false"},
		}},
	} {
		var s slots
		for _, step := range test.steps {
			s = s.update(step.present, step.awaited, func(g uint64) bool { return g == test.stored })
			if got := fmt.Sprint(s.first, s.suffixed, s.unchecked, s.unfinished); got != step.want {
				t.Errorf("%s: with %v: %s, want %s", name, step.present, got, step.want)
			}
		}
	}
}

// TestAVersionHasItsNameAfterARestart, whichever data plane is back first. Its verdicts are stored
// under that name.
func TestAVersionHasItsNameAfterARestart(t *testing.T) {
	path := func(k *source.Cluster) string { return k.HealthChecks[0].GetHttpHealthCheck().GetPath() }
	first := newUnionLab(t)
	first.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/a"))
	second := versionName("web", first.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/b")).body.group)
	if got := first.clusters(); len(got) != 2 || path(got["web"]) != "/a" || path(got[second]) != "/b" {
		t.Fatalf("before, there are %v", got)
	}
	restarted := newUnionLab(t)
	restarted.server.options.Stored = func(cluster string) bool { return cluster == "web" || cluster == second }
	restarted.latest.Unread = true
	for _, order := range []string{"/b", "/a"} {
		restarted.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, order))
		set, _, _ := restarted.build(true)
		restarted.latest = set
	}
	if group, _ := groupOf([]byte{16, 3}, "web"); group != 0x49a0af63b310fc90 {
		t.Errorf("the group of a cluster is %#x", group) // it must not change: names are stored
	}
	if got := restarted.clusters(); len(got) != 2 || path(got["web"]) != "/a" || path(got[second]) != "/b" {
		t.Errorf("after a restart, there are %v", got)
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
	if len(l.excess) != 1 || l.excess[0] != "web" {
		t.Errorf("nobody is told: %v", l.excess)
	}
}

// TestAVersionDecidesForItsNodes alone: other nodes have the verdicts of theirs.
func TestAVersionDecidesForItsNodes(t *testing.T) {
	l := newServerLab(t)
	s := l.server
	a, b := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/a")), l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/b"))
	listed := l.take(assignments, "web", assignmentOf("10.0.0.1"))
	l.clusters()
	s.book.setVersions("web", l.versions["web"])
	wire := source.EncodeAssignment(assignmentOf("10.0.0.1")).Wire()
	s.book.Update(publish.Update{Assignments: []publish.Assignment{
		{Name: "web", Wire: wire, IDs: [][][]health.EndpointID{{{1}}}}, {Name: versionName("web", b.body.group), Wire: wire, IDs: [][][]health.EndpointID{{{2}}}},
	}})
	see := func(cluster *item, want health.Status) {
		t.Helper()
		var held [kinds]*ledger
		held[clusters] = newLedger(clusters, true, [32]byte{}, s.memory, "", nil)
		held[assignments] = newLedger(assignments, true, [32]byte{}, s.memory, "", nil)
		held[assignments].links.stream = &stream{ledgers: held}
		if cluster != nil {
			held[clusters].holdings.put(cluster.delivery(0))
		}
		p := held[assignments].panel(s, listed.body.name)
		for range 2 {
			moved := assignmentOf("10.0.0.1").GetEndpoints()[0]
			if got, _ := s.book.healthOf(s.book.deciders(listed.body, p), nil)(keyOf(moved, moved.GetLbEndpoints()[0]), health.Unknown); got != want {
				t.Errorf("it gets %v, want %v", got, want)
			}
		}
		listed.refs.Add(1)
		if r := held[assignments].forPanel(s, listed).render(s); want != health.Unknown && r.sent.change == 0 {
			t.Error("its assignment came as it is")
		}
	}
	s.book.SetHealth([]publish.Health{{ID: 1, Status: health.Healthy}})
	see(a, health.Healthy)
	see(nil, health.Healthy) // one without a verdict counts for nothing
	s.book.SetHealth([]publish.Health{{ID: 2, Status: health.Unhealthy}})
	see(a, health.Healthy)
	see(b, health.Unhealthy)
	see(nil, health.Unhealthy)
	renderingOf := func(i *item) *rendering {
		return s.stock.forPanel(listed, s.book.panelOf([]version{{"web", i.body.group}})).render(s)
	}
	if first, second := renderingOf(a), renderingOf(b); first.sent.change == second.sent.change {
		t.Error("both nodes are sent the same")
	}
}

// TestAVersionConcernsItsNodes: one that comes, or goes, beside many that nobody checks has others
// look at two resources, and not at two for each version.
func TestAVersionConcernsItsNodes(t *testing.T) {
	b := newBook(true)
	var entries []versionEntry
	for i := range 1000 {
		o := versionEntry{version{"web", uint64(i + 1)}, "", "web"}
		if i < maxVersions {
			o.name = versionName("web", uint64(i))
		}
		entries = append(entries, o)
	}
	for _, count := range []int{999, 1000, 999, maxVersions, maxVersions - 1} {
		touched := b.setVersions("web", entries[:count])
		if len(touched) != 2 || touched[0] == touched[1] {
			t.Errorf("with %d versions, it is about %d resources, want the cluster and its assignment", count, len(touched))
		}
	}
	if touched := b.setVersions("web", entries[:maxVersions-1]); len(touched) != 0 {
		t.Errorf("without a change, it is about %v", touched)
	}
}

// TestAVersionRendersItsNodes: where each node has a version of its own, and an assignment, one more
// has hdsd put health into its own resources, and not into those of all.
func TestAVersionRendersItsNodes(t *testing.T) {
	const nodes = 50
	l := newServerLab(t)
	l.server.book.Update(publish.Update{Assignments: []publish.Assignment{
		{Name: "web", Wire: source.EncodeAssignment(assignmentOf("10.0.0.0")).Wire(), IDs: [][][]health.EndpointID{{{1}}}},
	}})
	type had struct {
		*item
		wire []byte
	}
	var kept []had
	renders := 0
	look := func() {
		for i, x := range kept {
			wire, _ := x.body.latest(l.server, x.panel)
			if len(x.wire) == 0 || &wire[0] != &x.wire[0] {
				renders++
				kept[i].wire = slices.Clone(wire)
				x.body.overlays.forPanel(x.panel).wire = kept[i].wire // who puts health into it puts another one there
			}
		}
	}
	for i := range nodes {
		cluster := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, fmt.Sprint("/", i)))
		listed := l.take(assignments, "web", assignmentOf(fmt.Sprint("10.0.0.", i)))
		kept = append(kept, had{cluster, nil}, had{listed, nil})
		look()
		l.hand()
		look()
	}
	if renders > 2*nodes*3 {
		t.Errorf("%d nodes have hdsd put health into a resource %d times", nodes, renders)
	}
	unchecked := kept[len(kept)-2].body // unchecked
	if name, _ := l.server.book.deciderKey(unchecked, nil); name != "" {
		t.Fatalf("the last version is called %q", name)
	}
	renders = 0
	l.server.book.setEnabled(false)
	if look(); renders != len(kept) {
		t.Errorf("without health, %d of %d are made again", renders, len(kept))
	}
}
