package fleet

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// reload puts other settings in the place of some, and has hdsd read them.
func (c *Coordinator) reload(from, to string) {
	c.t.Helper()
	c.Configure(from, to)
	c.Signal(syscall.SIGHUP)
}

// TestShadowThenPublishThenFreeze is how hdsd is introduced beside what there
// is: an upstream fails, and only where verdicts are published does the data
// plane leave it alone.
func TestShadowThenPublishThenFreeze(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	own := Upstreams(t, 1, upstream.Options{})
	addresses := Addresses(ups)
	check := strings.ReplaceAll(CheckHTTP, "interval: 0.25s", "interval: 0.25s, no_traffic_interval: 0.25s")
	c := Prepare(t, ClusterFile(StaticCluster("web", "", addresses), StaticCluster("own", check, Addresses(own))),
		FastReports+"default_health_checks: [{cluster_name_glob: web, health_checks: ["+CheckHTTP+"]}]\nmode: SHADOW\n")
	c.Start()
	Checkers(t, c, 3)
	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, Delta: true, CDS: true, Route: "web"})
	c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})
	envoy.Eventually(t, Patience, "the data plane to check for itself", func() bool {
		return plane.Stats(t, `^cluster\.own\.health_check\.success$`)["cluster.own.health_check.success"] > 0
	})

	// shares reports whether the failing upstream still gets its share.
	shares := func(want bool, when string) {
		t.Helper()
		envoy.Eventually(t, Patience, "traffic "+when, func() bool { return (Traffic(t, plane, 6) > 0) == want })
	}
	set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
	c.AwaitHealth("web", addresses[0], "UNHEALTHY")
	shares(true, "to go on in the shadow")
	envoy.Eventually(t, Patience, "the verdict in the history", func() bool {
		history := c.Transitions("web")
		last := history[len(history)-1]
		return last.Address == addresses[0] && last.To == "UNHEALTHY"
	})
	if _, failed := plane.Clusters(t)["web"][addresses[0]]; !failed || plane.Clusters(t)["web"][addresses[0]].Failed() {
		t.Errorf("the data plane was told: %+v", plane.Clusters(t)["web"])
	}

	c.reload("mode: SHADOW", "mode: PUBLISH")
	AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
	shares(false, "to leave the upstream out")

	c.Operate("freeze", "--reason", "is it us?")
	shares(true, "to go on while frozen")
	if out := c.Operate("clusters", "-o", "json"); !strings.Contains(out, ": is it us?\n") || strings.Count(out, `"mode":"FROZEN"`) != 2 {
		t.Errorf("a query says %s", out)
	}
	c.Operate("override", "drain", "web", addresses[0], "--reason", "it fails")
	c.Operate("override", "drain", "own", "--reason", "moving")
	shares(false, "to leave the drained upstream out while frozen")
	AwaitPlane(t, plane, "own", Addresses(own)[0], "DRAINING")
	const checks = "cluster.own.health_check.success"
	before := plane.Stats(t, `^cluster\.own\.health_check\.success$`)[checks]
	envoy.Eventually(t, Patience, "the data plane to check what is drained for itself", func() bool {
		return plane.Stats(t, `^cluster\.own\.health_check\.success$`)[checks] > before
	})
	c.Kill()
	c.Start()
	AwaitPlane(t, plane, "own", Addresses(own)[0], "DRAINING")
	shares(false, "to leave the drained upstream out after kill -9")
	c.Operate("override", "clear", "--all")
	AwaitPlane(t, plane, "own", Addresses(own)[0], "HEALTHY")
	shares(true, "to go on after kill -9")
	c.Operate("unfreeze")
	AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
	shares(false, "to leave the upstream out again")

	c.Operate("freeze", "--reason", "moving", "--publish", "held")
	set(t, ups[0], upstream.Healthy())
	c.AwaitHealth("web", addresses[0], "HEALTHY")
	AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
	c.Operate("unfreeze")
	AwaitPlane(t, plane, "web", addresses[0], "HEALTHY")
}
