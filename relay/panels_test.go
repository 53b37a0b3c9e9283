package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// TestAResourceIsKeptOnceForAllVersionsThatNobodyChecks, however many there are. When one of them is
// checked after all, it judges the endpoints of its node.
func TestAResourceIsKeptOnceForAllVersionsThatNobodyChecks(t *testing.T) {
	t.Parallel()
	withTenants(t, func(l *tenants) {
		const nodes = 30
		for i := range nodes {
			n := l.open(byte('a'+i), "")
			n.give(checkedCluster(clusterv3.Cluster_EDS, fmt.Sprintf("/%c", 'a'+i)))
			n.give(assignmentOf("10.0.0.1"))
			l.settle()
		}
		portions := func() int {
			l.Helper()
			l.server.stock.mu.Lock()
			defer l.server.stock.mu.Unlock()
			bodies := l.server.stock.byName[assignments]["web"].list()
			if len(bodies) != 1 || bodies[0].itemCount != len(bodies[0].portions)+min(bodies[0].commonItems(), 1) {
				l.Fatalf("%d assignments, the first with %d items for %d panels", len(bodies), bodies[0].itemCount, len(bodies[0].portions))
			}
			return len(bodies[0].portions)
		}
		l.wantChecks("with 30 versions", "/a 1 /b 1 /c 1 /d 1")
		if n := portions(); n > maxVersions+1 {
			t.Errorf("the assignment is kept for %d groups of nodes", n)
		}
		for i, n := range l.streams {
			health := map[int]string{0: "HEALTHY", 1: "UNHEALTHY", 2: "UNHEALTHY", 3: "UNHEALTHY"}[i]
			if got := n.health(); got != health && (health != "" || got != "UNKNOWN") {
				t.Errorf("node %d sees %s, want %s", i, got, health)
			}
		}
		l.streams[1].end()
		time.Sleep(2 * time.Minute) // it is remembered for one
		got := l.checks()
		if !strings.HasPrefix(got, "/a 1 /c 1 /d 1 /") || !strings.HasSuffix(got, " 1") || strings.Count(got, "/") != maxVersions {
			t.Errorf("after one has gone: %s", got)
		}
		if n := portions(); n > maxVersions+1 {
			t.Errorf("then, it is kept for %d groups of nodes", n)
		}
	})
}
