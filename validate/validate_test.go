package validate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
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

// TestANameByEDSIsReported: with its line, as a name in a STATIC cluster is.
func TestANameByEDSIsReported(t *testing.T) {
	found := examineText(t, `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: EDS
  health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}]
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: web
  endpoints:
  - lb_endpoints:
    - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
    - {endpoint: {address: {socket_address: {address: mysql.internal, port_value: 3306}}}}
`)
	const want = `endpoint mysql.internal:3306: not published, since clients refuse all that comes with it: "mysql.internal" is no IP address`
	here := func(p source.Problem) bool { return p.Line == 11 && strings.HasPrefix(p.Message, want) }
	if !slices.ContainsFunc(found.Problems, here) || found.Checked != 1 {
		t.Errorf("found %v, %d are checked", found.Problems, found.Checked)
	}
}

// TestDuplicatesAreReportedWithTheirEffect: it depends on how clients get the endpoints.
func TestDuplicatesAreReportedWithTheirEffect(t *testing.T) {
	const cluster = `- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: `
	const endpoints = `
  endpoints:
  - lb_endpoints:
    - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
    - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
  - priority: 1
    lb_endpoints:
    - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
`
	const checks = "\n  health_checks: [{timeout: 1s, interval: 1s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}]"
	const alone = "\n" + `- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment` + "\n  cluster_name: web" + endpoints
	listed := "\n  load_assignment:\n    cluster_name: web" + strings.ReplaceAll(endpoints, "\n  ", "\n    ")
	for text, want := range map[string][]string{
		"STATIC" + checks + listed: {"once with the sum of the weights", "where it takes all of a STATIC cluster"},
		"STATIC" + listed:          {"sends it the traffic of several endpoints"},
		"EDS" + checks + alone:     {"an Envoy takes only the first"},
	} {
		var said []string
		for _, p := range examineText(t, "resources:\n"+cluster+text).Problems {
			if strings.Contains(p.Message, "more than o") {
				said = append(said, p.Message)
			}
		}
		if !slices.EqualFunc(said, want, strings.Contains) {
			t.Errorf("%s\nsaid %q, want %q", text, said, want)
		}
	}
}

// examineText examines a source that is a file with this text.
func examineText(t *testing.T, text string) validate.Findings {
	t.Helper()
	return examineWith(t, text)
}

// examineWith examines a file of clusters with policies.
func examineWith(t *testing.T, text string, policies ...*configv1.Policy) validate.Findings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return validate.Examine(t.Context(), &configv1.Config{Policies: policies, Sources: []*configv1.Source{{Name: "local", ConfigSource: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: path},
	}}}}, nil)
}
