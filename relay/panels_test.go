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
	renting(t, func(l *tenants) {
		const nodes = 30
		for i := range nodes {
			n := l.comes(byte('a'+i), "")
			n.has(checkedCluster(clusterv3.Cluster_EDS, fmt.Sprintf("/%c", 'a'+i)))
			n.has(assignmentOf("10.0.0.1"))
			l.settle()
		}
		portions := func() int {
			l.Helper()
			l.server.stock.mu.Lock()
			defer l.server.stock.mu.Unlock()
			all := l.server.stock.byName[assignments]["web"].list()
			if len(all) != 1 || all[0].items != len(all[0].apart)+min(all[0].common(), 1) {
				l.Fatalf("%d assignments, the first with %d items for %d panels", len(all), all[0].items, len(all[0].apart))
			}
			return len(all[0].apart)
		}
		l.wantChecks("with 30 versions", "/a 1 /b 1 /c 1 /d 1")
		if n := portions(); n > maxVersions+1 {
			t.Errorf("the assignment is kept for %d groups of nodes", n)
		}
		for i, n := range l.all {
			health := map[int]string{0: "HEALTHY", 1: "UNHEALTHY", 2: "UNHEALTHY", 3: "UNHEALTHY"}[i]
			if got := n.sees(); got != health && (health != "" || got != "UNKNOWN") {
				t.Errorf("node %d sees %s, want %s", i, got, health)
			}
		}
		l.all[1].goes()
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
