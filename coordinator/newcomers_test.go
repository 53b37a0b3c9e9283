//go:build !race || soak

package coordinator

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
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
	l := newSettledLab(t, ignoringNew(web("web", address1)), web("other", address1))
	l.truth[address2], l.truth[address3] = health.Unknown, health.Unknown // nobody says anything of them yet
	spared := ignoringNew(web("web", address1, address2, address3))
	sample.Change(spared, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[2].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	})
	l.setClusters(spared, web("other", address1, address2))
	l.pass(report)
	l.wantTold("web", address1, health.Healthy, health.Healthy, "")
	l.wantTold("web", address2, health.Unknown, health.Unhealthy, ignoredReason)
	l.wantPublished("web", address3, health.Unknown) // hdsd does not check it
	l.wantPublished("other", address2, health.Unknown)

	l.restart()
	l.serve(spared, web("other", address1, address2))
	l.wantPublished("web", address1, health.Healthy)
	l.wantPublished("web", address2, health.Unhealthy) // as before
	l.truth[address2] = health.Healthy
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*report)
	l.wantPublished("web", address2, health.Healthy)
}

// TestIgnoringNewEndpointsChanges covers changes of the cluster and of upstream_health, and a freeze.
func TestIgnoringNewEndpointsChanges(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.truth[address2], l.truth[address3] = health.Unknown, health.Unknown
	l.setClusters(web("web", address1, address2))
	l.pass(report)
	l.wantPublished("web", address2, health.Unknown)
	l.setClusters(ignoringNew(web("web", address1, address2)))
	l.wantPublished("web", address2, health.Unhealthy)
	l.setClusters(web("web", address1, address2))
	l.wantPublished("web", address2, health.Unknown)
	l.sets = []*sourceSet{localSet([]*sourceCluster{ignoringNew(web("web", address1, address2))})}
	l.reload(func(c *configv1.Config) {
		c.Sources = []*configv1.Source{{Name: "local", UpstreamHealth: configv1.UpstreamHealth_THEIRS}}
	})
	l.wantPublished("web", address2, health.Unknown)
	l.reload(func(c *configv1.Config) {
		c.Sources, c.Mode = nil, configv1.Mode_SHADOW
	})
	l.wantPublished("web", address2, health.Unknown)
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_PUBLISH })
	l.wantPublished("web", address2, health.Unhealthy)

	l.freeze(held)
	l.setClusters(ignoringNew(web("web", address1, address2, address3)), ignoringNew(web("new", address1)))
	l.pass(report)
	l.wantTold("web", address3, health.Unknown, health.Unhealthy, "frozen by alice: moving; it is new since then, and the cluster has ignore_new_hosts_until_first_hc")
	l.wantPublished("new", address1, health.Unknown) // data planes check it themselves
}

// TestARestartKeepsTheInitialHealth covers an endpoint without a verdict whose override has ended.
func TestARestartKeepsTheInitialHealth(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	clusters := []*sourceCluster{web("web", address1)}
	l.serve(clusters...)
	l.pass(settle)
	if _, err := l.override(log.Override{Scope: keyOf("web", address1), Status: drained, Reason: "x", Author: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.clear(keyOf("web", address1), false); err != nil {
		t.Fatal(err)
	}
	l.wantPublished("web", address1, down)
	l.restartAs(clusters)
	l.wantPublished("web", address1, down)
}
