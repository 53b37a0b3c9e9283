package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder holds the files given.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestValidateTheExample(t *testing.T) {
	status, out, errors := hdsd(t, "validate", "-c", "../../examples/hdsd.yaml")
	if status != exitDone || errors != "" || !strings.Contains(out, "all good") {
		t.Errorf("exit status %d\n%s%s", status, out, errors)
	}
}

const badClusters = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
  load_assignment:
    cluster_name: web
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: db.internal, port_value: 80}}}}]}]
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: api
  conect_timeout: 1s
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: cache
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {}}]
  load_assignment:
    cluster_name: cache
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
`

const goodConfig = `sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
`

func TestValidateFindsEveryProblemOfTheClusters(t *testing.T) {
	dir := folder(t, map[string]string{"hdsd.yaml": goodConfig, "clusters.yaml": badClusters})
	status, out, errors := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml"))
	out = strings.ReplaceAll(out, dir+string(filepath.Separator), "")
	if status != exitFailed || errors != "" {
		t.Errorf("exit status %d, %s", status, errors)
	}
	var places []string
	for line := range strings.Lines(out) {
		place, _, _ := strings.Cut(line, ": ")
		places = append(places, place)
	}
	if want := []string{"clusters.yaml:9", "clusters.yaml:12"}; !slices.Equal(places, want) {
		t.Errorf("says in this order, want %v:\n%s", want, out)
	}
	for _, want := range []string{"endpoint db.internal:80: ", "conect_timeout: "} {
		if !strings.Contains(out, want) {
			t.Errorf("says nothing like %q:\n%s", want, out)
		}
	}
}

const badConfig = `grpc: {address: "10.0.0.1:18000"}
reporting: {interval: -1s}
sorces: []
verdict: {rule: SOMETIMES}
`

func TestBadConfigurationIsReported(t *testing.T) {
	dir := folder(t, map[string]string{"hdsd.yaml": badConfig})
	for _, command := range []string{"validate", "serve"} {
		status, out, errors := hdsd(t, command, "-c", filepath.Join(dir, "hdsd.yaml"))
		if status != exitFailed {
			t.Errorf("%s: exit status %d", command, status)
		}
		for _, line := range []string{"hdsd.yaml:1: ", "hdsd.yaml:2: ", "hdsd.yaml:3: ", "hdsd.yaml:4: "} {
			if !strings.Contains(out+errors, line) {
				t.Errorf("%s says nothing of %s:\n%s%s", command, line, out, errors)
			}
		}
	}
}

func TestServeSaysWhatIsWrongWithItsClusters(t *testing.T) {
	dir := folder(t, map[string]string{
		"hdsd.yaml":     goodConfig + "grpc: {address: \"127.0.0.1:0\"}\nhttp: {address: \"127.0.0.1:0\"}\n",
		"clusters.yaml": "resources: [",
	})
	status, _, errors := hdsd(t, "serve", "-c", filepath.Join(dir, "hdsd.yaml"))
	if status != exitFailed || !strings.Contains(errors, "clusters.yaml:1") {
		t.Errorf("exit status %d, %s", status, errors)
	}
}
