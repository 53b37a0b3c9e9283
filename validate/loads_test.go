package validate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/config"
	"hdsd/validate"
)

// TestLoadReportsToHdsdAreWarnedOf: without a relay, nobody gets them.
func TestLoadReportsToHdsdAreWarnedOf(t *testing.T) {
	for more, want := range map[string]int{"  lrs_server: {self: {}}": 1, "": 0} {
		found := examineText(t, cluster("", more)).Problems
		if len(found) != want || want == 1 && (!found[0].Warning || !strings.Contains(found[0].Message, "lrs_server.self: ")) {
			t.Errorf("%q: %v", more, found)
		}
	}
}

// TestRaisedIntervalsAreWarnedOf where checkers probe less often than the source says.
func TestRaisedIntervalsAreWarnedOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hdsd.yaml")
	for interval, want := range map[string]int{"0.02s": 1, "0.1s": 0} {
		for name, text := range map[string]string{
			path: "sources: [{name: local, config_source: {path: clusters.yaml}}]",
			filepath.Join(filepath.Dir(path), "clusters.yaml"): "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: web\n  type: STATIC\n" +
				"  health_checks: [{timeout: 1s, interval: " + interval + ", unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {}}]\n" +
				"  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, problems := config.Load(path)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		found := validate.Examine(t.Context(), c, nil).Problems
		if len(found) != want || want == 1 && (!found[0].Warning || !strings.Contains(found[0].Message, "an interval of 20ms is shorter than checkers.probe_targets.min_interval: checkers probe every 100ms")) {
			t.Errorf("an interval of %s: %v", interval, found)
		}
	}
}

// TestTooManyProbesOfAnAddressAreReported by which cluster comes last.
func TestTooManyProbesOfAnAddressAreReported(t *testing.T) {
	folder := t.TempDir()
	clusters := "resources:\n"
	for i := range 4 {
		clusters += fmt.Sprintf("- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: web-%d\n  type: STATIC\n", i) +
			"  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {}}]\n" +
			fmt.Sprintf("  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: %d}}}}]}]}\n", 80+i)
	}
	for name, text := range map[string]string{
		"hdsd.yaml": "sources: [{name: local, config_source: {path: clusters.yaml}}]\ncheckers: {probe_targets: {max_probes_per_second: 9}}", "clusters.yaml": clusters,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, problems := config.Load(filepath.Join(folder, "hdsd.yaml"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	found := validate.Examine(t.Context(), c, nil).Problems
	if len(found) != 1 || found[0].Warning || found[0].Resource != "web-3" ||
		!strings.Contains(found[0].Message, "1 of its endpoints are not checked, 10.0.0.1:83 first: their addresses would get more than 9 probes a second") {
		t.Errorf("found %v", found)
	}
}

// TestBurstsAreWarnedOf where the source spreads the first checks of many endpoints over too little.
func TestBurstsAreWarnedOf(t *testing.T) {
	for _, test := range []struct {
		endpoints, want int
		jitter          string
	}{
		{3000, 1, "initial_jitter: 2s, "}, {3000, 1, "initial_jitter: 0s, "}, {3000, 0, ""}, {3000, 0, "initial_jitter: 10s, "}, {1000, 0, "initial_jitter: 2s, "},
	} {
		var all strings.Builder
		for i := range test.endpoints {
			fmt.Fprintf(&all, "    - endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 80}}}\n", i/250, 1+i%250)
		}
		found := examineText(t, "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: web\n  type: STATIC\n"+
			"  health_checks: [{timeout: 1s, interval: 10s, "+test.jitter+"unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {}}]\n"+
			"  load_assignment:\n    cluster_name: web\n    endpoints:\n    - lb_endpoints:\n"+strings.ReplaceAll(all.String(), "    - ", "      - ")).Problems
		if len(found) != test.want || test.want == 1 && (!found[0].Warning || !strings.Contains(found[0].Message, "health_checks.initial_jitter: ")) {
			t.Errorf("%d endpoints, %q: %v", test.endpoints, test.jitter, found)
		}
	}
}
