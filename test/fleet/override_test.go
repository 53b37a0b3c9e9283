package fleet

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestDrainOverKillAndRestart is a kernel upgrade: an endpoint is drained by
// command, fails while it is, and goes on being drained over kill -9; when the
// drain is cleared, the verdict of the votes is back.
func TestDrainOverKillAndRestart(t *testing.T) {
	ups := Upstreams(t, 3, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Start()
	Checkers(t, c, 3)
	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, Delta: true, CDS: true, Route: "web"})
	c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})

	out := c.Operate("override", "drain", "web", addresses[0], "--reason", "kernel upgrade", "--author", "ann", "--for", "1h")
	if !strings.Contains(out, "drained") || !strings.Contains(out, "applies to 1 endpoint") {
		t.Errorf("drain says %s", out)
	}
	AwaitPlane(t, plane, "web", addresses[0], "DRAINING")
	c.Kill() // it was acknowledged
	c.Start()
	c.AwaitHealth("web", addresses[0], "DRAINING")
	set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
	envoy.Eventually(t, Patience, "the votes underneath", func() bool {
		return strings.Contains(c.Operate("endpoints", "web", addresses[0], "-o", "json"), `"voted":"UNHEALTHY"`)
	})
	AwaitPlane(t, plane, "web", addresses[0], "DRAINING")
	if out := c.Operate("override", "list", "-o", "csv"); !strings.Contains(out, "web,"+addresses[0]) || !strings.Contains(out, ",ann,kernel upgrade,\n") {
		t.Errorf("the list says %s", out)
	}

	c.Operate("override", "clear", "web", addresses[0], "--author", "bob")
	AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
	set(t, ups[0], upstream.Healthy())
	AwaitPlane(t, plane, "web", addresses[0], "HEALTHY")
	want := []string{"UNKNOWN HEALTHY ", "HEALTHY DRAINING drained by ann: kernel upgrade (until ", "DRAINING UNHEALTHY no longer drained (cleared by bob): ", "UNHEALTHY HEALTHY "}
	envoy.Eventually(t, Patience, "the history of it", func() bool {
		var seen []string
		for _, each := range c.Transitions("web") {
			if each.Address == addresses[0] {
				seen = append(seen, each.From+" "+each.To+" "+each.Reason)
			}
		}
		return slices.EqualFunc(seen, want, strings.HasPrefix)
	})

	// A whole cluster at once.
	c.Operate("override", "drain", "web", "--reason", "moving")
	for _, address := range addresses {
		AwaitPlane(t, plane, "web", address, "DRAINING")
	}
	c.Operate("override", "clear", "web", "--all")
	c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})
}
