package file_test

import (
	"path/filepath"
	"testing"

	"hdsd/source/file"
)

// TestExamineGoesOn: of what is wrong, and of files of which nothing is used,
// the rest is there to be looked at, with the lines of endpoints.
func TestExamineGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
  conect_timeout: 1s
  health_checks: [{timeout: 0s, interval: 1, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
  load_assignment:
    cluster_name: a
    endpoints:
    - lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]
    - lb_endpoints:
      - {}
      - endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}
`)
	if _, err := file.New(file.Options{Path: path}).Load(); err == nil {
		t.Error("a file of which nothing can be used was loaded")
	}
	set, places := file.Examine(file.Options{Name: "local", Path: path})
	var fields []string
	for _, p := range set.Problems {
		fields = append(fields, p.Field)
	}
	if len(fields) != 4 || fields[0] != "" || fields[1] != "resources[0].conect_timeout" ||
		fields[2] != "resources[0].health_checks[0].interval" || fields[3] != "resources[0].health_checks[0].timeout" {
		t.Errorf("found %v", set.Problems)
	}
	if len(set.Clusters) != 1 || set.Clusters[0].Rejected == "" || len(set.Clusters[0].HealthChecks) != 1 {
		t.Fatalf("got %v", set.Clusters)
	}
	place := places[set.Clusters[0].Assignment]
	for at, want := range map[[2]int]int{{0, 0}: 9, {1, 0}: 11, {1, 1}: 12, {1, 2}: 0, {2, 0}: 0} {
		if got := place.Line(at[0], at[1]); got != want || place.File != path {
			t.Errorf("endpoint %v is at %s:%d, want line %d", at, place.File, got, want)
		}
	}
}
