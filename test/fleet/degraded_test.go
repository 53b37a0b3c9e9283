package fleet

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/internal/demo/upstream"
	"hdsd/test/envoy"
)

// TestDegradedAndDistrust: what real Envoys report of an upstream that answers
// that it is degraded reaches the data plane as that; and a checker that an
// operator distrusts stays so over kill -9.
func TestDegradedAndDistrust(t *testing.T) {
	ups := Upstreams(t, 2, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports+"verdict: {degraded_when: {http_status_code: [200]}}\n")
	c.Start()
	Checkers(t, c, 3)
	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, Delta: true, CDS: true, Route: "web"})
	c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})

	degraded := upstream.Healthy()
	degraded.Header = http.Header{"X-Envoy-Degraded": {""}}
	set(t, ups[0], degraded)
	AwaitPlane(t, plane, "web", addresses[0], "DEGRADED")
	set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
	AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
	set(t, ups[0], upstream.Healthy())
	AwaitPlane(t, plane, "web", addresses[0], "HEALTHY")

	const id = "checker-2"
	if out := c.Operate("checkers", "distrust", id, "--reason", "stuck", "--author", "ann"); !strings.Contains(out, id+" is distrusted") {
		t.Errorf("distrust says %s", out)
	}
	c.Kill() // it was acknowledged
	c.Start()
	envoy.Eventually(t, Patience, "a reason that names who is distrusted", func() bool {
		return strings.Contains(c.Endpoints("web")[addresses[1]].Reason, "2 of 2 believed checkers say HEALTHY; "+id+" not believed: distrusted by an operator: stuck (ann)")
	})
	if shown := c.Checkers()[id]; shown.Trusted || !strings.Contains(shown.DistrustReason, "by ann: stuck") {
		t.Errorf("it is shown as %+v", shown)
	}
	c.Operate("checkers", "judge", id)
	envoy.Eventually(t, Patience, "all three to be believed", func() bool {
		return c.Endpoints("web")[addresses[1]].Reason == "3 of 3 checkers say HEALTHY" && c.Checkers()[id].Trusted
	})
}
