package envoy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/test/envoy"
)

// The table that hdsd's reading of files is held to tells the truth of the
// real Envoy: what it refuses, and what it makes of what it takes.
func TestWhatEnvoyMakesOfText(t *testing.T) {
	taken := map[string][]envoy.Spelling{}
	for _, s := range envoy.Spellings(t) {
		if s.Envoy {
			taken[s.Form] = append(taken[s.Form], s)
			continue
		}
		t.Run(s.Form+"/"+s.Name, func(t *testing.T) {
			if takes(t, "bootstrap."+s.Form, envoy.Bootstrap(s)) {
				t.Error("Envoy takes it")
			}
		})
	}
	for form, all := range taken {
		t.Run(form, func(t *testing.T) {
			if !takes(t, "bootstrap."+form, envoy.Bootstrap(all...)) {
				t.Error("Envoy refuses some of them in a bootstrap")
			}
			got := dynamicClusters(t, "clusters."+form, envoy.Response(all...))
			for i, s := range all {
				want := proto.CloneOf(s.Want)
				want.Name = envoy.Named(i)
				if !proto.Equal(got[want.GetName()], want) {
					t.Errorf("%s: Envoy has %v, the table %v", s.Name, got[want.GetName()], want)
				}
			}
		})
	}
}

// takes tells whether Envoy takes a bootstrap.
func takes(t *testing.T, name string, bootstrap []byte) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), envoy.Binary(t), "--mode", "validate", "-l", "warning", "-c", path).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "error initializing configuration") {
		t.Fatalf("%v: %s", err, out)
	}
	return err == nil
}

// dynamicClusters gives what an Envoy makes of a file of clusters.
func dynamicClusters(t *testing.T, name string, response []byte) map[string]*clusterv3.Cluster {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, response, 0o600); err != nil {
		t.Fatal(err)
	}
	process := envoy.Start(t, "", "spelling", fmt.Appendf(nil, `
node: {id: spelling, cluster: tests}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources: {cds_config: {path_config_source: {path: %q}}}
`, path))
	all := map[string]*clusterv3.Cluster{}
	envoy.Eventually(t, 10*time.Second, "the clusters of a file", func() bool {
		for _, c := range clustersDump(t, process).GetDynamicActiveClusters() {
			cluster := &clusterv3.Cluster{}
			if err := c.GetCluster().UnmarshalTo(cluster); err != nil {
				t.Fatal(err)
			}
			all[cluster.GetName()] = cluster
		}
		return len(all) > 0
	})
	return all
}

func clustersDump(t *testing.T, p *envoy.Process) *adminv3.ClustersConfigDump {
	t.Helper()
	dump, all := &adminv3.ConfigDump{}, &adminv3.ClustersConfigDump{}
	if err := protojson.Unmarshal(p.ConfigDump(t), dump); err != nil {
		t.Fatal(err)
	}
	for _, part := range dump.GetConfigs() {
		if part.MessageIs(all) {
			if err := part.UnmarshalTo(all); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}
