package fleet

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestTwoEnvoysOfOneIDHideNoOutage has two Envoys with one node id check for
// one coordinator, and the upstream fail.
func TestTwoEnvoysOfOneIDHideNoOutage(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 1, upstream.Options{})
	address := ups[0].Addr()
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports)
	c.Start()
	checker := envoy.Checker{ID: "checker-1", HDS: c.GRPC, Locality: health.Locality{Region: "eu", Zone: "a"}}
	envoy.StartChecker(t, checker)
	c.AwaitHealth("web", address, "HEALTHY")
	envoy.StartChecker(t, checker)
	connected := strings.Count(c.Logs(), `"event":"checker_connected"`)
	set(t, ups[0], upstream.Status(503))
	c.AwaitHealth("web", address, "UNHEALTHY")
	const refusals = "hdsd_hds_refused_streams_total" // of HdsdCheckersShareANodeID
	before := c.Metric(refusals)
	envoy.Eventually(t, Patience, "the second one to try again and again", func() bool {
		if e := c.Endpoints("web")[address]; e.Health != "UNHEALTHY" {
			t.Fatalf("the outage is over: %+v", e)
		}
		return c.Metric(refusals) >= before+10
	})
	if n := strings.Count(c.Logs(), `"event":"checker_connected"`); n != connected {
		t.Errorf("checkers connect %d times more", n-connected)
	}
	if n := strings.Count(c.Logs(), `"event":"checker_id_contested"`); n != 1 {
		t.Errorf("the contest is logged %d times", n)
	}
}

// TestAKilledEnvoyBehindABalancerComesBack kills an Envoy whose connection a
// load balancer keeps open, and starts another in its place.
func TestAKilledEnvoyBehindABalancerComesBack(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 1, upstream.Options{})
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), "reporting: {interval: 1s}")
	c.Start()
	checker := envoy.Checker{ID: "checker-1", HDS: balancer(t, c.GRPC), Locality: health.Locality{Region: "eu", Zone: "a"}}
	connected := func() int { return strings.Count(c.Logs(), `"event":"checker_connected"`) }
	for round := range 3 {
		p := envoy.StartChecker(t, checker)
		started := time.Now()
		envoy.Eventually(t, Patience, "it to be admitted", func() bool { return connected() > round })
		t.Logf("round %d: admitted %s after its process runs", round, time.Since(started).Round(10*time.Millisecond))
		c.AwaitHealth("web", ups[0].Addr(), "HEALTHY")
		c.AwaitSynced(1)
		p.Kill()
	}
	if n := c.Metric("hdsd_hds_refused_streams_total"); n != 0 || strings.Contains(c.Logs(), "checker_id_contested") {
		t.Errorf("its return is taken for a second checker, %v times", n)
	}
}

// balancer passes connections on to a server, and keeps those to the server
// open, and answers for their clients, when the clients are gone.
func balancer(t *testing.T, server string) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, upstream)
			mu.Unlock()
			work.Go(func() { _, _ = io.Copy(upstream, client) }) // what follows says nothing
			work.Go(func() {
				_, _ = io.Copy(client, upstream)
				_, _ = io.Copy(io.Discard, upstream)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return ln.Addr().String()
}
