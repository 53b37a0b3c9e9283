package envoyrules_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/internal/envoyrules"
	"hdsd/internal/yamlpb"
	"hdsd/test/envoy"
)

// What no Envoy can build is refused by name, and what stands beside it is
// not. (That this is so with Envoy is TestWhatEnvoyCannotBuild in test/envoy.)
func TestWhatEnvoyCannotBuild(t *testing.T) {
	for _, r := range envoy.Refusals() {
		t.Run(r.Fields, func(t *testing.T) {
			root, problems := yamlpb.ParseAsEnvoy("a.yaml", r.YAML())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			static, _ := root.Field("static_resources")
			clusters, _ := static.Field("clusters")
			c := &clusterv3.Cluster{}
			if problems := clusters.Elements()[0].Decode(c); len(problems) > 0 {
				t.Fatal(problems)
			}
			found := ""
			for _, v := range envoyrules.Violations(c) {
				found += v.Field
			}
			if found != r.Field {
				t.Errorf("got %q, want %q", found, r.Field)
			}
		})
	}
}
