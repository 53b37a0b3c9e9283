package fleet

import (
	"fmt"
	"strings"
	"testing"

	"hdsd/test/envoy"
)

// TestAChangedClusterIsUsedAtOnce: an Envoy waits for endpoints before it uses a
// cluster that changed, even if it has them, and withholds its ACK until then.
// If they are not sent again, its own timeout has to end that. So it is with a
// cluster that no source has endpoints for: that there are none has to be said.
func TestAChangedClusterIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	const ghost = "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: ghost, type: EDS, " +
		"eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}, per_connection_buffer_limit_bytes: %s}\n"
	clusters := func(limit string) string {
		web := StaticCluster("web", CheckHTTP, []string{"127.0.0.1:9"}, "per_connection_buffer_limit_bytes: "+limit)
		return ClusterFile(web, fmt.Sprintf(ghost, limit))
	}
	c := Prepare(t, clusters("10001"), "")
	c.Start()
	var planes []*envoy.Process
	for _, version := range []string{"1.36.4", "1.40.0"} {
		for kind, delta := range map[string]bool{"delta-": true, "state-": false} {
			planes = append(planes, envoy.StartDataPlane(t, envoy.DataPlane{
				ID: kind + version, Version: version, ADS: c.GRPC, CDS: true, Delta: delta, Route: "web",
			}))
		}
	}
	for _, limit := range []string{"10001", "10002"} {
		c.SetClusters(clusters(limit))
		for _, plane := range planes {
			envoy.Eventually(t, Patience, plane.ID+": the cluster to be in use", func() bool {
				active, err := plane.Get("/config_dump?resource=dynamic_active_clusters")
				return err == nil && strings.Count(string(active), `"per_connection_buffer_limit_bytes": `+limit) == 2
			})
		}
	}
	for _, name := range []string{"web", "ghost"} {
		timeouts := "cluster." + name + ".init_fetch_timeout"
		for _, plane := range planes {
			if count, ok := plane.Stats(t, "^"+timeouts+"$")[timeouts]; !ok || count != 0 {
				t.Errorf("%s: %s is %d (there: %t)", plane.ID, timeouts, count, ok)
			}
		}
	}
}
