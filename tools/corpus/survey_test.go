package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real hdsd and a real Envoy look at one resource of each kind.
func TestAFolderIsSurveyed(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	hdsd := filepath.Join(t.TempDir(), "hdsd")
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-buildvcs=false", "-o", hdsd, "./cmd/hdsd")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as make build, which has compiled all of it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	envoy, err := findEnvoy(t.Context(), root, hdsd)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"bootstrap.yaml": `
static_resources:
  clusters:
  - {name: good, load_assignment: {cluster_name: good, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80}}}}]}]}}
  - {name: secure, transport_socket: {name: tls, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
      common_tls_context: {validation_context: {trusted_ca: {filename: /not/here.pem}}}}}}
  - {name: wrong, hosts: []}
`,
		"x.clusters.yaml":  "- {name: a, type: EDS, edsClusterConfig: {edsConfig: {ads: {}}}}\n- {name: b, clusterType: {name: unheard.of}}\n",
		"x.endpoints.yaml": "- {clusterName: a, endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: 80}}}}]}]}\n",
		"refused.yaml":     "static_resources: {clusters: [{name: a, hosts: []}]}",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := look(t.Context(), hdsd, envoy, []project{{name: "mine", folder: folder}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| mine |  | 4 | 3 | 1 | 6 | 1 | 5 | 1 | 0 | 0 | 2 | **0** | 0 | 0 | 2 | 2 |",
		"| 2 | hosts: ", // of both
		"| 1 | Didn't find a registered cluster factory",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no line %s:\n%s", want, page)
		}
	}
}
