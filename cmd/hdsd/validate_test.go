package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"hdsd/test/envoy"
)

// validated returns what validate says of two files, without where they are.
func validated(t *testing.T, config, name, clusters string) (status int, out string) {
	t.Helper()
	dir := folder(t, map[string]string{"hdsd.yaml": config, name: clusters})
	status, out, errors := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml"))
	if errors != "" {
		t.Error(errors)
	}
	return status, strings.ReplaceAll(out, dir+string(filepath.Separator), "")
}

// spoiled are clusters in which one thing might hide another.
const spoiled = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  health_checks: [{timeout: 0s, interval: "0.5", unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /, request_headers_to_add: [{header: {key: upgrade, value: x}}]}}]
  load_assignment:
    cluster_name: web
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: foo, port_value: 80}}}
      - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 99999}}}
      - endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: eighty}}}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pay
  type: EDS
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1}]
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: pay
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 10.0.0.3, port_value: 80}}}
    - endpoint: {address: {socket_address: {address: bar, port_value: 80}}}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: unchecked
  load_assignment:
    cluster_name: unchecked
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: unchecked.internal, port_value: 80}}}}]}]
`

// TestValidateGoesOn: one problem hides no other, and each has its own line and
// the name of its cluster.
func TestValidateGoesOn(t *testing.T) {
	wants := []string{
		`clusters.yaml:2: web: health_checks[0].http_health_check.request_headers_to_add[0].header.key: "upgrade" would break the request`,
		`clusters.yaml:4: web: resources[0].health_checks[0].interval: needs a duration in seconds as "0.5s", not the text "0.5": write 0.5s`,
		`clusters.yaml:4: web: resources[0].health_checks[0].timeout: is too small: write more than 0s`,
		`clusters.yaml:9: web: endpoint foo:80: `,
		`clusters.yaml:10: web: endpoint 10.0.0.1:99999: `,
		`clusters.yaml:11: web: resources[0].load_assignment.endpoints[0].lb_endpoints[2].endpoint.address.socket_address.port_value: needs a whole number`,
		`clusters.yaml:15: pay: resources[1].health_checks[0].health_checker: is missing: give one of http_health_check, tcp_health_check, `,
		`clusters.yaml:21: pay: endpoint bar:80: `,
		`clusters.yaml:26: unchecked: endpoint unchecked.internal:80: not published`,
	}
	for name, config := range map[string]struct {
		text  string
		wants []string
	}{
		"a good configuration": {goodConfig, wants},
		"a bad one": {
			goodConfig + "grpc: {address: \"10.0.0.1:18000\"}\nreporting: {interval: -1s}\nsorces: []\n",
			append([]string{"hdsd.yaml:2: grpc", "hdsd.yaml:3: reporting.interval: ", "hdsd.yaml:4: sorces: "}, wants...),
		},
	} {
		status, out := validated(t, config.text, "clusters.yaml", spoiled)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if status != exitFailed || len(lines) != len(config.wants) {
			t.Errorf("%s: exit status %d, %d lines, want %d:\n%s", name, status, len(lines), len(config.wants), out)
			continue
		}
		for i, want := range config.wants {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: says %q, want %q", name, lines[i], want)
			}
		}
	}
}

// TestValidateWithBadDefaults: endpoints are examined, whatever is wrong with
// the checks that they are to have.
func TestValidateWithBadDefaults(t *testing.T) {
	const clusters = `{"resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "a", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "foo", "port_value": 80}}}}]}]}]}`
	config := strings.Replace(goodConfig, "clusters.yaml", "min.json", 1) + "default_health_checks: [{cluster_name_glob: \"*\", health_checks: [{timeout: 1s}]}]\n"
	status, out := validated(t, config, "min.json", clusters)
	if status != exitFailed || !strings.Contains(out, "hdsd.yaml:2: default_health_checks[0].health_checks[0].interval: is missing") ||
		!strings.Contains(out, "min.json:1: a: endpoint foo:80: ") || strings.Count(out, "min.json") != 1 {
		t.Errorf("exit status %d\n%s", status, out)
	}
}

// TestValidateNamesEveryProblem of an endpoint.
func TestValidateNamesEveryProblem(t *testing.T) {
	const clusters = `{"resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "a", "endpoints": [{"lb_endpoints": [
{"endpoint": {"address": {"socket_address": {"address": "fe80::1%lo", "port_value": 99999, "protocol": "UDP"}}, "health_check_config": {"port_value": 65536}}}]}]}]}`
	config := strings.Replace(goodConfig, "clusters.yaml", "min.json", 1) +
		"default_health_checks: [{cluster_name_glob: \"*\", health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]}]\n"
	_, out := validated(t, config, "min.json", clusters)
	for _, want := range []string{"min.json:2: a: endpoint [fe80::1%lo]:99999: ", "address: \"fe80::1%lo\"", "port_value: is 99999", "protocol: UDP", "health_check_config.port_value: is 65536"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing of %q in:\n%s", want, out)
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestValidateThatCannotBeRead(t *testing.T) {
	for _, clusters := range []string{"resources: []", spoiled} {
		dir := folder(t, map[string]string{"hdsd.yaml": goodConfig, "clusters.yaml": clusters})
		var told bytes.Buffer
		status := run(t.Context(), []string{"validate", "-c", filepath.Join(dir, "hdsd.yaml")}, full{}, &told)
		if status != exitFailed || !strings.Contains(told.String(), "no space left") {
			t.Errorf("exit status %d, %q", status, told.String())
		}
	}
}

// taken is a cluster file that a start takes as it is.
func taken(name, more string) string {
	return `- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: ` + name + `
` + more
}

const (
	tcpChecks = `  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
`
	atOnce = `  load_assignment:
    cluster_name: x
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}
`
	payy = `- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: payy
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.3, port_value: 80}}}}]}]
`
)

// TestValidateWarns of what a start takes, though it may not be meant so.
func TestValidateWarns(t *testing.T) {
	web := taken("web", tcpChecks+atOnce)
	for name, c := range map[string]struct {
		config, clusters string
		wants            []string
	}{
		"nothing": {"", web, []string{"hdsd.yaml: 1 cluster with 1 endpoint, 1 checked, all good"}},
		"an assignment under another name": {"", web + taken("pay", "  type: EDS\n"+tcpChecks) + payy, []string{
			"clusters.yaml:10: pay: no source has endpoints for it",
			"clusters.yaml:14: payy: no Cluster uses this ClusterLoadAssignment, so it is a cluster of its own: did you mean pay?",
			"hdsd.yaml: 3 clusters with 2 endpoints, 1 checked, 2 warnings",
		}},
		"an assignment for itself": {"", web + payy, []string{"hdsd.yaml: 2 clusters with 2 endpoints, 1 checked, all good"}},
		"no health checks": {"", taken("web", atOnce), []string{
			"hdsd.yaml: no endpoint is checked: ",
			"hdsd.yaml: 1 cluster with 1 endpoint, 0 checked, 1 warning",
		}},
		"an endpoint twice": {"", web + "      - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}\n", []string{
			"clusters.yaml:10: web: endpoint 10.0.0.1:80: is in its locality more than once, first at line 9: ",
			"hdsd.yaml: 1 cluster with 1 endpoint, 1 checked, 1 warning",
		}},
		"an endpoint in two localities": {"", web + "    - locality: {zone: a}\n      lb_endpoints:\n      - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}\n", []string{
			"clusters.yaml:12: web: endpoint 10.0.0.1:80: is in more than one locality or priority, first at line 9: ",
			"hdsd.yaml: 1 cluster with 2 endpoints, 2 checked, 1 warning",
		}},
		"a policy for nothing": {"policies: [{cluster_name_glob: \"w*\", redundancy: 2}, {cluster_name_glob: \"pay-*\", redundancy: 5}]\n", web, []string{
			`hdsd.yaml: policies[1].cluster_name_glob: "pay-*" matches no cluster`,
			"hdsd.yaml: 1 cluster with 1 endpoint, 1 checked, 1 warning",
		}},
		"a type that finds its endpoints": {"", web + taken("db", "  cluster_type: {name: envoy.clusters.static}\n"+tcpChecks+atOnce), []string{
			"clusters.yaml:10: db: Envoys find its endpoints themselves",
			"hdsd.yaml: 2 clusters with 2 endpoints, 2 checked, 1 warning",
		}},
		"a type that would resolve names, and has none": {"", web + taken("db", "  type: STRICT_DNS\n"+tcpChecks+atOnce), []string{
			"hdsd.yaml: 2 clusters with 2 endpoints, 2 checked, all good",
		}},
		"names that Envoys resolve and check as they like": {"", web + strings.ReplaceAll(taken("db", "  type: STRICT_DNS\n"+atOnce), "10.0.0.1", "db.internal"), []string{
			"hdsd.yaml: 2 clusters with 2 endpoints, 1 checked, all good",
		}},
	} {
		status, out := validated(t, goodConfig+c.config, "clusters.yaml", "resources:\n"+c.clusters)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if status != exitDone || len(lines) != len(c.wants) {
			t.Errorf("%s: exit status %d, want %d lines:\n%s", name, status, len(c.wants), out)
			continue
		}
		for i, want := range c.wants {
			if warning := strings.HasSuffix(lines[i], " (warning)"); !strings.HasPrefix(lines[i], want) || warning != (i < len(lines)-1) {
				t.Errorf("%s: says %q, want %q", name, lines[i], want)
			}
		}
	}
}

// TestValidateMissesNoClusterOfABrokenFile checks that a policy is no warning if a broken part of the file may
// have its cluster.
func TestValidateMissesNoClusterOfABrokenFile(t *testing.T) {
	config := goodConfig + "policies: [{cluster_name_glob: \"pay-*\", redundancy: 5}]\n"
	web := taken("web", tcpChecks+atOnce)
	misspelt := func(name string) string {
		return strings.ReplaceAll(taken(name, tcpChecks+atOnce), "v3.Cluster", "v3.Clutser")
	}
	for name, c := range map[string]struct {
		clusters string
		warned   bool
	}{
		"a file that is not YAML":    {"resources: [", false},
		"a broken cluster of a name": {"resources:\n" + web + misspelt("pay-eu"), false},
		"another broken cluster":     {"resources:\n" + web + misspelt("db"), true},
	} {
		status, out := validated(t, config, "clusters.yaml", c.clusters)
		if warned := strings.Contains(out, "matches no cluster"); status != exitFailed || warned != c.warned {
			t.Errorf("%s: exit status %d, a warning about the policy: %v, want %v:\n%s", name, status, warned, c.warned, out)
		}
	}
}

// TestValidateTakesNamesThatHdsdResolves for addresses, and calls them by their names.
func TestValidateTakesNamesThatHdsdResolves(t *testing.T) {
	named := strings.ReplaceAll(taken("db", "  type: STRICT_DNS\n"+tcpChecks+atOnce), "10.0.0.1", "db.internal")
	for _, one := range []struct {
		resolve, clusters string
		status            int
		want              string
	}{
		{"true", named, exitDone, "hdsd.yaml: 1 cluster with 1 endpoint, 1 checked, all good"},
		{"true", strings.ReplaceAll(named, "port_value: 80", "port_value: 0"), exitFailed, "clusters.yaml:10: db: endpoint db.internal:0: endpoint.address.socket_address.port_value: is missing"},
		{"false", named, exitFailed, "clusters.yaml:10: db: endpoint db.internal:80: endpoint.address.socket_address.address: \"db.internal\" is not an IP address"},
	} {
		config := "sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}, resolve_names: " + one.resolve + "}]\ndns: {resolvers: [\"192.0.2.1:53\", \"2001:db8::1\"]}\n"
		status, out := validated(t, config, "clusters.yaml", "resources:\n"+one.clusters)
		if status != one.status || !strings.Contains(out, one.want) {
			t.Errorf("resolve_names: %s: exit status %d:\n%s", one.resolve, status, out)
		}
	}
}

// TestValidateAsksNoManagementServer, but checks what is written of one, and
// finds nothing missing that it may have.
func TestValidateAsksNoManagementServer(t *testing.T) {
	const upstream = `sources:
- {name: local, config_source: {path_config_source: {path: clusters.yaml}}}
- {name: mesh, config_source: {api_config_source: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: "192.0.2.1:18000", stat_prefix: x}}]}}}
policies: [{cluster_name_glob: "mesh-*", redundancy: 2}]
`
	const waits = `resources:
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
`
	status, out := validated(t, upstream, "clusters.yaml", waits)
	const want = "hdsd.yaml: 1 cluster with 0 endpoints, 0 checked, all good\n" +
		"hdsd.yaml: source mesh was not examined: --connect asks management servers\n"
	if status != exitDone || out != want {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	status, out = validated(t, strings.Replace(upstream, "google_grpc", "envoy_grpc", 1), "clusters.yaml", waits)
	if status != exitFailed || !strings.HasPrefix(out, "hdsd.yaml:3: sources[1].config_source.api_config_source.grpc_services[0].envoy_grpc.") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestValidateCountsNeeds instead of a warning for each cluster.
func TestValidateCountsNeeds(t *testing.T) {
	const grpcChecks = "  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {}}]\n"
	status, out := validated(t, goodConfig, "clusters.yaml", "resources:\n"+taken("a", grpcChecks+atOnce)+taken("b", grpcChecks+atOnce)+taken("c", tcpChecks+atOnce))
	if want := "hdsd.yaml: 3 clusters with 3 endpoints, 3 checked, all good\nhdsd.yaml: 2 clusters need gRPC health checks: use checkers of Envoy 1.38 or later, or hdsd check\n"; status != exitDone || out != want {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestValidateSaysWhoDoesNotAnswer, and exits with 1.
func TestValidateSaysWhoDoesNotAnswer(t *testing.T) {
	config := "sources:\n- {name: mesh, config_source: {initial_fetch_timeout: 0.2s, api_config_source: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: \"" + envoy.FreeAddress(t) + "\", stat_prefix: x}}]}}}\n"
	dir := folder(t, map[string]string{"hdsd.yaml": config, "clusters.yaml": "resources:\n" + taken("a", tcpChecks+atOnce)})
	status, out, _ := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml"), "--connect")
	if status != exitFailed || !strings.Contains(out, "hdsd.yaml: source mesh: 127.0.0.1:") || !strings.Contains(out, " has not answered: ") || !strings.Contains(out, "connection refused") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestValidateForGRPCClients: what gRPC's own clients refuse is said on request, and is no error.
func TestValidateForGRPCClients(t *testing.T) {
	const clusters = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  load_assignment:
    cluster_name: web
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: pay
  lb_policy: LEAST_REQUEST
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
  load_assignment:
    cluster_name: pay
    endpoints:
    - {lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}
    - {priority: 1, lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}
`
	dir := folder(t, map[string]string{"clusters.yaml": clusters, "hdsd.yaml": "sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n"})
	status, out, _ := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml"), "--clients", "grpc")
	for _, line := range []string{
		"web: `type: STATIC`: grpc-go 1.85.0, C-core 1.85.3, grpc-java 1.85.1, grpc-js-xds 1.14.1 refuse the cluster",
		"pay: `lb_policy: LEAST_REQUEST`: C-core 1.85.3, grpc-js-xds 1.14.1 refuse the cluster",
		"pay: a `locality` in two priorities: grpc-java 1.85.1 loses its endpoints",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("validate does not say %q:\n%s", line, out)
		}
	}
	if status != 0 || strings.Contains(out, "pay: `type") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	if status, _, _ := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml"), "--clients", "envoy"); status == 0 {
		t.Error("unknown clients are taken")
	}
	if _, out, _ := hdsd(t, "validate", "-c", filepath.Join(dir, "hdsd.yaml")); strings.Contains(out, "grpc-go") {
		t.Errorf("validate speaks of gRPC unasked:\n%s", out)
	}
}
