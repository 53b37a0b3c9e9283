package validate_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/file"
	"hdsd/validate"
)

// FuzzExamine holds that Examine reports every problem that a start reports.
func FuzzExamine(f *testing.F) {
	for _, seed := range []string{
		`{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "type": "EDS", "health_checks": [{"timeout": 1}]}, {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "a", "endpoints": [{"lb_endpoints": [{}, {"endpoint": {"address": {"pipe": {"path": 5}}}}]}]}]}`,
		"static_resources:\n  clusters:\n  - {name: a, health_checks: {}, load_assignment: {endpoints: [null, {lb_endpoints: [null, {endpoint: {address: {socket_address: {address: x}}}}]}]}}\n  - {name: a}\n",
		"resources: [{name: b}]",
	} {
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), "clusters.yaml")
	c := &configv1.Config{Sources: []*configv1.Source{{Name: "local", ConfigSource: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: path},
	}}}}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found := validate.Examine(t.Context(), c, nil).Problems
		set, err := file.New(file.Options{Name: "local", Path: path}).Load()
		if err != nil {
			if len(found) == 0 {
				t.Errorf("nothing was found, but a start says %v", err)
			}
			return
		}
		for _, p := range set.Problems {
			if !slices.Contains(found, p) {
				t.Errorf("%v was not found", p)
			}
		}
	})
}
