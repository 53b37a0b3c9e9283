package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// found gives the sets of files, each as "files: resources".
func found(t *testing.T, files map[string]string) (sets []*set, shown []string) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := find(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		var names []string
		for _, r := range s.resources {
			names = append(names, r.kind()+" "+r.name)
		}
		shown = append(shown, strings.Join(s.files, " ")+": "+strings.Join(names, ", "))
	}
	return sets, shown
}

func TestResourcesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a bootstrap": {
			map[string]string{"b.yaml": "static_resources: {clusters: [{name: a}, {name: b}]}"},
			[]string{"b.yaml: Cluster a, Cluster b"},
		},
		"a response": {
			map[string]string{"r.json": `{"resources":` + "\t" + `[{"@type":"` + clusterURL + `","name":"a","type":"EDS"},{"@type":"` + assignmentURL + `","clusterName":"a"}]}`},
			[]string{"r.json: Cluster a, ClusterLoadAssignment a"},
		},
		"the wrapper of a resource": {
			map[string]string{"r.yaml": "resources: [{\"@type\": " + typePrefix + "envoy.service.discovery.v3.Resource, name: a, resource: {\"@type\": " + clusterURL + ", name: a}}]"},
			[]string{"r.yaml: Cluster a"},
		},
		"golden files that go together": {
			map[string]string{
				"out/x.clusters.yaml":  "- name: a\n  edsClusterConfig: {}\n",
				"out/x.endpoints.yaml": "- clusterName: a\n  endpoints: []\n",
				"out/y.clusters.yaml":  "- name: b\n  lbPolicy: RANDOM\n",
			},
			[]string{"out/x.clusters.yaml out/x.endpoints.yaml: Cluster a, ClusterLoadAssignment a", "out/y.clusters.yaml: Cluster b"},
		},
		"a config dump with versions of one cluster": {
			map[string]string{"dump.json": `{"configs":[{"bootstrap":{"static_resources":{"clusters":[{"name":"a"}]}}},
				{"dynamic_active_clusters":[{"cluster":{"@type":"` + clusterURL + `","name":"b"}}],
				 "dynamic_warming_clusters":[{"cluster":{"@type":"` + clusterURL + `","name":"b","type":"EDS"}}]}]}`},
			[]string{"dump.json: Cluster a", "dump.json: Cluster b", "dump.json: Cluster b"},
		},
		"a dump of the endpoints of all clusters": {
			map[string]string{"dump.json": `[{"name":"a","type":"EDS","edsClusterConfig":{}},{"name":"b","type":"STATIC","loadAssignment":{}},
				{"clusterName":"a","endpoints":[]},{"clusterName":"b","endpoints":[]}]`},
			[]string{"dump.json: Cluster a, Cluster b, ClusterLoadAssignment a"},
		},
		"text within text": {
			map[string]string{"map.yaml": "kind: ConfigMap\ndata:\n  envoy.yaml: |\n    static_resources:\n      clusters: [{name: a}]\n"},
			[]string{"map.yaml: Cluster a"},
		},
		"several documents": {
			map[string]string{"many.yaml": "kind: Service\nclusterIP: x\n---\nstatic_resources: {clusters: [{name: a}]}\n---\nstatic_resources: {clusters: [{name: b}]}\n"},
			[]string{"many.yaml: Cluster a", "many.yaml: Cluster b"},
		},
		"what is something else": {
			map[string]string{
				"kube.yaml":   "kind: Backend\nclusters: [{name: a, lbPolicy: RANDOM, weight: 3}, {name: b, type: c}]",
				"route.yaml":  "resources: [{\"@type\": " + typePrefix + "envoy.config.route.v3.RouteConfiguration, name: a, cluster: b}]",
				"broken.yaml": "clusters: [{name: a",
				"empty.yaml":  "static_resources: {listeners: []} # no cluster",
				"cluster.go":  "static_resources: {clusters: [{name: a}]}",
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := found(t, test.files); !slices.Equal(got, test.want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestWhatHdsdReadsIsGivenAsItIs(t *testing.T) {
	const text = "# a comment\nstatic_resources:\n  clusters:\n  - &one {name: a, connect_timeout: 0x5}\n"
	sets, _ := found(t, map[string]string{"b.yaml": text})
	if got, extension, err := sets[0].content(); err != nil || string(got) != text || extension != ".yaml" {
		t.Errorf("hdsd is given %q as %s (%v), want the file as it is", got, extension, err)
	}
}

// Values that a parser may take for others have to reach hdsd and Envoy as they are.
func TestExtractionKeepsTheText(t *testing.T) {
	sets, _ := found(t, map[string]string{"l.yaml": `
defaults: &d {socket_address: {address: 10.0.0.1, port_value: 0x50}}
clusters:
- name: a
  type: strict_dns
  lb_policy: "ROUND_ROBIN"
  health_checks: {tcp_health_check: {send: {text: 70696e67}}}
  load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: *d}}]}]}
`})
	got, extension, err := sets[0].content()
	if err != nil || extension != ".yaml" {
		t.Fatal(extension, err)
	}
	for _, want := range []string{"@type': \"" + clusterURL, "type: strict_dns", `lb_policy: "ROUND_ROBIN"`, "text: 70696e67", "port_value: 0x50"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("hdsd is given\n%s\nwithout %s", got, want)
		}
	}
	if strings.Contains(string(got), "*d") {
		t.Errorf("hdsd is given\n%s\nwith an alias for what is not in it", got)
	}
}

func TestFilesThatAreNotHereAreReplaced(t *testing.T) {
	room := &room{folder: t.TempDir()}
	here := filepath.Join(room.folder, "here.pem")
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sets, _ := found(t, map[string]string{"b.yaml": `static_resources: {clusters: [{name: a, transport_socket: {typed_config: {common_tls_context: {
  tls_certificates: [{certificate_chain: {filename: /none/c}, private_key: {filename: /none/k}, watched_directory: {path: /none}}],
  validation_context: {trusted_ca: {filename: ` + here + `}, crl: {filename: /none/r}},
  tls_certificate_sds_secret_configs: [{name: s, sds_config: {path_config_source: {path: /none/s}}}]}}},
  load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /none/pipe}}}}]}]}}]}`})
	room.furnishSet(sets[0])
	got, _, err := sets[0].content()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"filename: \"" + filepath.Join(room.folder, certificateFile), "filename: \"" + filepath.Join(room.folder, keyFile),
		"filename: \"" + filepath.Join(room.folder, revokedFile), "path: \"" + filepath.Join(room.folder, secretsFile),
		"watched_directory: {path: \"" + room.folder + "\"}", here, "/none/pipe",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the set is\n%s\nwithout %s", got, want)
		}
	}
	if strings.Count(string(got), "/none/") != 1 {
		t.Errorf("the set is\n%s\nwhich still names files that are not here", got)
	}
}
