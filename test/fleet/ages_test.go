package fleet

import (
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestOldConnectionsOfEnvoysEnd again and again, those of all checkers at nearly the same
// time. No seat moves for that, no health changes, and no request fails.
func TestOldConnectionsOfEnvoysEnd(t *testing.T) {
	t.Parallel()
	addresses := Addresses(Upstreams(t, 4, upstream.Options{}))
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Configure("grpc: {", "grpc: {max_connection_age: 3s, ")
	c.Start()
	Checkers(t, c, 5)
	planes := DataPlanes(t, c, "web")
	c.AwaitAllHealthy("web", addresses, planes)
	c.AwaitSynced(5)
	const ended = `hdsd_connections_ended_total{listener="grpc",reason="age"}`
	// Of the first connections, some go on from before the plan was complete.
	first := c.Metric(ended)
	moves, transitions := c.Metric("hdsd_plan_moves_total"), len(c.Transitions("web"))
	failed := 0
	envoy.Eventually(t, Patience, "every connection to end some times", func() bool {
		failed += Traffic(t, planes[0], 5)
		return c.Metric(ended) >= first+4*float64(5+len(planes))
	})
	if after := c.Metric("hdsd_plan_moves_total"); after != moves || failed > 0 {
		t.Errorf("%v seats moved, %d requests failed", after-moves, failed)
	}
	if all := c.Transitions("web"); len(all) != transitions {
		t.Errorf("health changed: %+v", all[transitions:])
	}
	if said := c.Logs(); strings.Contains(said, "canary_lost") {
		t.Error("a cluster was blamed")
	}
}
