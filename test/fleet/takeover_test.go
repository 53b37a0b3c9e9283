package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// releases are the Envoys that hold the promises of this file, by the kind of their stream.
var releases = []struct {
	version string
	delta   bool
}{{"1.36.4", true}, {"1.38.3", false}, {"1.40.0", true}, {"1.40.0", false}}

const noPanic = "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s}"

// proxied is a cluster with one more endpoint, to which data planes speak the PROXY protocol:
// checkers may not be sent it.
func proxied(check, address string, addresses []string) string {
	text := StaticCluster("web", check, append(addresses, address), noPanic,
		`transport_socket_matches: [{name: proxy, match: {proxy: "yes"}, transport_socket: {name: envoy.transport_sockets.upstream_proxy_protocol, `+
			`typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport, `+
			`transport_socket: {name: envoy.transport_sockets.raw_buffer, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}}}]`)
	plain := endpointYAML(address)
	return strings.Replace(text, plain, `{metadata: {filter_metadata: {envoy.transport_socket_match: {proxy: "yes"}}}, `+strings.TrimPrefix(plain, "{"), 1)
}

// planesOf starts an Envoy of each release, which takes clusters, too.
func planesOf(t *testing.T, c *Coordinator) (all []*envoy.Process) {
	t.Helper()
	for _, r := range releases {
		all = append(all, envoy.StartDataPlane(t, envoy.DataPlane{
			ID: fmt.Sprintf("dp-%s-%t", r.version, r.delta), Version: r.version, ADS: c.GRPC, CDS: true, Delta: r.delta, Route: "web",
		}))
	}
	return all
}

// under sends requests through data planes while something happens, and fails if one fails.
func under(t *testing.T, planes []*envoy.Process, what string, happens func()) {
	t.Helper()
	var over atomic.Bool
	var running sync.WaitGroup
	var sent, failed atomic.Int64
	for _, plane := range planes {
		running.Go(func() {
			lost, pace := 0, time.NewTicker(10*time.Millisecond)
			defer pace.Stop()
			for !over.Load() {
				sent.Add(1)
				lost += Traffic(t, plane, 1)
				<-pace.C
			}
			if failed.Add(int64(lost)); lost > 0 {
				t.Errorf("%s: %d requests through %s failed", what, lost, plane.ID)
			}
		})
	}
	happens()
	over.Store(true)
	running.Wait()
	t.Logf("%s: %d of %d requests failed", what, failed.Load(), sent.Load())
}

// probes is how often a data plane has checked the cluster's endpoints.
func probes(t *testing.T, plane *envoy.Process) uint64 {
	t.Helper()
	return plane.Stats(t, `^cluster\.web\.health_check\.attempt$`)["cluster.web.health_check.attempt"]
}

// found is how many of the endpoints that a data plane checks it finds alive.
func found(t *testing.T, plane *envoy.Process) uint64 {
	t.Helper()
	return plane.Stats(t, `^cluster\.web\.health_check\.healthy$`)["cluster.web.health_check.healthy"]
}

// has reports whether the cluster that a data plane uses has health checks.
func has(plane *envoy.Process) bool {
	dump, err := plane.Get("/config_dump?resource=dynamic_active_clusters")
	return err == nil && strings.Contains(string(dump), `"health_checks"`)
}

// warmed is how often a data plane has changed its clusters.
func warmed(t *testing.T, plane *envoy.Process) uint64 {
	t.Helper()
	return plane.Stats(t, `^cluster_manager\.cluster_modified$`)["cluster_manager.cluster_modified"]
}

// awaitOwn waits until each data plane's own check has found an endpoint dead and all others
// alive.
func awaitOwn(t *testing.T, planes []*envoy.Process, dead string, count int) {
	t.Helper()
	for _, plane := range planes {
		envoy.Eventually(t, Patience, plane.ID+" to find what is dead", func() bool {
			up := 0
			hosts := plane.Clusters(t)["web"]
			for _, host := range hosts {
				if !host.Failed() {
					up++
				}
			}
			return hosts[dead].FailedActive && up == count
		})
	}
}

// TestDataPlanesCheckWhatHDSDDoesNot: real Envoys go on checking an endpoint that checkers may
// not be sent, and only that once hdsd has verdicts on the others. No request is lost on the way.
func TestDataPlanesCheckWhatHDSDDoesNot(t *testing.T) {
	t.Parallel()
	ups, deaf := Upstreams(t, 3, upstream.Options{}), Upstreams(t, 1, upstream.Options{})
	addresses, dead := Addresses(ups), deaf[0].Addr()
	c := Prepare(t, ClusterFile(proxied(CheckHTTP, dead, addresses)), FastReports)
	c.Start()
	planes := planesOf(t, c)
	awaitOwn(t, planes, dead, 3)
	under(t, planes, "checkers come", func() {
		Checkers(t, c, 3)
		c.AwaitAllHealthy("web", addresses, nil)
		for _, plane := range planes {
			envoy.Eventually(t, Patience, plane.ID+" to check none of the three", func() bool { return has(plane) && found(t, plane) == 0 })
			if modified := warmed(t, plane); modified > 0 {
				t.Errorf("%s: the cluster was warmed %d times", plane.ID, modified)
			}
		}
	})
	set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", addresses[0], "UNHEALTHY")
		if hosts := plane.Clusters(t)["web"]; hosts[addresses[0]].FailedActive || !hosts[dead].FailedActive {
			t.Errorf("%s checks what hdsd does, or not what it does not: %+v", plane.ID, hosts)
		}
	}
	envoy.Eventually(t, Patience, "the failure to be recorded", func() bool {
		all := c.Transitions("web")
		return all[len(all)-1].To == "UNHEALTHY"
	})
	under(t, planes, "hdsd ends and comes back", func() {
		c.Kill()
		c.Start()
		c.AwaitSynced(3)
		c.AwaitHealth("web", addresses[0], "UNHEALTHY")
	})
	for _, plane := range planes {
		if modified, found := warmed(t, plane), found(t, plane); modified > 0 || found > 0 {
			t.Errorf("%s: after a restart the cluster was warmed %d times, and it checks %d endpoints of hdsd's", plane.ID, modified, found)
		}
	}
	set(t, ups[0], upstream.Healthy())
	c.AwaitAllHealthy("web", addresses, planes)
	c.SetClusters(ClusterFile(StaticCluster("web", CheckHTTP, addresses, noPanic)))
	for _, plane := range planes {
		envoy.Eventually(t, Patience, plane.ID+" to check nothing", func() bool { return !has(plane) })
	}
	under(t, planes, "the endpoint comes back", func() {
		c.SetClusters(ClusterFile(proxied(CheckHTTP, dead, addresses)))
		awaitOwn(t, planes, dead, 3)
		for _, plane := range planes {
			envoy.Eventually(t, Patience, plane.ID+" to check none of the others", func() bool { return has(plane) && found(t, plane) == 0 })
		}
	})
}

// TestAClusterThatNobodyCanCheckStaysWithItsDataPlanes until a checker has told of each of its
// endpoints. A dead one gets no request at any time.
func TestAClusterThatNobodyCanCheckStaysWithItsDataPlanes(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	addresses := Addresses(ups)
	set(t, ups[0], upstream.Status(http.StatusServiceUnavailable))
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses, noPanic)),
		FastReports+"policies: [{cluster_name_glob: web, checkers: {localities: [{region: eu, zone: b}]}}]\n")
	c.Start()
	planes := planesOf(t, c)
	Checkers(t, c, 1) // in zone a
	awaitOwn(t, planes, addresses[0], 2)
	var status struct {
		Attention []struct{ Kind, Cluster, Text, Command string }
	}
	envoy.Eventually(t, Patience, "hdsd to say that nobody can check the cluster", func() bool {
		c.ask("/v1/status", &status)
		return len(status.Attention) == 1 && status.Attention[0].Kind == "NOT_CHECKED" && status.Attention[0].Cluster == "web" &&
			strings.Contains(status.Attention[0].Text, "its policy")
	})
	c.Operate(strings.Fields(status.Attention[0].Command)[1:]...)
	under(t, planes, "a checker that can comes", func() {
		c.startChecker("checker-b", "b")
		c.AwaitHealth("web", addresses[0], "UNHEALTHY")
		for _, plane := range planes {
			envoy.Eventually(t, Patience, plane.ID+" to be relieved", func() bool { return !has(plane) })
			if hosts := plane.Clusters(t)["web"]; hosts[addresses[0]].EDSHealth != "UNHEALTHY" {
				t.Errorf("%s has %+v", plane.ID, hosts)
			}
			if modified := warmed(t, plane); modified != 1 {
				t.Errorf("%s: the cluster was warmed %d times", plane.ID, modified)
			}
		}
	})
	before := make([]uint64, len(planes))
	for i, plane := range planes {
		before[i] = probes(t, plane)
	}
	under(t, planes, "hdsd ends and comes back", func() {
		c.Kill()
		c.Start()
		c.AwaitSynced(2)
		c.AwaitHealth("web", addresses[0], "UNHEALTHY")
	})
	for i, plane := range planes {
		if modified, now := warmed(t, plane), probes(t, plane); modified != 1 || now != before[i] {
			t.Errorf("%s: after a restart the cluster was warmed %d times, and it sent %d probes", plane.ID, modified, now-before[i])
		}
	}
	under(t, planes, "nobody can check it any more", func() {
		c.reload("zone: b}", "zone: c}")
		for _, plane := range planes {
			envoy.Eventually(t, Patience, plane.ID+" to check again", func() bool { return has(plane) })
		}
	})
}
