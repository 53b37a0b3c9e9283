package fleet

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// FastReports makes checkers report often and releases seats soon, so that tests need
// not wait.
const FastReports = "reporting: {interval: 0.25s}\nassignment: {redundancy: 3, reconnect_grace: 2s, settle: 2s}\n"

// Upstreams starts n HTTP upstreams, or those that options describe.
func Upstreams(t testing.TB, n int, options upstream.Options) []*upstream.Server {
	t.Helper()
	var all []*upstream.Server
	for range n {
		s, err := upstream.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		all = append(all, s)
	}
	return all
}

// Addresses returns the addresses of upstreams.
func Addresses(servers []*upstream.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// Checkers starts n real Envoys that check for the coordinator, in zones a, b and c in
// turn.
func Checkers(t testing.TB, c *Coordinator, n int) []*envoy.Process {
	t.Helper()
	var all []*envoy.Process
	for i := range n {
		all = append(all, envoy.StartChecker(t, envoy.Checker{
			ID: fmt.Sprintf("checker-%d", i+1), HDS: c.GRPC,
			Locality: health.Locality{Region: "eu", Zone: string(rune('a' + i%3))},
		}))
	}
	return all
}

// DataPlanes starts one Envoy with delta ADS and one with state of the world.
func DataPlanes(t testing.TB, c *Coordinator, clusters ...string) []*envoy.Process {
	t.Helper()
	return []*envoy.Process{
		envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-delta", ADS: c.GRPC, Delta: true, Clusters: clusters}),
		envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-sotw", ADS: c.GRPC, Clusters: clusters}),
	}
}

// AwaitHealth waits until an endpoint has a health at hdsd.
func (c *Coordinator) AwaitHealth(cluster, address, want string) {
	c.t.Helper()
	var last Endpoint
	if !envoy.Await(Patience, func() bool {
		last = c.Endpoints(cluster)[address]
		return last.Health == want
	}) {
		c.t.Fatalf("%s %s is %+v, want %s", cluster, address, last, want)
	}
}

// AwaitAllHealthy waits until all endpoints are healthy at hdsd and at every data
// plane.
func (c *Coordinator) AwaitAllHealthy(cluster string, addresses []string, planes []*envoy.Process) {
	c.t.Helper()
	for _, address := range addresses {
		c.AwaitHealth(cluster, address, "HEALTHY")
		for _, plane := range planes {
			AwaitPlane(c.t, plane, cluster, address, "HEALTHY")
		}
	}
}

// AwaitSynced waits until count checkers report by their latest specifiers.
func (c *Coordinator) AwaitSynced(count int) {
	c.t.Helper()
	envoy.Eventually(c.t, Patience, "all checkers to follow what they were sent", func() bool {
		synced := 0
		for _, k := range c.Checkers() {
			if k.Connected && k.Specifier == "SYNCED" {
				synced++
			}
		}
		return synced == count
	})
}

// AwaitPlane waits until an endpoint has a health at a data plane. (An Envoy shows
// TIMEOUT as UNHEALTHY.)
func AwaitPlane(t testing.TB, plane *envoy.Process, cluster, address, want string) {
	t.Helper()
	if want == "TIMEOUT" {
		want = "UNHEALTHY"
	}
	var last envoy.Host
	if !envoy.Await(Patience, func() bool {
		last = plane.Clusters(t)[cluster][address]
		return last.EDSHealth == want
	}) {
		t.Fatalf("%s holds %s %s to be %+v, want %s", plane.ID, cluster, address, last, want)
	}
}

var traffic = http.Client{Timeout: 5 * time.Second}

// Traffic sends n requests through a data plane, and returns how many were not answered
// with 200.
func Traffic(t testing.TB, plane *envoy.Process, n int) (failed int) {
	t.Helper()
	for range n {
		response, err := traffic.Get("http://" + plane.Listen + "/")
		if err != nil {
			failed++
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // only the status counts
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			failed++
		}
	}
	return failed
}
