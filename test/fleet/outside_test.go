package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

func TestADataPlaneTakesClustersToo(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	plain := Upstreams(t, 1, upstream.Options{})
	c := Prepare(t, ClusterFile(
		StaticCluster("web", CheckHTTP, Addresses(ups)),
		StaticCluster("plain", "", Addresses(plain)),
	), FastReports)
	c.Start()
	Checkers(t, c, 3)
	for _, delta := range []bool{true, false} {
		plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: fmt.Sprintf("dp-delta-%t", delta), ADS: c.GRPC, Delta: delta, CDS: true, Route: "web"})
		c.AwaitAllHealthy("web", Addresses(ups), []*envoy.Process{plane})
		if hosts := plane.Clusters(t)["plain"]; len(hosts) != 1 || hosts[plain[0].Addr()].Failed() {
			t.Errorf("%s: what is not checked came as %+v", plane.ID, hosts)
		}
		envoy.Eventually(t, Patience, plane.ID+" not to probe for itself", func() bool { return !has(plane) })
		if failed := Traffic(t, plane, 10); failed > 0 {
			t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
		}
	}
}

func TestClusterFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 4, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses[:3])), FastReports)
	c.Start()
	Checkers(t, c, 3)
	planes := DataPlanes(t, c, "web")
	c.AwaitAllHealthy("web", addresses[:3], planes)

	c.SetClusters(ClusterFile(StaticCluster("web", CheckHTTP, addresses[1:])))
	c.AwaitAllHealthy("web", addresses[1:], planes)
	for _, plane := range planes {
		envoy.Eventually(t, Patience, "the endpoint that is gone to leave "+plane.ID, func() bool {
			_, there := plane.Clusters(t)["web"][addresses[0]]
			return !there
		})
	}
	before := c.Endpoints("web")
	c.SetClusters("resources: [{")
	envoy.Eventually(t, Patience, "the bad file to be reported", func() bool { return strings.Contains(c.Logs(), `"event":"source_problem"`) })
	if after := c.Endpoints("web"); len(after) != len(before) {
		t.Errorf("a file that cannot be read changed the endpoints: %d, before %d", len(after), len(before))
	}
	for _, change := range c.Transitions("web") {
		moves := change.From == change.To // it is in another zone now
		if change.From != "UNKNOWN" && !moves && change.Reason != "in no source any more" {
			t.Errorf("a change that no upstream made: %+v", change)
		}
	}
}

func TestBuiltInCheckers(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	echo := Upstreams(t, 3, upstream.Options{Protocol: upstream.TCP})
	c := Prepare(t, ClusterFile(
		StaticCluster("web", CheckHTTP, Addresses(ups)), StaticCluster("echo", CheckTCP, Addresses(echo)),
	), FastReports)
	c.Start()
	for i := range 3 {
		c.startChecker(fmt.Sprintf("checker-%d", i+1), string(rune('a'+i)))
	}
	c.AwaitAllHealthy("web", Addresses(ups), nil)
	c.AwaitAllHealthy("echo", Addresses(echo), nil)
	set(t, ups[1], upstream.Hang())
	set(t, echo[1], upstream.Refuse())
	c.AwaitHealth("web", ups[1].Addr(), "TIMEOUT")
	c.AwaitHealth("echo", echo[1].Addr(), "UNHEALTHY")
	set(t, ups[1], upstream.Healthy())
	c.AwaitHealth("web", ups[1].Addr(), "HEALTHY")
	c.AwaitSynced(3)
	for id, k := range c.Checkers() {
		if !strings.HasPrefix(k.Version, "hdsd/") {
			t.Errorf("checker %s: %+v", id, k)
		}
	}
}

// startChecker runs hdsd check until the test ends.
func (c *Coordinator) startChecker(id, zone string) {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), c.Binary, "check", "--server", c.GRPC, "--id", id, "--region", "eu", "--zone", zone)
	command.Stdout, command.Stderr = &c.logs, &c.logs
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := command.Wait(); err != nil && command.ProcessState.ExitCode() != 0 {
			c.t.Errorf("hdsd check: %v", err)
		}
	})
}

// TestTCPPayloads has real Envoys send a payload that the source gave in
// binary, which Envoy 1.40 does not take that way.
func TestTCPPayloads(t *testing.T) {
	t.Parallel()
	echo := Upstreams(t, 2, upstream.Options{Protocol: upstream.TCP})
	check := `{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {send: {binary: aGVsbG8=}, receive: [{text: 68656c6c6f}]}}`
	c := Prepare(t, ClusterFile(StaticCluster("echo", check, Addresses(echo))), FastReports)
	c.Start()
	Checkers(t, c, 3)
	c.AwaitAllHealthy("echo", Addresses(echo), nil)
	set(t, echo[0], upstream.Raw([]byte("bye")))
	c.AwaitHealth("echo", echo[0].Addr(), "UNHEALTHY")
}

func TestExampleBootstrapsAreGood(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"checker.yaml", "data-plane.yaml"} {
		out, err := exec.Command(envoy.Binary(t), "--mode", "validate", "-c", filepath.Join("..", "..", "examples", name)).CombinedOutput()
		if err != nil {
			t.Errorf("examples/%s: %v\n%s", name, err, out)
		}
	}
}

// TestWhatEnvoysRefuseIsNotPublished has bad resources in a file with good ones:
// an Envoy that is sent one of them refuses all that come along.
func TestWhatEnvoysRefuseIsNotPublished(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	addresses := Addresses(ups)
	noTimeout := strings.Replace(CheckHTTP, "timeout: 1s", "timeout: 0s", 1)
	farAway := "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n  cluster_name: far\n" +
		"  endpoints: [{priority: 200, lb_endpoints: [" + endpointYAML(addresses[0]) + "]}]\n"
	file := func(check string) string {
		return ClusterFile(
			StaticCluster("web", check, addresses),
			StaticCluster("mixed", CheckHTTP, []string{addresses[0], "db.internal:5432", "127.0.0.1:99999"}),
			StaticCluster("bad", noTimeout, addresses), farAway)
	}
	c := Prepare(t, file(CheckHTTP), FastReports)
	c.Start()
	Checkers(t, c, 3)
	var planes []*envoy.Process
	for _, delta := range []bool{true, false} {
		planes = append(planes, envoy.StartDataPlane(t, envoy.DataPlane{ID: fmt.Sprintf("dp-delta-%t", delta), ADS: c.GRPC, Delta: delta, CDS: true, Route: "web"}))
	}
	c.AwaitAllHealthy("web", addresses, planes)
	c.AwaitAllHealthy("mixed", addresses[:1], planes)
	set(t, ups[1], upstream.Status(500))
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", ups[1].Addr(), "UNHEALTHY")
	}

	// The same mistake in a file that is read again: what was good goes on.
	c.SetClusters(file(noTimeout))
	envoy.Eventually(t, Patience, "the mistake to be shown", func() bool { return c.Clusters()["web"].RejectedReason != "" })
	set(t, ups[2], upstream.Status(500))
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", ups[2].Addr(), "UNHEALTHY")
		if host := plane.Clusters(t)["web"][ups[1].Addr()]; !host.Failed() {
			t.Errorf("%s sends traffic to what is down: %+v", plane.ID, host)
		}
		for name, value := range plane.Stats(t, `update_rejected`) {
			if value > 0 {
				t.Errorf("%s: %s is %d", plane.ID, name, value)
			}
		}
	}
	if q := c.Clusters()["bad"].Quarantined; len(q) != 1 {
		t.Errorf("bad's quarantine: %+v", q)
	}
}
