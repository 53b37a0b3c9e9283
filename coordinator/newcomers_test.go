//go:build !race || soak

package coordinator

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source/sample"
)

// ignoringNew is a cluster that wants no traffic for endpoints before their first check.
func ignoringNew(k *sourceCluster) *sourceCluster {
	again := remade(k)
	again.Config.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{IgnoreNewHostsUntilFirstHc: true}
	return again
}

const ignoredReason = "there is no verdict yet, and the cluster has ignore_new_hosts_until_first_hc"

// TestNewEndpointsAreIgnored covers a cluster with ignore_new_hosts_until_first_hc. Endpoints with health
// from before a restart keep it.
func TestNewEndpointsAreIgnored(t *testing.T) {
	l := settled(t, ignoringNew(web("web", one)), web("other", one))
	l.truth[two], l.truth[three] = health.Unknown, health.Unknown // nobody says anything of them yet
	spared := ignoringNew(web("web", one, two, three))
	sample.Change(spared, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[2].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	})
	l.say(spared, web("other", one, two))
	l.pass(report)
	l.wantTold("web", one, health.Healthy, health.Healthy, "")
	l.wantTold("web", two, health.Unknown, health.Unhealthy, ignoredReason)
	l.wantPublished("web", three, health.Unknown) // hdsd does not check it
	l.wantPublished("other", two, health.Unknown)

	l.restart()
	l.serve(spared, web("other", one, two))
	l.wantPublished("web", one, health.Healthy)
	l.wantPublished("web", two, health.Unknown) // data planes check the cluster themselves, until two has a verdict
	l.truth[two] = health.Healthy
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*report)
	l.wantPublished("web", two, health.Healthy)
}

// TestIgnoringNewEndpointsChanges covers changes of the cluster and of upstream_health, and a freeze.
func TestIgnoringNewEndpointsChanges(t *testing.T) {
	l := settled(t, web("web", one))
	l.truth[two], l.truth[three] = health.Unknown, health.Unknown
	l.say(web("web", one, two))
	l.pass(report)
	l.wantPublished("web", two, health.Unknown)
	l.say(ignoringNew(web("web", one, two)))
	l.wantPublished("web", two, health.Unhealthy)
	l.say(web("web", one, two))
	l.wantPublished("web", two, health.Unknown)
	l.sets = []*sourceSet{localSet([]*sourceCluster{ignoringNew(web("web", one, two))})}
	l.reload(func(c *configv1.Config) {
		c.Sources = []*configv1.Source{{Name: "local", UpstreamHealth: configv1.UpstreamHealth_THEIRS}}
	})
	l.wantPublished("web", two, health.Unknown)
	l.reload(func(c *configv1.Config) {
		c.Sources, c.Mode = nil, configv1.Mode_SHADOW
	})
	l.wantPublished("web", two, health.Unknown)
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_PUBLISH })
	l.wantPublished("web", two, health.Unhealthy)

	l.freeze(held)
	l.say(ignoringNew(web("web", one, two, three)), ignoringNew(web("new", one)))
	l.pass(report)
	l.wantTold("web", three, health.Unknown, health.Unhealthy, "frozen by alice: moving; it is new since then, and the cluster has ignore_new_hosts_until_first_hc")
	l.wantPublished("new", one, health.Unknown) // data planes check it themselves
}
