package browser

import (
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
		"/#/incidents": "None is recorded",
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
