package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestDegradedAndDistrust: what real Envoys report of an upstream that answers
// that it is degraded reaches the data plane as that; and a checker that an
// operator distrusts stays so over kill -9.
func TestDegradedAndDistrust(t *testing.T) {
	ups := Upstreams(t, 2, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
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

// TestDegradedByDefault: endpoints that all answer that they are degraded get traffic, as
// they did with the data plane's own checks. One that recovers does not pass for degraded
// before it has passed often enough. Nor does one that is dead, to checkers whose status
// codes outlast the answers.
func TestDegradedByDefault(t *testing.T) {
	const check = `{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 3, http_health_check: {path: /healthz}}`
	degraded := upstream.Healthy()
	degraded.Header = http.Header{"X-Envoy-Degraded": {"true"}}
	for _, release := range []struct {
		version, degraded string // of the checkers; what they make of an endpoint that is degraded
	}{{"1.36.4", "UNHEALTHY"}, {"1.38.3", "UNHEALTHY"}, {"1.40.0", "DEGRADED"}} {
		t.Run(release.version, func(t *testing.T) {
			t.Parallel()
			ups := Upstreams(t, 2, upstream.Options{})
			addresses := Addresses(ups)
			c := Prepare(t, ClusterFile(StaticCluster("web", check, addresses, "common_lb_config: {healthy_panic_threshold: {value: 0}}")), FastReports)
			c.Start()
			for i := range 3 {
				envoy.StartChecker(t, envoy.Checker{ID: fmt.Sprintf("checker-%d", i+1), HDS: c.GRPC, Version: release.version})
			}
			plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, Delta: true, CDS: true, Route: "web"})
			c.AwaitAllHealthy("web", addresses, []*envoy.Process{plane})

			set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
			AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
			set(t, ups[0], upstream.Healthy())
			AwaitPlane(t, plane, "web", addresses[0], "HEALTHY")
			set(t, ups[0], upstream.Refuse())
			AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
			set(t, ups[0], upstream.Healthy())
			AwaitPlane(t, plane, "web", addresses[0], "HEALTHY")
			for _, transition := range c.Transitions("web") {
				if transition.To == "DEGRADED" {
					t.Errorf("an endpoint that recovers passes for degraded: %+v", transition)
				}
			}

			for i := range ups {
				set(t, ups[i], degraded)
				AwaitPlane(t, plane, "web", addresses[i], release.degraded)
			}
			if failed := Traffic(t, plane, 20); release.degraded == "DEGRADED" && failed > 0 {
				t.Errorf("%d of 20 requests failed", failed)
			}
			set(t, ups[0], upstream.Refuse())
			AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
		})
	}
}
