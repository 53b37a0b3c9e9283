package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/source/file"
)

// BenchmarkLoad reads 10,000 endpoints in 100 assignments again and again.
func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString("resources:\n")
	for c := range 100 {
		fmt.Fprintf(&text, "- {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d, endpoints: [{lb_endpoints: [\n", c)
		for e := range 100 {
			fmt.Fprintf(&text, "  {endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 8080}}}},\n", c, e)
		}
		text.WriteString("  ]}]}\n")
	}
	path := filepath.Join(b.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if set, err := file.New(file.Options{Path: path}).Load(); err != nil || len(set.Clusters) != 100 {
			b.Fatal(err)
		}
	}
}
