package relay

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/relay/message"
)

// TestFewClaimsCostLittle, however much is remembered of a node: a small request has its turn
// beside large ones.
func TestFewClaimsCostLittle(t *testing.T) {
	p := newPast(t, true)
	const remembered, requests = 10_000, 100
	for stream := range 10 {
		var names []string
		for i := range remembered / 10 {
			names = append(names, fmt.Sprintf("made-up-cluster-%06d", stream*remembered/10+i))
		}
		p.end("*", "", names...)
	}
	wire := claimRequest(t, 1)
	r, err := message.ParseRequest(true, wire)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := allocated(func() {
		for range requests {
			items, alternatives := p.m.claimed(p.key, r)
			if len(items) != 1 || len(alternatives) != 0 {
				t.Fatalf("%d and %d are found, want one", len(items), len(alternatives))
			}
			for _, i := range items {
				p.m.stock.release(i)
			}
		}
	}) / requests; bytes > 50_000 {
		t.Errorf("a request with one claim takes %d bytes beside %d resources that are remembered", bytes, remembered)
	}
	p.wantEmpty()
}

// allocated returns how many bytes something allocates.
func allocated(run func()) uint64 {
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	run()
	runtime.ReadMemStats(&end)
	return end.TotalAlloc - start.TotalAlloc
}

// TestAnotherVersionCostsLittle: by state of the world, a first request with a version that the node
// did not have costs the same, however much is remembered of the node.
func TestAnotherVersionCostsLittle(t *testing.T) {
	p := newPast(t, false)
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("made-up-cluster-%06d", i))
	}
	p.end("*", "1", names...)
	p.end("a", "2", "a")
	l := p.ledger("*", "")
	resume := func(version string) (bytes uint64, resumed bool) {
		bytes = allocated(func() { resumed = l.resumeState(&message.Request{Version: version}) })
		return bytes, resumed
	}
	for _, version := range []string{"", "2", "3"} {
		if bytes, resumed := resume(version); resumed || bytes > 50_000 {
			t.Errorf("version %q: resumed is %t, and it takes %d bytes beside %d resources", version, resumed, bytes, len(names))
		}
	}
	if _, resumed := resume("1"); !resumed || l.holdings.count != len(names) {
		t.Errorf("with the version that the node had, %d resources are resumed", l.holdings.count)
	}
	l.close()
	p.now = p.now.Add(p.m.ttl)
	p.wantEmpty()
}

// TestAVersionConcernsThoseWhoHadItsAssignment: of the nodes that have gone, hdsd looks at the versions
// of no others.
func TestAVersionConcernsThoseWhoHadItsAssignment(t *testing.T) {
	const nodes = 1000
	l := newServerLab(t)
	remember := func(id int, k kind, names ...string) *part {
		key := nodeKey{node: sha256.Sum256(fmt.Append(nil, id)), kind: k, delta: true}
		held := newLedger(k, true, key.node, l.server.memory, "", nil)
		for _, name := range names {
			if k == clusters {
				held.holdings.put(l.take(k, name, checkedCluster(clusterv3.Cluster_EDS, "/a")).delivery(0))
			} else {
				held.holdings.put(l.take(k, name, assignmentOf("10.0.0.1")).delivery(0))
			}
		}
		l.server.memory.remember(held, nil, time.Now())
		return l.server.memory.records[key][0]
	}
	for id := range nodes {
		remember(id, clusters, "web")
		remember(id, assignments, "other")
	}
	remember(nodes, clusters, "web")
	part := remember(nodes, assignments, "other", "web")
	l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/b"))
	touched := l.hand()
	if count := testing.AllocsPerRun(1, func() { l.server.memory.updatePanels(l.server, touched) }); count > nodes/5 {
		t.Errorf("beside %d nodes without the assignment, %.0f allocations", nodes, count)
	}
	if p := part.holdings.get("web").item.panel; p == nil || len(p.versions) != 1 {
		t.Errorf("the node that has it has it for %v", p)
	}
}
