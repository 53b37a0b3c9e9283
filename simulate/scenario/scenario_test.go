package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/assign"
	"hdsd/config"
	"hdsd/health"
	"hdsd/simulate"
	"hdsd/simulate/scenario"
)

const configText = `
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
default_health_checks:
- cluster_name_glob: "old*"
  health_checks: [{timeout: 1s, interval: 4s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
checkers: {node_weights: true}
assignment: {redundancy: 2, checkers: [{node_id_glob: "big-*", weight: 3, max_checks_per_second: 7}]}
policies:
- {cluster_name_glob: "pay*", redundancy: 5, zones: OWN_FIRST, regions: SPREAD, checkers: {metadata: {vpc: blue}}}
`

const payCheck = "{timeout: 1s, interval: 2s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {}}"

// readScenario reads a configuration with the clusters given and a fleet.
func readScenario(t *testing.T, resources, fleet string, checkers ...health.Checker) scenario.Scenario {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hdsd.yaml": configText, "clusters.yaml": "resources: " + resources, "fleet.yaml": "checkers: [{id: c, version: hdsd}]\n" + fleet,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	f, more := config.LoadFleet(filepath.Join(dir, "fleet.yaml"))
	if problems = append(problems, more...); len(problems) > 0 {
		t.Fatal(problems)
	}
	return scenario.Read(c, f, checkers)
}

func TestFleetClusterEqualsSourceCluster(t *testing.T) {
	real := readScenario(t, `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pay
  connect_timeout: 1s
  health_checks: [`+payCheck+`]
  load_assignment:
    cluster_name: pay
    endpoints:
    - locality: {region: eu, zone: a}
      lb_endpoints:
      - endpoint: {address: {socket_address: {address: 10.0.0.0, port_value: 80}}}
      - endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}
    - locality: {region: eu, zone: b}
      lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]
`, "")
	invented := readScenario(t, "[]", "clusters: [{name: pay, endpoints: 3, localities: [{region: eu, zone: a}, {region: eu, zone: b}], health_checks: ["+payCheck+"]}]")
	if len(real.Problems)+len(invented.Problems)+real.Ignored+invented.Ignored > 0 || len(real.Input.Clusters) != 1 {
		t.Fatalf("%+v\n%+v", real, invented)
	}
	if diff := cmp.Diff(real.Input.Clusters, invented.Input.Clusters); diff != "" {
		t.Errorf("-real +invented:\n%s", diff)
	}
	if k := invented.Input.Clusters[0]; k.Redundancy != 5 || k.Rate != 500 || k.Reach == nil || len(k.Needs) != 1 || k.Zones != assign.OwnFirst || k.Regions != assign.Spread || len(k.Places) != 2 {
		t.Errorf("got %+v", k)
	}
}

func TestFleetClustersHaveDistinctEndpoints(t *testing.T) {
	in := readScenario(t, "[]", "clusters: [{name: old, count: 3, endpoints: 400}, {name: bare, endpoints: 7, localities: [{zone: a}, {zone: b}]}]").Input
	seen := map[health.Hash]bool{}
	for _, k := range in.Clusters[:3] {
		if len(k.Places) != 1 || len(k.Places[0].Hashes) != 400 || k.Rate != 250 || k.Redundancy != 2 || len(k.Aside) > 0 {
			t.Errorf("got %s with %d places", k.Name, len(k.Places))
		}
		for _, place := range k.Places {
			for _, hash := range place.Hashes {
				seen[hash] = true
			}
		}
	}
	if len(seen) != 1200 {
		t.Errorf("%d different endpoints, want 1200", len(seen))
	}
	sum := 0
	for _, aside := range in.Clusters[3].Aside {
		if sum += aside.Endpoints; !strings.Contains(aside.Reason, "no health checks") {
			t.Errorf("not checked, as %s", aside.Reason)
		}
	}
	if k := in.Clusters[3]; k.Name != "bare" || sum != 7 || len(k.Places) > 0 {
		t.Errorf("got %+v", k)
	}
}

func TestUncheckedEndpointsHaveReasons(t *testing.T) {
	got := readScenario(t, `
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: old
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: db.internal, port_value: 80}}}
    - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}
    - {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}, health_check_config: {disable_active_health_check: true}}}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: api
  conect_timeout: 1s
`, "")
	if len(got.Problems) > 0 || got.Ignored != 1 || len(got.Input.Clusters) != 2 {
		t.Fatalf("got %+v", got)
	}
	api, old := got.Input.Clusters[0], got.Input.Clusters[1]
	if len(api.Aside) != 1 || api.Aside[0].Endpoints != 0 || !strings.Contains(api.Aside[0].Reason, "conect_timeout") || len(api.Places) > 0 {
		t.Errorf("got %+v", api)
	}
	if len(old.Places) != 1 || len(old.Places[0].Hashes) != 1 || len(old.Aside) != 2 || old.Aside[0].Endpoints+old.Aside[1].Endpoints != 2 {
		t.Errorf("got %+v", old)
	}
}

func TestFleetClusterMayNotHaveTheNameOfASourceCluster(t *testing.T) {
	got := readScenario(t, `
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: web-2
`, "\n\nclusters:\n- endpoints: 1\n  name: web\n  count: 3")
	if len(got.Problems) != 1 || !strings.HasSuffix(got.Problems[0].String(), `fleet.yaml:6: clusters[0].name: gives "web-2", the name of a cluster in a source: choose another`) {
		t.Errorf("got %v", got.Problems)
	}
	if got := readScenario(t, "[", ""); len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), "clusters.yaml:1") {
		t.Errorf("a source that cannot be read: %v", got.Problems)
	}
}

func TestCheckersAndDataPlanes(t *testing.T) {
	in := readScenario(t, "[]", `data_planes: [{count: 2}, {count: 3, cluster_name_globs: ["web-*", db]}]`, health.Checker{ID: "big-1"}, health.Checker{ID: "c", Weight: 9}, health.Checker{ID: "d"}).Input
	want := []health.Checker{{ID: "big-1", Weight: 3, MaxChecksPerSecond: 7}, {ID: "c", Weight: 4}, {ID: "d", Weight: 1}}
	if diff := cmp.Diff(want, in.Checkers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, want := range map[string]int{"web-1": 5, "web": 2, "db": 5} {
		got := 0
		for _, d := range in.DataPlanes {
			if d.Uses(name) {
				got += d.Count
			}
		}
		if got != want {
			t.Errorf("%d data planes have %s, want %d", got, name, want)
		}
	}
	if diff := cmp.Diff([]simulate.Cluster(nil), in.Clusters); diff != "" {
		t.Errorf("clusters: %s", diff)
	}
}
