package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"hdsd/internal/yamlpb"
)

// plainEndpoint is an endpoint that is packed, and plainCluster a file of a cluster with two.
const (
	plainEndpoint = "{endpoint: {address: {socket_address: {address: b, port_value: 1}}}}"
	plainCluster  = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
  load_assignment:
    cluster_name: a
    endpoints:
    - {locality: {zone: a}, lb_endpoints: [` + plainEndpoint + ", " + plainEndpoint + `], priority: 1}
`
)

// A document that is read in parts gives what it gives as a whole.
func FuzzParts(f *testing.F) {
	const one = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: `
	for _, text := range []string{
		"resources:\n- {" + one + "a}\n- {" + one + "b, unknown: 1}\n",
		"version_info: '1'\n# comment\nresources:\n\n  # comment\n  - {" + one + "a}\n  -\n    {" + one + "b}\n",
		"resources:\n- {" + one + "a}\nversion_info: '1'\n", "resources:\n- {" + one + "\"a\n- b\"}\n",
		"resources:\n- {" + one + "a\n- b}\n", "resources:\n- a\nresources:\n- b\n", "resources:\n- &a {" + one + "b}\n- *a\n",
		"static_resources: {}\nresources:\n- {" + one + "a}\n", "resources:\n- a: |\n    x\n   - y\n- b\n", "resources:\n- {" + one + "a}\n---\nx: y\n",
		"resources:\n- {" + one + "a}\r- {" + one + "b}\n", "resources:\n- {" + one + "a, name: b}\n", "resources:\n- {" + one + "a, health_checks: [{}]}\n- - x\n",
		"resources:\n- " + `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource: {` + one + "x}}\n- 'a\n- b'\n", "resources:\n  - a: 1\n - b\n",
	} {
		f.Add([]byte(text))
	}
	for _, kind := range []string{"type: STATIC", "type: EDS", "type: LOGICAL_DNS", "type: ORIGINAL_DST", "lb_policy: -1"} {
		f.Add([]byte(plainCluster + "  " + kind + "\n"))
	}
	for _, more := range []string{"b1, port_value: 1", "b, port_value: x", "b, port_value: 70000", "'', port_value: 1", "b, port_value: 1, protocol: UDP"} {
		f.Add([]byte(strings.ReplaceAll(plainCluster, "b, port_value: 1", more)))
	}
	for _, other := range []string{"lbEndpoints", "named_endpoints", "metadata: {filter_metadata: {lb_endpoints: [a]}}, lb_endpoints"} {
		f.Add([]byte(strings.Replace(plainCluster, "lb_endpoints", other, 1)))
	}
	f.Add([]byte(strings.ReplaceAll(plainCluster, "  load_assignment:", "  typed_extension_protocol_options:\n   a:\n    \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"))) // packed in an Any
	f.Add([]byte("resources:\n- {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: a, policy: {overprovisioning_factor: 150}, " +
		"endpoints: [{locality: {zone: a}, priority: 1, load_balancing_weight: 2, lb_endpoints: [" + plainEndpoint + ", " + plainEndpoint + "]}, {lb_endpoints: [" + plainEndpoint + "]}]}\n"))
	found, _ := filepath.Glob("testdata/*/*.yaml")
	for _, path := range found {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, whole := &contents{maxEndpoints: 3}, &contents{maxEndpoints: 3}
		if !parts.parts("a.yaml", data) {
			if parts.listed+len(parts.resources)+len(parts.problems) > 0 {
				t.Errorf("read something of %q, although it is to be read as a whole", data)
			}
			return
		}
		if problems := whole.whole("a.yaml", data); len(problems) > 0 {
			t.Fatalf("%q is read in parts, but as a whole it has %v", data, problems)
		}
		if parts.listed != whole.listed || parts.read != whole.read || fmt.Sprint(parts.problems) != fmt.Sprint(whole.problems) || len(parts.resources) != len(whole.resources) {
			t.Fatalf("%q: got %+v, want %+v", data, parts, whole)
		}
		for i, got := range parts.resources {
			want := whole.resources[i]
			if !proto.Equal(got.cluster, want.cluster) || !got.lists.Equal(want.lists) {
				t.Errorf("%q: got %v, want %v", data, got, want)
			}
			got.cluster, got.lists, want.cluster, want.lists = nil, nil, nil, nil
			if got != want {
				t.Errorf("%q: got %+v, want %+v", data, got, want)
			}
		}
	})
}

// A text of which a part is invalid is read as a whole, which says what is wrong.
func TestPartsFail(t *testing.T) {
	good := "resources:\n- {name: a}\n- {name: b}\n"
	if c := (&contents{}); !c.parts("a.yaml", []byte(good)) || c.listed != 2 {
		t.Errorf("%q is not read in parts: %+v", good, c)
	}
	for _, bad := range []string{good + "- {name: c\n", good + "- name: 'c\n", "resources:\n- 'a\n- b'\n", good + "x: y\n"} {
		if (&contents{}).parts("a.yaml", []byte(bad)) {
			t.Errorf("%q is read in parts", bad)
		}
	}
}

// Plain endpoints are read the quick way, and not where something is wrong.
func TestPackedParts(t *testing.T) {
	for text, want := range map[string]bool{
		plainCluster:                    true,
		plainCluster + "  type: EDS\n":  false,
		plainCluster + "  unknown: 1\n": false,
		strings.Replace(plainCluster, plainEndpoint, plainEndpoint+", "+plainEndpoint, 1): false, // too many
		strings.Replace(plainCluster, plainEndpoint, "{health_status: UP}", 1):            false,
	} {
		parts, ok := yamlpb.SplitAsEnvoy("a.yaml", "resources", []byte(text))
		if !ok {
			t.Fatalf("%q cannot be split", text)
		}
		if got := (&contents{maxEndpoints: 2}).packedPart(parts, 0); got != want {
			t.Errorf("the quick way takes %q: %t, want %t", text, got, want)
		}
	}
}
