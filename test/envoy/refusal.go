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

func listing(endpoints string) string {
	return "load_assignment: {cluster_name: x, endpoints: [" + endpoints + "]}"
}

// Refusals are clusters that internal/envoyrules refuses, since every Envoy does, each
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
		{"cluster_type: {name: envoy.clusters.aggregate, typed_config: {'@type': type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [other]}}\nlb_policy: CLUSTER_PROVIDED", ""},
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
		{"endpoint: {address: {envoy_internal_address: {server_listener_name: x}}}", true, true},
	}
}

// Assignment is what there is of an assignment with the endpoint alone.
func (e Endpoint) Assignment(name string) string {
	return "cluster_name: " + name + ", endpoints: [{lb_endpoints: [{" + e.Endpoint + "}]}]"
}
