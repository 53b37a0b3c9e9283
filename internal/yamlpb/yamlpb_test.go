package yamlpb_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/envoytypes"
	"hdsd/internal/yamlpb"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func decode(file string, data []byte) (*clusterv3.Cluster, []yamlpb.Problem) {
	message := &clusterv3.Cluster{}
	root, problems := yamlpb.Parse(file, data)
	if len(problems) == 0 {
		problems = root.Decode(message)
	}
	return message, problems
}

func TestProblemsAreAllReported(t *testing.T) {
	files, err := filepath.Glob("testdata/*.[yj]*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			_, problems := decode(filepath.Base(file), data)
			for _, problem := range problems {
				got.WriteString(problem.String() + "\n")
			}
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each of these means the same in YAML and, by protojson, in JSON.
func TestSameAsProtoJSON(t *testing.T) {
	envoytypes.Register()
	tests := map[string]struct{ yaml, json string }{
		"both spellings": {
			"connect_timeout: 0.5s\ncommonLbConfig: {healthyPanicThreshold: {value: 50}}",
			`{"connectTimeout": "0.5s", "common_lb_config": {"healthy_panic_threshold": {"value": 50}}}`,
		},
		"wrappers and nulls": {
			"name: null\nper_connection_buffer_limit_bytes: 7\nhealth_checks: [{reuse_connection: false, interval: ~}]",
			`{"name": null, "perConnectionBufferLimitBytes": 7, "healthChecks": [{"reuseConnection": false, "interval": null}]}`,
		},
		"numbers": {
			"per_connection_buffer_limit_bytes: \"7\"\nload_assignment: {endpoints: [{priority: 1e2, load_balancing_weight: 3.0}]}",
			`{"perConnectionBufferLimitBytes": "7", "loadAssignment": {"endpoints": [{"priority": 1e2, "loadBalancingWeight": 3.0}]}}`,
		},
		"64-bit numbers as texts": {
			"health_checks: [{http_health_check: {path: /, expected_statuses: [{start: '200', end: 300}]}}]",
			`{"healthChecks": [{"httpHealthCheck": {"path": "/", "expectedStatuses": [{"start": "200", "end": 300}]}}]}`,
		},
		"enums": {
			"type: EDS\nlb_policy: 2",
			`{"type": 3, "lbPolicy": "RING_HASH"}`,
		},
		"struct": {
			"metadata: {filter_metadata: {a: {n: null, b: true, d: -1.5e3, s: '1', t: 2020-01-01, l: [1, {x: y}], e: {}}}}",
			`{"metadata": {"filterMetadata": {"a": {"n": null, "b": true, "d": -1500, "s": "1", "t": "2020-01-01", "l": [1, {"x": "y"}], "e": {}}}}}`,
		},
		"any": {
			"transport_socket: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: a}}",
			`{"transportSocket": {"name": "x", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "a"}}}`,
		},
		"any of a well-known type": {
			"typed_extension_protocol_options: {a: {'@type': type.googleapis.com/google.protobuf.Duration, value: -1.05s}, b: {'@type': type.googleapis.com/google.protobuf.StringValue, value: x}}",
			`{"typedExtensionProtocolOptions": {"a": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "-1.05s"}, "b": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "x"}}}`,
		},
		"bytes": {
			"transport_socket: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{password: {inline_bytes: '_-8='}}]}}}",
			`{"transportSocket": {"name": "x", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "commonTlsContext": {"tlsCertificates": [{"password": {"inlineBytes": "/+8="}}]}}}}`,
		},
		"any of a type without code": {
			"typed_extension_protocol_options: {a: {'@type': type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor, message_timeout: 0.25s, disable_clear_route_cache: true, " +
				"filter_metadata: {a: [1, {b: c}]}, request_attributes: [x], mutation_rules: {allow_all_routing: true}, grpc_service: {initial_metadata: [{key: k, value: v}], google_grpc: {target_uri: u, stat_prefix: s, " +
				"credentials_factory_name: f, config: {a: ~}, channel_args: {args: {a: {int_value: '7'}}}, call_credentials: [{from_plugin: {name: n, typed_config: {'@type': type.googleapis.com/envoy.config.core.v3.Node, id: i}}}]}}}}",
			`{"typedExtensionProtocolOptions": {"a": {"@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor", "messageTimeout": "0.25s", "disableClearRouteCache": true,
				"filterMetadata": {"a": [1, {"b": "c"}]}, "requestAttributes": ["x"], "mutationRules": {"allowAllRouting": true}, "grpcService": {"initialMetadata": [{"key": "k", "value": "v"}], "googleGrpc": {"targetUri": "u", "statPrefix": "s",
				"credentialsFactoryName": "f", "config": {"a": null}, "channelArgs": {"args": {"a": {"intValue": "7"}}}, "callCredentials": [{"fromPlugin": {"name": "n", "typedConfig": {"@type": "type.googleapis.com/envoy.config.core.v3.Node", "id": "i"}}}]}}}}}`,
		},
		"aliases": {
			"name: &n a\nalt_stat_name: *n\nhealth_checks: [&c {interval: 1s}, *c]",
			`{"name": "a", "altStatName": "a", "healthChecks": [{"interval": "1s"}, {"interval": "1s"}]}`,
		},
		"escapes": {
			`name: "a/é😀"`,
			`{"name": "a\/\u00e9\ud83d\ude00"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := &clusterv3.Cluster{}
			if err := protojson.Unmarshal([]byte(test.json), want); err != nil {
				t.Fatal(err)
			}
			for file, data := range map[string]string{"a.yaml": test.yaml, "a.json": test.json} {
				got, problems := decode(file, []byte(data))
				if len(problems) > 0 {
					t.Fatalf("%s: %v", file, problems)
				}
				if !proto.Equal(got, want) {
					t.Errorf("%s: got %v, want %v", file, got, want)
				}
			}
		})
	}
}

func TestBounds(t *testing.T) {
	bomb := "a: &a {x: 1}\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " {" + strings.TrimSuffix(strings.Repeat("_, ", 9), ", ") + "}\n"
		for i := range 9 {
			bomb = strings.Replace(bomb, "_", string(rune('p'+i))+": *"+string(c-1), 1)
		}
	}
	tests := map[string]struct{ file, data, want string }{
		"alias bomb":       {"a.yaml", "metadata:\n  filter_metadata:\n    m:\n" + indent(bomb), "stand for too much"},
		"alias of itself":  {"a.yaml", "metadata: {filter_metadata: {m: &m {x: *m}}}", "nested deeper"},
		"texts by alias":   {"a.yaml", "name: &n " + strings.Repeat("x", 1<<20) + "\nmetadata: {filter_metadata: {m: {l: [" + strings.Repeat("*n, ", 1000) + "]}}}", "stand for too much"},
		"deep YAML":        {"a.yaml", "metadata: {filter_metadata: {m: {x: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}}}", "nested deeper"},
		"deep JSON":        {"a.json", strings.Repeat("[", 1<<20), "nested deeper"},
		"far too deep":     {"a.yaml", strings.Repeat("[", 1<<20), "exceeded max depth"},
		"too many values":  {"a.yaml", "[" + strings.Repeat("a,", 5_000_000) + "]", "too much for one text file"},
		"many problems":    {"a.yaml", "health_checks: [" + strings.Repeat("{x: 1}, ", 2000) + "]", "more problems"},
		"long name":        {"a.json", `{"` + strings.Repeat("x", 10_000) + `": 1}`, "is not a field"},
		"huge exponent":    {"a.yaml", "per_connection_buffer_limit_bytes: 1e9999", "whole number"},
		"binary in a JSON": {"a.json", "{\"name\": \"\xff\"}", "not UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := decode(test.file, []byte(test.data))
			for _, problem := range problems {
				if strings.Contains(problem.Message, test.want) {
					return
				}
			}
			t.Errorf("no problem says %q in %v", test.want, problems[:min(len(problems), 3)])
		})
	}
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

// TestLookUpsCountTowardTheBudget has aliases stand for long names and type URLs,
// which take time wherever they are looked up, though they are no values.
func TestLookUpsCountTowardTheBudget(t *testing.T) {
	const times = 900 // fewer than there are problems shown
	long := strings.Repeat("k", 1<<17)
	for name, text := range map[string]string{
		"names in a Struct": "metadata: {filter_metadata: {m: {first: &a {? " + long + "\n : 1}, more: [" + strings.Repeat("*a, ", times) + "]}}}",
		"fields":            "health_checks: [&a {? " + long + "\n : 1}, " + strings.Repeat("*a, ", times) + "]",
		"type URLs": "load_balancing_policy: {policies: [&a {typed_extension_config: {typed_config: {\"@type\": \"a/" + long + "\"}}}, " +
			strings.Repeat("*a, ", times) + "]}",
	} {
		_, problems := decode("a.yaml", []byte(text))
		if len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Message, "the aliases of this file stand for too much") {
			t.Errorf("%s: they are taken for nothing, and %d problems are found", name, len(problems))
		}
	}
}

func TestNumberTooLong(t *testing.T) {
	for digits, taken := range map[int]bool{50: true, 1 << 20: false} {
		text := `connect_timeout: {seconds: "` + strings.Repeat("0", digits) + `5"}`
		root, problems := yamlpb.ParseAsEnvoy("a.yaml", []byte(text))
		if !yamlpb.Refused(problems) {
			problems = root.Decode(&clusterv3.Cluster{})
		}
		if len(problems) == 0 != taken {
			t.Errorf("%d digits: %v, want taken: %t", digits, problems, taken)
		}
	}
}

func TestPartsAreDecodedApart(t *testing.T) {
	root, problems := yamlpb.Parse("a.yaml", []byte("other: [nonsense]\nstaticResources:\n  clusters:\n  - {'@type': x, name: a}\n  - name: b\n    typ: EDS\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	static, ok := root.Field("static_resources")
	if !ok {
		t.Fatal("no static_resources")
	}
	clusters, _ := static.Field("clusters")
	elements := clusters.Elements()
	if len(elements) != 2 {
		t.Fatalf("got %d clusters", len(elements))
	}
	var first, second clusterv3.Cluster
	if problems := elements[0].Decode(&first, "@type"); len(problems) > 0 || first.GetName() != "a" {
		t.Errorf("got %v, %v", problems, &first)
	}
	problems = elements[1].Decode(&second)
	want := []yamlpb.Problem{{
		File: "a.yaml", Line: 6, Field: "static_resources.clusters[1].typ",
		Message: "is not a field of envoy.config.cluster.v3.Cluster: did you mean type?",
	}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	located := root.Problem("static_resources.clusters[1].name.more", "wrong")
	if located.Line != 5 || !root.Has("static_resources.clusters[0].name") || root.Has("static_resources.clusters[2]") {
		t.Errorf("got %v", located)
	}
}

func TestExceptedFieldsCountOnce(t *testing.T) {
	root, problems := yamlpb.Parse("a.yaml", []byte("name: a\nother: 1\nother: 2\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []yamlpb.Problem{{File: "a.yaml", Line: 3, Field: "other", Message: "is given a second time"}}
	if diff := cmp.Diff(want, root.Decode(&clusterv3.Cluster{}, "other")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, root.Repeated()); diff != "" {
		t.Error(diff)
	}
}

func TestValidateNamesFieldsAsProtosDo(t *testing.T) {
	cluster, problems := decode("a.yaml", []byte(`
name: a
health_checks: [{interval: 1s, http_health_check: {path: ""}}, {timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1}]
load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {port_value: 70000}}}}]}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, violation := range yamlpb.Validate(cluster) {
		got = append(got, violation.Field+": "+violation.Reason)
	}
	want := []string{
		"load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: is empty or missing: give it a value",
		"load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value: is too large: write 65535 or less",
		"health_checks[0].timeout: is missing: give it a value",
		"health_checks[0].unhealthy_threshold: is missing: give it a value",
		"health_checks[0].healthy_threshold: is missing: give it a value",
		"health_checks[0].http_health_check.path: is empty or missing: give it a value",
		"health_checks[1].health_checker: is missing: give one of http_health_check, tcp_health_check, grpc_health_check, custom_health_check",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestValidateEnds: a message may have a million faults, and to name one takes far longer than to decode it.
func TestValidateEnds(t *testing.T) {
	const checks, most = 5000, 1000
	cluster := &clusterv3.Cluster{Name: "a", HealthChecks: make([]*corev3.HealthCheck, checks)}
	for i := range cluster.HealthChecks {
		cluster.HealthChecks[i] = &corev3.HealthCheck{}
	}
	if got := len(yamlpb.Validate(cluster)); got != most {
		t.Errorf("%d violations are named, want %d", got, most)
	}
	if got := yamlpb.ValidateExcept(cluster, func(field string) bool { return strings.HasPrefix(field, "health_checks[") }); len(got) != 1 || got[0].Field != "health_checks" {
		t.Errorf("without the health checks, got %v", got)
	}
}

func TestReadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if _, err := yamlpb.ReadFile(file, 3); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(file, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := yamlpb.ReadFile(file, 3); string(data) != "abc" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := yamlpb.ReadFile(file, 2); err == nil || !strings.Contains(err.Error(), "larger than 2") {
		t.Errorf("got %v", err)
	}
}
