package browser

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/test/fleet"
)

// TestAViewOfNothingSaysWhy: a cluster that is removed while it is looked at, one without
// endpoints, and an hdsd that has nothing yet.
func TestAViewOfNothingSaysWhy(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/#/clusters/web")
	b.shows(server.Addr(), true)
	c.SetClusters("resources:\n- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: idle, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n")
	b = open(t, c.HTTP, "/#/clusters/web")
	b.shows("No source has it any more: it was removed", true)
	b.shows("no longer in source local; it had 1 endpoint", true)
	b.behaved()
	b = open(t, c.HTTP, "/#/clusters/idle")
	b.shows("It has no endpoints: no source has a ClusterLoadAssignment", true)
	b.behaved()

	bare := fleet.Prepare(t, "resources: []\n", fleet.FastReports)
	bare.Start()
	for path, want := range map[string]string{
		"/":            "No source has a cluster",
		"/#/checkers":  "No checker is connected, and none was lost lately",
		"/#/incidents": "No incidents are recorded",
	} {
		b := open(t, bare.HTTP, path)
		b.shows(want, true)
		b.behaved()
	}
}

// TestAnEndpointShowsItsHostname beside its address.
func TestAnEndpointShowsItsHostname(t *testing.T) {
	c := fleet.Prepare(t, `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  load_assignment:
    cluster_name: web
    endpoints:
    - lb_endpoints: [{endpoint: {hostname: one.test, address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]
`, fleet.FastReports)
	c.Start()
	b := open(t, c.HTTP, "/#/clusters/web/127.0.0.1:1")
	b.shows("Hostname one.test", true)
	b.behaved()
}

// TestWhatDrainsIsNotUp: where it is down, an endpoint that is neither up nor down counts as neither,
// and a cluster without a healthy endpoint says so and comes before one that is half down.
func TestWhatDrainsIsNotUp(t *testing.T) {
	half := strings.Replace(cluster, "name: web", "name: aside", 1) + "    - lb_endpoints: [{endpoint: {address: {socket_address: {address: HOST, port_value: 1}}}}]\n"
	c, server := siteOf(t, cluster+strings.TrimPrefix(half, "resources:\n"))
	c.AwaitHealth("aside", "127.0.0.1:1", "UNHEALTHY")
	tell(t, c, http.MethodPost, "/v1/overrides", `{"cluster": "web", "health": "DRAINING", "author": "ann", "reason": "new kernel"}`)
	c.AwaitHealth("web", server.Addr(), "DRAINING")
	b := open(t, c.HTTP, "/#/")
	b.shows("none healthy\t–\t0 of 1 down", true) // of no zone, of eu/a
	b.shows("none healthy, 0 of 1 down", true)
	b.until("the worst to be the first", `document.querySelector("[aria-label='Clusters'] a.name")?.innerText === "web"`)
}

// TestAClusterShowsThatEnvoysPanic, by priority, for as long as they do.
func TestAClusterShowsThatEnvoysPanic(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/#/clusters/web")
	b.shows("1 of 1 endpoints, 0 down", true)
	tell(t, c, http.MethodPost, "/v1/overrides", `{"cluster": "web", "health": "DRAINING", "author": "ann", "reason": "new kernel"}`)
	b.shows("PANIC", true)
	b.shows("0 % healthy (all drain) is below its threshold of 50 %", true)
	tell(t, c, http.MethodDelete, "/v1/overrides?cluster=web", "")
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	b.shows("PANIC", false)
	b.behaved()
}
