package fleet

import (
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestNamesOfADnsCluster: Envoys take the cluster by EDS, with hdsd's verdicts on what the name
// stands for, and check nothing themselves.
func TestNamesOfADnsCluster(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 2, upstream.Options{})
	const dns = `cluster_type: {name: envoy.clusters.dns, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster, dns_lookup_family: V4_ONLY}}`
	cluster := strings.Replace(StaticCluster("web", CheckHTTP, Addresses(ups)), "type: STATIC", dns, 1)
	c := Prepare(t, ClusterFile(strings.ReplaceAll(cluster, "127.0.0.1", "localhost")), FastReports)
	c.Configure("name: local,", "name: local, resolve_names: true,")
	c.Start()
	Checkers(t, c, 3)
	var planes []*envoy.Process
	for _, version := range []string{"1.36.4", "1.40.0"} {
		planes = append(planes, envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-" + version, Version: version, ADS: c.GRPC, CDS: true, Route: "web"}))
	}
	c.AwaitAllHealthy("web", Addresses(ups), planes)
	set(t, ups[1], upstream.Status(503))
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", ups[1].Addr(), "UNHEALTHY")
		if failed := Traffic(t, plane, 10); failed > 0 {
			t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
		}
		checksNothing(t, plane)
	}
}

// TestClustersThatNeedNoDNSTakeVerdicts: an Envoy that takes them by CDS would
// check their addresses for itself, and take what it found for their health.
func TestClustersThatNeedNoDNSTakeVerdicts(t *testing.T) {
	t.Parallel()
	strict, logical := Upstreams(t, 3, upstream.Options{}), Upstreams(t, 1, upstream.Options{})
	c := Prepare(t, ClusterFile(
		strings.Replace(StaticCluster("strict", CheckHTTP, Addresses(strict), "dns_refresh_rate: 5s"), "STATIC", "STRICT_DNS", 1),
		strings.Replace(StaticCluster("logical", CheckHTTP, Addresses(logical), "dns_lookup_family: V4_ONLY"), "STATIC", "LOGICAL_DNS", 1),
	), FastReports)
	c.Start()
	Checkers(t, c, 3)
	var planes []*envoy.Process
	for _, version := range []string{"1.36.4", "1.40.0"} {
		planes = append(planes, envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-" + version, Version: version, ADS: c.GRPC, CDS: true, Route: "strict"}))
	}
	c.AwaitAllHealthy("strict", Addresses(strict), planes)
	c.AwaitAllHealthy("logical", Addresses(logical), planes)
	set(t, strict[1], upstream.Status(503))
	set(t, logical[0], upstream.Status(503))
	for _, plane := range planes {
		AwaitPlane(t, plane, "strict", strict[1].Addr(), "UNHEALTHY")
		AwaitPlane(t, plane, "logical", logical[0].Addr(), "UNHEALTHY")
		if failed := Traffic(t, plane, 10); failed > 0 {
			t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
		}
		checksNothing(t, plane)
	}
}

// checksNothing waits until a data plane leaves checks to others. It has refused no cluster.
func checksNothing(t *testing.T, plane *envoy.Process) {
	t.Helper()
	envoy.Eventually(t, Patience, plane.ID+" to check nothing", func() bool { return !has(plane) })
	for name, count := range plane.Stats(t, `^cluster_manager\.cds\.update_rejected$`) {
		if count > 0 {
			t.Errorf("%s: %s is %d", plane.ID, name, count)
		}
	}
}
