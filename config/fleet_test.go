package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3" // of examples/fleet.yaml
	"github.com/google/go-cmp/cmp"

	"hdsd/config"
)

func TestProblemsOfAFleet(t *testing.T) {
	const web = "{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}"
	for text, want := range map[string]string{
		"{}":                                    ":1: checkers: at least one group is required, such as checkers: [{id: checker, count: 3, version: hdsd}]",
		"checkers:\n- {id: c}":                  `:2: checkers[0].version: is "": write envoy/ and a release, as envoy/1.40.0, or hdsd for the built-in checker`,
		"checkers:\n- {id: c, version: 1.40.0}": `:2: checkers[0].version: is "1.40.0": write envoy/ and a release, as envoy/1.40.0, or hdsd for the built-in checker`,
		"checkers:\n- {version: hdsd}":          ":2: checkers[0].id: is needed: the prefix of the group's names",
		"checkers:\n- {id: c, version: hdsd, cuont: 1}":                                      ":2: checkers[0].cuont: is not a field of hdsd.config.v1.CheckerGroup: did you mean count?",
		"checkers:\n- {id: c, version: hdsd, count: 0}":                                      ":2: checkers[0].count: is 0: remove the group, or say how many",
		"checkers:\n- {id: c, version: hdsd, count: 100000}\n- {id: d, version: hdsd}":       ":2: checkers: more than 100000 checkers are too many for a simulation",
		"checkers:\n- {id: c, version: hdsd, count: 12}\n- {id: c-1, version: hdsd}":         `:3: checkers[1].id: gives "c-1", as checkers[0].id does: choose another`,
		"checkers:\n- {id: c, version: hdsd, without: [TLS]}":                                ":2: checkers[0].without: is for Envoys: the built-in checker is built in one way only",
		"checkers:\n- {id: c, version: hdsd, weight: 0}":                                     ":2: checkers[0].weight: is 0: from 0.01 to 100 is possible, 1 is usual",
		"checkers:\n- id: c\n  version: hdsd\n  weight: 2\n  metadata: {hdsd.weight: \"3\"}": ":4: checkers[0].weight: is hdsd.weight of the metadata, which is there too: remove one of them",
		"checkers: [{id: " + strings.Repeat("c", 257) + ", version: hdsd}]":                  ":1: checkers[0].id: is longer than 256 bytes",
		"checkers: [{id: c, version: hdsd}]\nclusters: [{name: web}]":                        ":2: clusters[0].endpoints: is needed: how many endpoints each has",
		"checkers: [{id: c, version: hdsd}]\nclusters: [{endpoints: 1}]":                     ":2: clusters[0].name: is needed: the prefix of the group's names",
		"checkers: [{id: c, version: hdsd}]\nclusters: [{name: web, count: 4000000000, endpoints: 4000000000}, {name: web, count: 4000000000, endpoints: 4000000000}]": ":2: clusters: more than 1000000 clusters are too many for a simulation\n:2: clusters: more than 20000000 endpoints are too many for a simulation",
		"checkers: [{id: c, version: hdsd}]\nclusters:\n- name: web\n  endpoints: 1\n  health_checks: [{interval: 1s}, " + web + "]":                                   ":5: clusters[0].health_checks[0].timeout: ",
		"checkers: [{id: c, version: hdsd}]\ndata_planes: [{cluster_name_globs: [web]}]":                                                                               ":2: data_planes[0].count: is needed: how many Envoys",
	} {
		file := write(t, t.TempDir(), "fleet.yaml", text)
		fleet, problems := config.LoadFleet(file)
		var got strings.Builder
		for _, problem := range problems {
			got.WriteString(strings.TrimPrefix(problem.String(), file) + "\n")
		}
		if fleet != nil || !strings.HasPrefix(got.String(), want) {
			t.Errorf("%s\nsays %s\nwant %s", text, got.String(), want)
		}
	}
}

func TestTheExampleOfAFleet(t *testing.T) {
	fleet, problems := config.LoadFleet("../examples/fleet.yaml")
	if len(problems) > 0 || len(fleet.GetCheckers()) != 4 || len(fleet.GetClusters()) != 2 || len(fleet.GetDataPlanes()) != 2 {
		t.Errorf("%v, %v", fleet, problems)
	}
	if _, problems := config.LoadFleet("testdata/none"); len(problems) != 1 || !strings.Contains(problems[0].String(), "cannot be read") {
		t.Errorf("a file that is not there: %v", problems)
	}
}

func TestNumbered(t *testing.T) {
	for count, want := range map[uint32][]string{0: {"c"}, 1: {"c"}, 2: {"c-1", "c-2"}} {
		if diff := cmp.Diff(want, slices.Collect(config.Numbered("c", count))); diff != "" {
			t.Errorf("%d: -want +got:\n%s", count, diff)
		}
	}
}

// Whatever is taken for a fleet keeps to the bounds, and names nothing twice.
func FuzzFleet(f *testing.F) {
	example, err := os.ReadFile("../examples/fleet.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(`{"checkers":[{"id":"c","count":3,"version":"envoy/1.40","without":["TLS"]}],"clusters":[{"name":"w","count":2,"endpoints":9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "fleet.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		fleet, problems := config.LoadFleet(file)
		if (fleet == nil) == (len(problems) == 0) {
			t.Fatalf("a fleet %v with problems %v", fleet, problems)
		}
		if fleet == nil {
			return
		}
		seen, endpoints := map[string]bool{}, 0
		for _, group := range fleet.GetCheckers() {
			for id := range config.Numbered(group.GetId(), group.GetCount()) {
				if id == "" || seen[id] || len(seen) > 100_000 {
					t.Fatalf("checker %q", id)
				}
				seen[id] = true
			}
		}
		clear(seen)
		for _, group := range fleet.GetClusters() {
			for name := range config.Numbered(group.GetName(), group.GetCount()) {
				if endpoints += int(group.GetEndpoints()); name == "" || seen[name] || endpoints > 20_000_000 {
					t.Fatalf("cluster %q", name)
				}
				seen[name] = true
			}
		}
	})
}
