package fleet

import (
	"fmt"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestEnvoysThatShareWhatTheyAreSent: Envoys of one configuration share what they are sent, and are
// told what fails, also after hdsd was killed and they have come again with what they have.
func TestEnvoysThatShareWhatTheyAreSent(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 2, upstream.Options{})
	var file, names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("web-%02d", i))
		file = append(file, StaticCluster(names[i], CheckHTTP, Addresses(ups)))
	}
	c := Prepare(t, ClusterFile(file...), FastReports)
	c.Start()
	Checkers(t, c, 3)
	planes := append(DataPlanes(t, c, names...), DataPlanes(t, c, names...)...)
	everywhere := func(up int, want string) {
		t.Helper()
		for _, plane := range planes {
			for _, name := range names {
				AwaitPlane(t, plane, name, ups[up].Addr(), want)
			}
		}
	}
	everywhere(0, "HEALTHY")
	everywhere(1, "HEALTHY")
	all := float64(len(planes))
	envoy.Eventually(t, Patience, "all to share", func() bool { return c.Metric("hdsd_xds_subscriptions_in_groups") == all })
	ups[0].Set(upstream.Status(503))
	everywhere(0, "UNHEALTHY")
	c.Kill()
	c.Start()
	ups[0].Set(upstream.Healthy())
	everywhere(0, "HEALTHY")
	envoy.Eventually(t, Patience, "all to share again", func() bool { return c.Metric("hdsd_xds_subscriptions_in_groups") == all })
	ups[1].Set(upstream.Status(503))
	everywhere(1, "UNHEALTHY")
}
