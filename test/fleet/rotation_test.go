package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

func TestAFailingEndpointLeavesRotationAndComesBack(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 6, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Start()
	Checkers(t, c, 3)
	planes := DataPlanes(t, c, "web")
	c.AwaitAllHealthy("web", addresses, planes)

	failures := []struct {
		name      string
		behaviour upstream.Behaviour
		want      string
	}{
		{"answers 500", upstream.Status(500), "UNHEALTHY"},
		{"hangs", upstream.Hang(), "TIMEOUT"},
		{"refuses", upstream.Refuse(), "UNHEALTHY"},
		{"slows down", upstream.Slow(2 * time.Second), "TIMEOUT"},
	}
	for i, failure := range failures {
		t.Run(failure.name, func(t *testing.T) {
			victim := ups[i]
			set(t, victim, failure.behaviour)
			c.AwaitHealth("web", victim.Addr(), failure.want)
			for _, plane := range planes {
				AwaitPlane(t, plane, "web", victim.Addr(), failure.want)
				if host := plane.Clusters(t)["web"][victim.Addr()]; !host.Failed() {
					t.Errorf("%s still sends traffic: %+v", plane.ID, host)
				}
				if failed := Traffic(t, plane, 30); failed > 0 {
					t.Errorf("%d of 30 requests through %s failed", failed, plane.ID)
				}
			}
			// A checker that finds it down when another one finds it well again makes a failure of its own.
			envoy.Eventually(t, Patience, "each checker to find it down", func() bool {
				return len(voters(c.Endpoints("web")[victim.Addr()], failure.want)) == 3
			})
			set(t, victim, upstream.Healthy())
			c.AwaitAllHealthy("web", []string{victim.Addr()}, planes)
			checkHistory(t, c, victim.Addr(), failure.want)
		})
	}
	if others := c.Endpoints("web"); others[addresses[4]].Health != "HEALTHY" || others[addresses[5]].Health != "HEALTHY" {
		t.Errorf("endpoints that never failed: %+v %+v", others[addresses[4]], others[addresses[5]])
	}
}

func set(t testing.TB, s *upstream.Server, b upstream.Behaviour) {
	t.Helper()
	if err := s.Set(b); err != nil {
		t.Fatal(err)
	}
}

// checkHistory wants an endpoint's history to be: known, failed, well again.
func checkHistory(t *testing.T, c *Coordinator, address, failure string) {
	t.Helper()
	var path []string
	envoy.Eventually(t, Patience, "the history to be committed", func() bool {
		path = []string{"UNKNOWN"}
		for _, change := range c.Transitions("web") {
			if change.Address != address {
				continue
			}
			if change.From != path[len(path)-1] {
				t.Errorf("history of %s is broken: %s, then %+v", address, path, change)
			}
			if change.Reason == "" || len(change.Observations) == 0 {
				t.Errorf("a change without reason or votes: %+v", change)
			}
			path = append(path, change.To)
		}
		return path[len(path)-1] == "HEALTHY" && len(path) >= 4
	})
	if got, want := strings.Join(path, " "), fmt.Sprintf("UNKNOWN HEALTHY %s HEALTHY", failure); got != want {
		t.Errorf("history of %s: %s, want %s", address, got, want)
	}
}

func TestTLSAndTCPUpstreams(t *testing.T) {
	t.Parallel()
	// One server with one certificate stands for both endpoints.
	secure := Upstreams(t, 1, upstream.Options{Protocol: upstream.HTTPS, Address: "0.0.0.0:0"})[0]
	good, bad := fmt.Sprintf("127.0.0.1:%d", secure.Port()), fmt.Sprintf("127.0.0.2:%d", secure.Port())
	plain := Upstreams(t, 2, upstream.Options{Protocol: upstream.TCP})
	ca := strings.ReplaceAll(strings.TrimSpace(string(secure.CA())), "\n", `\n`)
	socket := `transport_socket: {name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, ` +
		`common_tls_context: {validation_context: {trusted_ca: {inline_string: "` + ca + `\n"}}}}}`
	c := Prepare(t, ClusterFile(
		StaticCluster("secure", CheckHTTP, []string{good, bad}, socket),
		StaticCluster("plain", CheckTCP, Addresses(plain)),
	), FastReports)
	c.Start()
	Checkers(t, c, 3)
	c.AwaitAllHealthy("secure", []string{good, bad}, nil)
	c.AwaitAllHealthy("plain", Addresses(plain), nil)
	secure.SetAt("127.0.0.2", upstream.Status(503))
	set(t, plain[1], upstream.Refuse())
	c.AwaitHealth("secure", bad, "UNHEALTHY")
	c.AwaitHealth("plain", plain[1].Addr(), "UNHEALTHY")
	if e := c.Endpoints("secure")[good]; e.Health != "HEALTHY" {
		t.Errorf("its neighbour: %+v", e)
	}
}

func TestAClusterThatCheckersWouldRejectIsExcludedAlone(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 2, upstream.Options{})
	bad := StaticCluster("bad", `{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /, method: CONNECT}}`, []string{"127.0.0.1:9"})
	c := Prepare(t, ClusterFile(
		StaticCluster("web", CheckHTTP, append(Addresses(ups), "db.internal:5432")), bad,
	), FastReports)
	c.Start()
	checkers := Checkers(t, c, 3)
	c.AwaitAllHealthy("web", Addresses(ups), nil)
	clusters := c.Clusters()
	if q := clusters["web"].Quarantined; len(q) != 1 || q[0].Address != "db.internal:5432" || !strings.Contains(q[0].Reason, "IP address") {
		t.Errorf("web's quarantine: %+v", q)
	}
	if q := clusters["bad"].Quarantined; len(q) != 1 || q[0].Address != "" || !strings.Contains(q[0].Reason, "CONNECT") {
		t.Errorf("bad's quarantine: %+v", q)
	}
	set(t, ups[0], upstream.Status(500))
	c.AwaitHealth("web", ups[0].Addr(), "UNHEALTHY")
	for _, checker := range checkers {
		if !checker.Alive() {
			t.Errorf("%s died", checker.ID)
		}
	}
	if n := strings.Count(c.Logs(), `"event":"quarantined"`); n != 2 {
		t.Errorf("%d log lines about quarantine, want 2", n)
	}
}
