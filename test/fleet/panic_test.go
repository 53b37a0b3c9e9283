package fleet

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestThePanicThreshold holds what docs/guides/panic-threshold.md says: below the
// threshold of the source's cluster, a data plane disregards the health it has
// from hdsd, which changes neither.
func TestThePanicThreshold(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 4, upstream.Options{})
	addresses := Addresses(ups)
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, addresses)), FastReports)
	c.Start()
	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, Delta: true, CDS: true, Route: "web"})
	publish := func(healths ...string) {
		t.Helper()
		for i, health := range healths {
			body := fmt.Sprintf(`{"cluster": "web", "address": %q, "health": %q, "reason": "panic"}`, addresses[i], health)
			answer, err := http.Post("http://"+c.HTTP+"/v1/overrides", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("overriding %s: %s", addresses[i], answer.Status)
			}
		}
		for i, health := range healths {
			AwaitPlane(t, plane, "web", addresses[i], health)
		}
	}
	panics := func() (failed int, panicked bool) {
		t.Helper()
		const counter = "cluster.web.lb_healthy_panic"
		before := plane.Stats(t, `^cluster\.web\.lb_healthy_panic$`)[counter]
		failed = Traffic(t, plane, 8)
		return failed, plane.Stats(t, `^cluster\.web\.lb_healthy_panic$`)[counter] > before
	}

	for _, test := range []struct {
		healths []string
		panics  bool
	}{
		{[]string{"UNHEALTHY", "UNHEALTHY", "HEALTHY", "HEALTHY"}, false},
		{[]string{"UNHEALTHY", "UNHEALTHY", "UNHEALTHY", "HEALTHY"}, true},
		{[]string{"UNHEALTHY", "UNHEALTHY", "UNHEALTHY", "UNHEALTHY"}, true},
		{[]string{"DRAINING", "DRAINING", "DRAINING", "HEALTHY"}, false},
		{[]string{"DRAINING", "DRAINING", "DRAINING", "UNHEALTHY"}, true},
	} {
		publish(test.healths...)
		if failed, panicked := panics(); failed > 0 || panicked != test.panics {
			t.Errorf("%v: panic %t, want %t; %d requests failed", test.healths, panicked, test.panics, failed)
		}
	}

	c.SetClusters(ClusterFile(StaticCluster("web", CheckHTTP, addresses, "common_lb_config: {healthy_panic_threshold: {value: 0}}")))
	envoy.Eventually(t, Patience, "the threshold to reach the data plane", func() bool {
		return bytes.Contains(plane.ConfigDump(t), []byte("healthy_panic_threshold"))
	})
	publish("UNHEALTHY", "UNHEALTHY", "UNHEALTHY", "HEALTHY")
	if failed, panicked := panics(); failed > 0 || panicked {
		t.Errorf("one is healthy, threshold 0: panic %t, %d requests failed", panicked, failed)
	}
	publish("UNHEALTHY", "UNHEALTHY", "UNHEALTHY", "UNHEALTHY")
	if failed, panicked := panics(); failed != 8 || panicked {
		t.Errorf("none is healthy, threshold 0: panic %t, %d of 8 requests failed", panicked, failed)
	}
}
