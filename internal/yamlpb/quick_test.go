package yamlpb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/envoy"

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
		if got := quick([]byte(text), 1, nil) != nil; got != want {
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
		got := quick(data, 1, nil)
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

// plainList is a list of endpoints, each written in a way of its own, or as the one before.
const plainList = `- name: a
  endpoints:
  - lb_endpoints:
    - endpoint:
        address:
          socket_address:
            address: 10.0.0.1
            port_value: 8080
    - endpoint:
        address:
          socket_address:
            address: web.example
            port_value: 1

    # a comment
    - endpoint: {address: {socket_address: {address: "::1", port_value: 80}}}
    - endpoint: {address: {socket_address: {address: "10.0.0.2", port_value: 81}}}
    -   endpoint:
          address: {socket_address: {"address": '10.0.0.3', "port_value": 82}}
  - priority: 1
    lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.4, port_value: 80}}}}, {endpoint: {address: {socket_address: {address: 10.0.0.5, port_value: 0}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.6, port_value: 65535}}}}]
  - lb_endpoints: []
  last: 1
`

// A list of plain endpoints is packed, however they are written.
func TestPack(t *testing.T) {
	const first = "- lb_endpoints:\n  - endpoint:\n      address:\n        socket_address:\n          address: 10.0.0.1\n          port_value: 80\n"
	const element = "{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}"
	for text, want := range map[string]bool{
		plainList: true,
		first:     true,
		first + strings.Replace(first, "- lb_endpoints:\n", "", 1):                                                true,
		first + "  - " + element + "\n":                                                                           true,
		first + "  - health_status: UP\n":                                                                         false,
		first + strings.Replace(strings.Replace(first, "- lb_endpoints:\n", "", 1), "10.0.0.1", "0x1", 1):         false,
		first + strings.Replace(strings.Replace(first, "- lb_endpoints:\n", "", 1), "value: 80", "value: 99s", 1): false,
		first + strings.Replace(first, "- lb_endpoints:\n", "", 1) + "    health_status: UP\n":                    false,
		"- lb_endpoints: [" + element + ", {}]\n":                                                                 false,
		"- lb_endpoints: [[" + element + "]]\n":                                                                   false,
		"- lb_endpoints: [a]\n":                                                                                   false,
		"- lb_endpoints: {a: [" + element + ", b]}\n":                                                             true, // is no list
	} {
		root := quick([]byte(text), 1, &packer{})
		if got := root != nil; got != want {
			t.Errorf("packs the endpoints of\n%s: %t, want %t", text, got, want)
		}
	}
}

// What is packed is what would be parsed.
func FuzzPack(f *testing.F) {
	f.Add([]byte(plainList))
	f.Add([]byte(strings.ReplaceAll(plainList, "lb_endpoints", "others")))
	f.Add([]byte(strings.Replace(plainList, "    -   endpoint:\n          address: {", "    -     endpoint:\n            address: {", 1)))
	const inBlock = "- lb_endpoints:\n  - endpoint: {address: {socket_address: {address: a, port_value: 1"
	f.Add([]byte(inBlock + "}}}\n" + strings.TrimPrefix(inBlock, "- lb_endpoints:\n"))) // finds
	for _, text := range []string{"10.0.0.5", "0x10", "a b", "a:1", "1e3"} {
		f.Add([]byte(strings.Replace(plainList, "10.0.0.5", text, 1)))
		f.Add([]byte(strings.Replace(plainList, "web.example", text, 1)))
	}
	for _, text := range []string{"\"65535\"", "065535", "65536", "1.5", "9s", "8 ", "8 # x", "8}"} {
		f.Add([]byte(strings.Replace(plainList, "65535", text, 1)))
		f.Add([]byte(strings.Replace(plainList, "port_value: 1\n", "port_value: "+text+"\n", 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !splittable(data) {
			return
		}
		got, want := quick(data, 1, &packer{}), quick(data, 1, nil)
		if got == nil {
			return
		}
		if want == nil {
			t.Fatalf("%q is taken only if it is packed", data)
		}
		unpacked(t, got, want)
		compareNodes(t, got, want)
	})
}

// unpacked puts the elements of lists into got that are packed, if they are those of want.
func unpacked(t *testing.T, got, want *yaml.Node) {
	if isPacked(got) {
		var wire []byte
		for _, n := range want.Content {
			host, port, ok := plainEndpoint(n)
			if !ok {
				t.Fatalf("%+v is packed", n)
			}
			wire = envoy.AppendLbEndpoint(wire, host.Value, port)
		}
		if got.Value != string(wire) {
			t.Fatalf("packed are %q, want %q", got.Value, wire)
		}
		*got = *want
	}
	for i := range min(len(got.Content), len(want.Content)) {
		unpacked(t, got.Content[i], want.Content[i])
	}
}
