package envoy

import "strings"

// Refusal is a cluster in YAML that Envoy cannot build, or just can: Field is
// what is wrong with it, none where Envoy takes it.
type Refusal struct{ Fields, Field string }

const (
	oneEndpoint = "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80}}}}"
	oneName     = "{endpoint: {address: {socket_address: {address: a.b, port_value: 80}}}}"
	roundRobin  = "load_balancing_policy: {policies: [{typed_extension_config: {name: x, " +
		"typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}}]}"
)

const dnsType = "cluster_type: {name: envoy.clusters.dns, typed_config: {'@type': type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster}}\n" +
	"load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [" + oneEndpoint + "]}]}"

const aggregate = "cluster_type: {name: envoy.clusters.aggregate, typed_config: {" +
	"'@type': type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [other]}}"

func policy(fields string) string {
	return "load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [" + oneEndpoint + "]}], policy: {" + fields + "}}"
}

func selector(fallback string) string {
	return "lb_subset_config: {subset_selectors: [{keys: [a, b], " + fallback + "}]}"
}

func source(more string) string {
	return "upstream_bind_config: {source_address: {address: 127.0.0.1, port_value: 0}" + more + "}"
}

func check(kind string) string {
	return "health_checks: [{timeout: 1s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, " + kind + "}]"
}

func httpOptions(more string) string {
	const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	return "typed_extension_protocol_options: {" + name + ": {'@type': type.googleapis.com/" + name + more + "}}"
}

func listing(endpoints string) string {
	return "load_assignment: {cluster_name: x, endpoints: [" + endpoints + "]}"
}

// Refusals are clusters that envoy/rules refuses, since every Envoy does, each
// beside its like that Envoy takes.
func Refusals() []Refusal {
	subset := "lb_subset_config: {subset_selectors: [{keys: [a]}]}"
	return []Refusal{
		{"type: ORIGINAL_DST", "lb_policy"},
		{"type: ORIGINAL_DST\nlb_policy: LEAST_REQUEST", "lb_policy"},
		{"type: ORIGINAL_DST\nlb_policy: LOAD_BALANCING_POLICY_CONFIG\n" + roundRobin, "lb_policy"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED", ""},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + listing(""), "load_assignment"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {http_header_name: x}", "original_dst_lb_config.http_header_name"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\noriginal_dst_lb_config: {http_header_name: x, use_http_header: true}", ""},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + subset, "lb_subset_config"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\nlb_subset_config: {}", ""},
		{"lb_policy: CLUSTER_PROVIDED", "lb_policy"},
		{"type: STRICT_DNS\nlb_policy: CLUSTER_PROVIDED", "lb_policy"},
		{"type: EDS\nlb_policy: CLUSTER_PROVIDED\neds_cluster_config: {eds_config: {ads: {}}}", "lb_policy"},
		{"lb_policy: CLUSTER_PROVIDED\n" + roundRobin, ""},
		{aggregate + "\nlb_policy: CLUSTER_PROVIDED", ""},
		{"lb_policy: LOAD_BALANCING_POLICY_CONFIG", "load_balancing_policy"},
		{"lb_policy: LOAD_BALANCING_POLICY_CONFIG\n" + roundRobin, ""},
		{subset + "\n" + roundRobin, "lb_subset_config"},
		{subset, ""},
		{"common_lb_config: {locality_weighted_lb_config: {}}\n" + roundRobin, "common_lb_config"},
		{"common_lb_config: {zone_aware_lb_config: {}}\n" + roundRobin, "common_lb_config"},
		{"common_lb_config: {consistent_hashing_lb_config: {}}\n" + roundRobin, "common_lb_config"},
		{"common_lb_config: {healthy_panic_threshold: {value: 5}}\n" + roundRobin, ""},
		{"lb_policy: RING_HASH\nring_hash_lb_config: {maximum_ring_size: 1023}", "ring_hash_lb_config"},
		{"lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 2, maximum_ring_size: 1}", "ring_hash_lb_config"},
		{"lb_policy: RING_HASH\nring_hash_lb_config: {maximum_ring_size: 1024}", ""},
		{"lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 2, maximum_ring_size: 1}\n" + roundRobin, ""},
		{"ring_hash_lb_config: {minimum_ring_size: 2, maximum_ring_size: 1}", ""},
		{"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 100}", "maglev_lb_config.table_size"},
		{"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 0}", "maglev_lb_config.table_size"},
		{"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 1}", ""},
		{"lb_policy: MAGLEV\nmaglev_lb_config: {table_size: 101}", ""},
		{"maglev_lb_config: {table_size: 100}", ""},
		{"type: LOGICAL_DNS", "load_assignment"},
		{"type: LOGICAL_DNS\n" + listing(""), "load_assignment"},
		{"type: LOGICAL_DNS\n" + listing("{lb_endpoints: ["+oneName+", "+oneName+"]}"), "load_assignment"},
		{"type: LOGICAL_DNS\n" + listing("{lb_endpoints: ["+oneName+"]}, {locality: {zone: a}}"), "load_assignment"},
		{"type: LOGICAL_DNS\n" + listing("{lb_endpoints: ["+oneName+"]}"), ""},
		{"type: STRICT_DNS\n" + listing("{lb_endpoints: ["+oneName+", "+oneEndpoint+"]}"), ""},
		{"eds_cluster_config: {eds_config: {ads: {}}}", "eds_cluster_config"},
		{"type: STRICT_DNS\neds_cluster_config: {}", "eds_cluster_config"},
		{"type: EDS\neds_cluster_config: {eds_config: {ads: {}}}\n" + listing("{lb_endpoints: ["+oneEndpoint+"]}"), ""},
		{"type: STRICT_DNS\ndns_failure_refresh_rate: {base_interval: 5s, max_interval: 4s}", "dns_failure_refresh_rate"},
		{"type: STRICT_DNS\ndns_failure_refresh_rate: {base_interval: 5s}", ""},
		{"dns_failure_refresh_rate: {base_interval: 5s, max_interval: 4s}", ""},
		{"outlier_detection: {max_ejection_time: 29s}", "outlier_detection.max_ejection_time"},
		{"outlier_detection: {max_ejection_time: 30s}", ""},
		{"outlier_detection: {base_ejection_time: 1s, max_ejection_time: 1s}", ""},
		{"outlier_detection: {base_ejection_time: 301s}", ""},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + roundRobin, "load_balancing_policy"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\nload_balancing_policy: {policies: [{typed_extension_config: {name: x, " +
			"typed_config: {'@type': type.googleapis.com/envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided}}}]}", ""},
		{aggregate + "\nlb_policy: RANDOM", "lb_policy"},
		{aggregate + "\nlb_policy: CLUSTER_PROVIDED\n" + roundRobin, "load_balancing_policy"},
		{policy("overprovisioning_factor: 1, drop_overloads: [{category: a, drop_percentage: {numerator: 100}}]"), ""},
		{policy("drop_overloads: [{category: a, drop_percentage: {numerator: 101}}]"), "load_assignment.policy.drop_overloads[0].drop_percentage"},
		{policy("drop_overloads: [{category: a}, {category: b}]"), "load_assignment.policy.drop_overloads"},
		{"load_balancing_policy: {}", "load_balancing_policy.policies"},
		{"load_balancing_policy: {policies: [{}]}", "load_balancing_policy.policies"},
		{"load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {'@type': type.googleapis.com/google.protobuf.Duration, value: 1s}}}, " +
			strings.TrimPrefix(roundRobin, "load_balancing_policy: {policies: ["), ""},
		{dnsType + "\nlb_policy: CLUSTER_PROVIDED", "lb_policy"},
		{dnsType + "\neds_cluster_config: {}", "eds_cluster_config"},
		{dnsType, ""},
		{selector("fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a]"), ""},
		{selector("fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a, b]"), "lb_subset_config.subset_selectors"},
		{selector("fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c]"), "lb_subset_config.subset_selectors"},
		{selector("fallback_policy: KEYS_SUBSET"), "lb_subset_config.subset_selectors"},
		{selector("fallback_keys_subset: [a]"), "lb_subset_config.subset_selectors"},
		{"lb_subset_config: {subset_selectors: [{keys: [a]}], locality_weight_aware: true}", "lb_subset_config.locality_weight_aware"},
		{"lb_subset_config: {subset_selectors: [{keys: [a]}], locality_weight_aware: true}\ncommon_lb_config: {locality_weighted_lb_config: {}}", ""},
		{"lb_subset_config: {locality_weight_aware: true}", "lb_subset_config.locality_weight_aware"},
		{"common_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true}}", "common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing"},
		{"type: STRICT_DNS\ncommon_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true}}", ""},
		{"common_lb_config: {consistent_hashing_lb_config: {hash_balance_factor: 150}}", ""},
		{"circuit_breakers: {per_host_thresholds: [{max_connections: 1, retry_budget: {}}]}", "circuit_breakers.per_host_thresholds"},
		{"circuit_breakers: {per_host_thresholds: [{max_requests: 1}]}", "circuit_breakers.per_host_thresholds"},
		{"circuit_breakers: {per_host_thresholds: [{max_connections: 1, track_remaining: true}]}", ""},
		{"circuit_breakers: {per_host_thresholds: [{max_connections: 1}, {priority: HIGH, max_connections: 0}, {}]}", ""},
		{"transport_socket: {name: envoy.transport_sockets.raw_buffer}", "transport_socket.typed_config"},
		{"transport_socket_matches: [{name: a, match: {x: y}, transport_socket: {name: envoy.transport_sockets.raw_buffer}}]", "transport_socket_matches"},
		{"transport_socket_matches: [{name: a, match: {x: y}}]", "transport_socket_matches"},
		{httpOptions(""), "typed_extension_protocol_options.envoy.extensions.upstreams.http.v3.HttpProtocolOptions"},
		{httpOptions(", explicit_http_config: {http2_protocol_options: {}}"), ""},
		{"upstream_bind_config: {}", ""},
		{"upstream_bind_config: {source_address: {address: a.b, port_value: 0}}", "upstream_bind_config"},
		{source(""), ""},
		{source(", extra_source_addresses: [{address: {address: '::1', port_value: 0}}]"), ""},
		{source(", extra_source_addresses: [{address: {address: 127.0.0.2, port_value: 0}}]"), "upstream_bind_config"},
		{source(", additional_source_addresses: [{address: '::1', port_value: 0}]"), ""},
		{"upstream_bind_config: {extra_source_addresses: [{address: {address: 127.0.0.2, port_value: 0}}]}", "upstream_bind_config"},
		{check("http_health_check: {path: /, expected_statuses: [{start: 100, end: 600}]}"), ""},
		{check("http_health_check: {path: /, expected_statuses: [{start: 200, end: 200}]}"), "health_checks[0].http_health_check.expected_statuses"},
		{check("http_health_check: {path: /, expected_statuses: [{start: 99, end: 200}]}"), "health_checks[0].http_health_check.expected_statuses"},
		{check("http_health_check: {path: /, retriable_statuses: [{start: 200, end: 601}]}"), "health_checks[0].http_health_check.retriable_statuses"},
		{check("http_health_check: {path: /, send: {text: a0}}"), "health_checks[0].http_health_check.send"},
		{check("http_health_check: {path: /, method: POST, send: {text: a0}}"), ""},
		{check("http_health_check: {path: /, request_headers_to_add: [{header: {key: ':path', value: /}}]}"), "health_checks[0].http_health_check.request_headers_to_add"},
		{check("http_health_check: {path: /, request_headers_to_add: [{header: {key: Host, value: a}}]}"), "health_checks[0].http_health_check.request_headers_to_add"},
		{check("http_health_check: {path: /, request_headers_to_remove: [host]}"), "health_checks[0].http_health_check.request_headers_to_remove"},
		{check("http_health_check: {path: /, request_headers_to_add: [{header: {key: hosts, value: a}}]}"), ""},
		{check("http_health_check: {path: /, codec_client_type: HTTP2}"), ""},
		{check("tcp_health_check: {send: {text: xyz}}"), "health_checks[0].payload"},
		{check("tcp_health_check: {receive: [{text: abc}]}"), "health_checks[0].payload"},
		{check("tcp_health_check: {send: {text: aF}, receive: [{text: '00'}]}"), ""},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + check("grpc_health_check: {}"), "health_checks"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\nhttp2_protocol_options: {}\n" + check("grpc_health_check: {}"), ""},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + httpOptions(", explicit_http_config: {http_protocol_options: {}}") + "\n" + check("grpc_health_check: {}"), "health_checks"},
		{"type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + httpOptions(", use_downstream_protocol_config: {http2_protocol_options: {}}") + "\n" + check("grpc_health_check: {}"), ""},
	}
}

// YAML is the cluster within a bootstrap.
func (r Refusal) YAML() []byte { return Bootstrap(Spelling{Form: "yaml", Fields: r.Fields}) }

// Endpoint is an endpoint in YAML that Envoy takes or not, in a STATIC cluster
// and by EDS. hdsd gives on what it takes.
type Endpoint struct {
	Endpoint    string
	Static, EDS bool
}

// Endpoints are what may be wrong with one endpoint alone.
func Endpoints() []Endpoint {
	const ip = "address: {socket_address: {address: 127.0.0.1, port_value: 80}}"
	pipe := func(path, more string) string {
		return "endpoint: {address: {pipe: {path: '" + path + "'" + more + "}}}"
	}
	return []Endpoint{
		{"endpoint: {" + ip + "}", true, true},
		{"endpoint: {address: {socket_address: {address: 'fe80::1%eth0', port_value: 80}}}", true, true},
		{"endpoint: {address: {socket_address: {address: a.b, port_value: 80}}}", false, false},
		{"endpoint: {address: {socket_address: {address: 127.000.0.1, port_value: 80}}}", false, false},
		{"endpoint: {address: {socket_address: {address: 127.0.0.1, named_port: http}}}", false, false},
		{"endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 99999}}}", false, false},
		{"endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80, resolver_name: envoy.ip}}}", true, true},
		{"endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80, resolver_name: x}}}", false, false},
		{"endpoint: {}", false, false},
		{"endpoint_name: x", false, false},
		{"metadata: {}", false, false},
		{"endpoint: {" + ip + ", additional_addresses: [{address: {socket_address: {address: '::1', port_value: 80}}}]}", true, true},
		{"endpoint: {" + ip + ", additional_addresses: [{address: {socket_address: {address: a.b, port_value: 80}}}]}", false, false},
		{"endpoint: {" + ip + ", additional_addresses: [{}]}", false, false},
		{"endpoint: {" + ip + ", health_check_config: {address: {socket_address: {address: 127.0.0.2, port_value: 80}}}}", true, true},
		{"endpoint: {" + ip + ", health_check_config: {address: {socket_address: {address: a.b, port_value: 80}}}}", false, false},
		{pipe("/a", ""), true, true},
		{pipe("@a", ""), true, true},
		{pipe("/a", ", mode: 0600"), true, true},
		{pipe("@a", ", mode: 0600"), false, false},
		{pipe("/"+strings.Repeat("a", 106), ""), true, true},
		{pipe("/"+strings.Repeat("a", 107), ""), false, false},
		{"endpoint: {address: {pipe: {path: /a}}, health_check_config: {port_value: 80}}", false, false},
		{"endpoint: {address: {pipe: {path: /a}}, health_check_config: {hostname: a}}", true, true},
		{"endpoint: {address: {envoy_internal_address: {server_listener_name: x}}, health_check_config: {port_value: 80}}", false, false},
		{"endpoint: {address: {envoy_internal_address: {server_listener_name: x}}}", true, true},
	}
}

// Assignment is what there is of an assignment with the endpoint alone.
func (e Endpoint) Assignment(name string) string {
	return "cluster_name: " + name + ", endpoints: [{lb_endpoints: [{" + e.Endpoint + "}]}]"
}
