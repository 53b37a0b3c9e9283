package yamlpb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const quickSample = `- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: 'cluster-1'
  # a comment
  connect_timeout: 0.25s
  health_checks: [{timeout: 1s, interval: 5s, unhealthy_threshold: 2, http_health_check: {path: /healthz}, reuse_connection: false}]

  load_assignment:
    cluster_name: cluster-1
    endpoints:
    - lb_endpoints:
      - endpoint:
          address:
            socket_address: {address: "10.0.0.1", port_value: 8080}
      - endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 8080}}}
      locality: {}
    - priority: 1
      lb_endpoints: []
    policy:
      overprovisioning_factor: 140
`

func TestQuick(t *testing.T) {
	for text, want := range map[string]bool{
		quickSample:        true,
		"- a: 1":           true,
		"  - a: b\n":       true,
		"- a\n":            true,
		"- {a: b, c: d}\n": true,
		"- a: b\n    c\n":  false, // a text of two lines
		"- a: b c\n":       false,
		"- a:\n":           false,
		"- a: null\n":      false,
		"- a: 010\n":       false,
		"- a: b # c\n":     false,
		"- [a: b]\n":       false,
		"- {a: b,}\n":      false,
		"- {a:\n b,\n}\n":  true,
		"- {a: b\n c}\n":   false,
		"- 'it''s'\n":      false,
		"- \"a\\n\"\n":     false,
	} {
		if got := quick([]byte(text), 1) != nil; got != want {
			t.Errorf("quick takes %q: %t, want %t", text, got, want)
		}
	}
}

// What quick parses, the library parses into the same nodes.
func FuzzQuick(f *testing.F) {
	f.Add([]byte(quickSample))
	for _, text := range []string{
		"- a: 1s\n  b:\n  - c\n  - d: {e: [f, 'g', \"h\"]}\n", "- a:\n    b: 0\n   c: 1\n", "- - a\n", "- {a: {b: c}\n, d: e}", "- a: /b\n  c: 1-2\n",
		"-  a: b\n   c: d\n", "- a:\n  b:\n", "a: b\n- c\n", "- a: b\n c: d\n", "- True\n- yes\n- 2001-01-01\n- 1_000\n- 0x1\n- 1e3\n- .5\n",
		"0: {", "0: [a", "0: \"", "- \"\x7f\"", strings.Repeat("g", 1100) + ": 0\n", "{" + strings.Repeat("g", 1100) + ": 0}\n", // finds
		"- \"a\": b\n  'c': d\n", "- \"a\" : b\n", "- {\"a\":b}\n", "- {a: b }\n- [ ]\n", "--- a\n", "- a: b\n--- c\n", "- ? a\n", "- a: b\n...\n",
	} {
		f.Add([]byte(text))
	}
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !splittable(data) {
			return
		}
		got := quick(data, 1)
		if got == nil {
			return
		}
		want, _, err := parseYAML(&document{}, data)
		if err != nil {
			t.Fatalf("%q is taken, but the library says %v", data, err)
		}
		compareNodes(t, got, want)
	})
}

func compareNodes(t *testing.T, got, want *yaml.Node) {
	if got.Kind != want.Kind || got.Style != want.Style || got.Tag != want.Tag || got.Value != want.Value || got.Line != want.Line ||
		want.Anchor != "" || len(got.Content) != len(want.Content) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range got.Content {
		compareNodes(t, got.Content[i], want.Content[i])
	}
}
