package envoy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
)

// TestWhatEnvoyCannotBuild: what envoy/rules refuses, the newest release refuses, with SOAK also
// the oldest, and they take its like.
func TestWhatEnvoyCannotBuild(t *testing.T) {
	versions := []string{envoy.Version}
	if os.Getenv("SOAK") != "" {
		versions = append(versions, "1.36.4")
	}
	for _, r := range envoy.Refusals() {
		t.Run(r.Fields, func(t *testing.T) {
			for _, version := range versions {
				err := envoy.Validate(t, version, append([]byte("node: {id: a, cluster: b}\n"+
					"dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: '127.0.0.1:1', stat_prefix: x}}]}}\n"), r.YAML()...))
				if (err != nil) != (r.Field != "") {
					t.Errorf("%s: %v", version, err)
				}
			}
		})
	}
}

// TestWhichEndpointsEnvoyTakes: those that coordinator leaves out, no Envoy
// takes, and its like it does.
func TestWhichEndpointsEnvoyTakes(t *testing.T) {
	all, folder := envoy.Endpoints(), t.TempDir()
	var byEDS strings.Builder
	for i, e := range all {
		name := fmt.Sprintf("case_%d", i)
		static := "static_resources: {clusters: [{name: x, load_assignment: {" + e.Assignment("x") + "}}]}\n"
		if taken := envoy.Validate(t, envoy.Version, []byte(static)) == nil; taken != e.Static {
			t.Errorf("in a STATIC cluster, %s is taken: %t", e.Endpoint, taken)
		}
		path := filepath.Join(folder, name+".yaml")
		text := "resources: [{\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, " + e.Assignment(name) + "}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&byEDS, "  - {name: %s, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: %q}}}}\n", name, path)
	}
	p := envoy.Start(t, "", "endpoints", []byte("node: {id: endpoints, cluster: tests}\n"+
		"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstatic_resources:\n  clusters:\n"+byEDS.String()))
	for i, e := range all {
		name := fmt.Sprintf("cluster.case_%d.", i)
		var taken uint64
		envoy.Eventually(t, 10*time.Second, e.Endpoint+" to be taken or refused", func() bool {
			stats := p.Stats(t, `^cluster\.case_`+fmt.Sprint(i)+`\.update_(success|rejected|failure)$`)
			taken = stats[name+"update_success"]
			return taken+stats[name+"update_rejected"]+stats[name+"update_failure"] > 0
		})
		if (taken > 0) != e.EDS {
			t.Errorf("by EDS, %s is taken: %t", e.Endpoint, taken > 0)
		}
	}
}
