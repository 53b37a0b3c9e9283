package envoy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	neighbours  = 2  // plain clusters beside the odd ones, which always have their endpoint
	oddClusters = 60 // in a file

	aType = "'@type': type.googleapis.com/"
	aName = "{endpoint: {address: {socket_address: {address: localhost, port_value: 80}}}}"
)

// oddFile makes a file of odd clusters and assignments. Those of another run have other names.
func oddFile(random *rand.Rand, run int) string {
	var text strings.Builder
	text.WriteString("resources:\n")
	for i := range neighbours {
		listing := `{cluster_name: x, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]}`
		fmt.Fprintf(&text, "- {%senvoy.config.cluster.v3.Cluster, name: neighbour-%d, load_assignment: %s, %s}\n", aType, i, listing, pick(random, `per_connection_buffer_limit_bytes: 1`, soundChecks))
	}
	for i := range oddClusters {
		name := fmt.Sprintf("odd-%d-%d", run, i)
		assignment := protojson.Format(oddAssignment(random, name))
		lines := []string{fmt.Sprintf("name: %s", name)}
		kind := pick(random, kinds...)
		lines = append(lines, strings.ReplaceAll(kind, "$ASSIGNMENT", assignment))
		if strings.HasPrefix(kind, "type: EDS") {
			fmt.Fprintf(&text, "- {%senvoy.config.endpoint.v3.ClusterLoadAssignment, %s\n", aType, strings.TrimPrefix(assignment, "{"))
		}
		all := append(slices.Clone(oddities), soundOnes)
		if !strings.Contains(strings.ToLower(kind), "dns") {
			all[len(all)-1] = oddChecks
		}
		for _, i := range random.Perm(len(all))[:random.IntN(4)] {
			lines = append(lines, pick(random, all[i]...))
		}
		fmt.Fprintf(&text, "- %senvoy.config.cluster.v3.Cluster\n  %s\n", aType, strings.Join(lines, "\n  "))
	}
	return text.String()
}

const (
	checkBy     = "health_checks: [{timeout: 1s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, "
	soundChecks = checkBy + "tcp_health_check: {}}]"
)

// oddChecks are health checks of clusters that are not resolved.
var (
	soundOnes = []string{soundChecks}
	oddChecks = []string{
		soundChecks, soundChecks, soundChecks, soundChecks,
		"health_checks: []",
		"health_checks: [{interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]",
		"health_checks: [{timeout: 1s, interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1}]",
		checkBy + "grpc_health_check: {}}]",
		checkBy + "http_health_check: {path: ''}}]",
		checkBy + "http_health_check: {path: /, expected_statuses: [{start: 300, end: 200}]}}]",
		checkBy + "http_health_check: {path: /, expected_statuses: [{start: 200, end: 201}], retriable_statuses: [{start: 99, end: 100}]}}]",
		checkBy + "http_health_check: {path: /, send: {text: a0}}}]",
		checkBy + "http_health_check: {path: /, method: CONNECT}}]",
		checkBy + "http_health_check: {path: /, host: a.b, request_headers_to_add: [{header: {key: ':path', value: /}}]}}]",
		checkBy + "tcp_health_check: {send: {text: xyz}}}]",
	}
)

// kinds are how a cluster gets its endpoints.
var kinds = []string{
	"type: STATIC\n  load_assignment: $ASSIGNMENT",
	"load_assignment: $ASSIGNMENT",
	"load_assignment: $ASSIGNMENT",
	"type: EDS",
	"type: EDS\n  eds_cluster_config: {eds_config: {ads: {}}}",
	"type: EDS\n  eds_cluster_config: {eds_config: {self: {}}}",
	"type: EDS\n  load_assignment: $ASSIGNMENT",
	"type: STRICT_DNS\n  load_assignment: $ASSIGNMENT",
	"type: STRICT_DNS\n  load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [" + aName + "]}]}",
	"type: LOGICAL_DNS\n  load_assignment: $ASSIGNMENT",
	"type: LOGICAL_DNS\n  load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [" + aName + "]}]}",
	"type: ORIGINAL_DST\n  lb_policy: CLUSTER_PROVIDED",
	"cluster_type: {name: dns, typed_config: {" + aType + "envoy.extensions.clusters.dns.v3.DnsCluster}}\n  load_assignment: {cluster_name: x, endpoints: [{lb_endpoints: [" + aName + "]}]}",
	"cluster_type: {name: envoy.clusters.aggregate, typed_config: {" + aType + "envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [neighbour-0]}}\n  lb_policy: CLUSTER_PROVIDED",
}

// oddities are what a cluster may have, with values of each that are right or wrong.
var oddities = [][]string{
	{"connect_timeout: 1s", "connect_timeout: 0s", "connect_timeout: 0.0001s"},
	{"lb_policy: LEAST_REQUEST", "lb_policy: RANDOM", "lb_policy: RING_HASH", "lb_policy: MAGLEV", "lb_policy: CLUSTER_PROVIDED", "lb_policy: LOAD_BALANCING_POLICY_CONFIG"},
	{"ring_hash_lb_config: {minimum_ring_size: 2, maximum_ring_size: 1}", "ring_hash_lb_config: {minimum_ring_size: 64}", "ring_hash_lb_config: {maximum_ring_size: 8388609}", "ring_hash_lb_config: {hash_function: MURMUR_HASH_2}",
		"maglev_lb_config: {table_size: 100}", "maglev_lb_config: {table_size: 101}", "maglev_lb_config: {table_size: 5000012}",
		"least_request_lb_config: {choice_count: 1}", "least_request_lb_config: {choice_count: 5, active_request_bias: {default_value: 0.5, runtime_key: a}}",
		"least_request_lb_config: {slow_start_config: {slow_start_window: 0s}}",
		"round_robin_lb_config: {slow_start_config: {slow_start_window: 10s, aggression: {default_value: 1.5, runtime_key: a}, min_weight_percent: {value: 5}}}",
		"round_robin_lb_config: {slow_start_config: {slow_start_window: 10s, min_weight_percent: {value: 101}}}",
		"round_robin_lb_config: {slow_start_config: {slow_start_window: 10s, aggression: {default_value: 0, runtime_key: a}}}",
		"round_robin_lb_config: {slow_start_config: {slow_start_window: 10s, aggression: {default_value: 1}}}",
		"original_dst_lb_config: {use_http_header: true}", "original_dst_lb_config: {http_header_name: x}", "original_dst_lb_config: {upstream_port_override: 65536}",
	},
	{"lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [a]}]}",
		"lb_subset_config: {subset_selectors: [{keys: []}]}", "lb_subset_config: {subset_selectors: []}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], single_host_per_subset: true}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a], single_host_per_subset: true}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a], single_host_per_subset: true}, {keys: [b]}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a]}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [a, b]}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c]}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_policy: KEYS_SUBSET}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a, b], fallback_keys_subset: [a]}]}",
		"lb_subset_config: {subset_selectors: [{keys: [a]}, {keys: [a]}], fallback_policy: DEFAULT_SUBSET, default_subset: {a: b}}",
		"lb_subset_config: {subset_selectors: [{keys: [a]}], locality_weight_aware: true, scale_locality_weight: true, panic_mode_any: true, list_as_any: true, metadata_fallback_policy: FALLBACK_LIST}",
	},
	{"common_lb_config: {healthy_panic_threshold: {value: 101}}", "common_lb_config: {healthy_panic_threshold: {value: 0}}",
		"common_lb_config: {zone_aware_lb_config: {routing_enabled: {value: 50}, min_cluster_size: 0, fail_traffic_on_panic: true}}",
		"common_lb_config: {zone_aware_lb_config: {routing_enabled: {value: 101}}}",
		"common_lb_config: {locality_weighted_lb_config: {}}", "common_lb_config: {update_merge_window: 0s}", "common_lb_config: {update_merge_window: 60s}",
		"common_lb_config: {ignore_new_hosts_until_first_hc: true, close_connections_on_host_set_change: true}",
		"common_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 99}}",
		"common_lb_config: {consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 150}}",
		"common_lb_config: {override_host_status: {statuses: [HEALTHY, TIMEOUT, DRAINING]}}", "common_lb_config: {override_host_status: {statuses: [9]}}",
	},
	{"circuit_breakers: {thresholds: [{priority: HIGH, max_connections: 0, track_remaining: true, retry_budget: {budget_percent: {value: 20}}}, {priority: HIGH}]}",
		"circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 101}}}]}", "circuit_breakers: {thresholds: [{priority: 7}]}",
		"circuit_breakers: {per_host_thresholds: [{max_connections: 1}]}", "circuit_breakers: {per_host_thresholds: [{max_connections: 1, max_requests: 1}]}",
		"circuit_breakers: {per_host_thresholds: [{max_requests: 1}, {retry_budget: {}}]}",
	},
	{"outlier_detection: {}", "outlier_detection: {interval: 0s}", "outlier_detection: {max_ejection_percent: 101}", "outlier_detection: {max_ejection_time: 29s}",
		"outlier_detection: {consecutive_5xx: 0, enforcing_success_rate: 100, success_rate_stdev_factor: 0}", "outlier_detection: {enforcing_consecutive_5xx: 101}",
		"outlier_detection: {split_external_local_origin_errors: true, always_eject_one_host: true, max_ejection_time_jitter: 5s}", "outlier_detection: {base_ejection_time: 0s}",
	},
	{"dns_refresh_rate: 0s", "dns_refresh_rate: 0.0005s", "dns_refresh_rate: 5s", "dns_failure_refresh_rate: {base_interval: 5s, max_interval: 4s}", "dns_failure_refresh_rate: {base_interval: 5s, max_interval: 5s}",
		"dns_failure_refresh_rate: {base_interval: 0s}", "dns_lookup_family: ALL", "dns_lookup_family: 9", "respect_dns_ttl: true", "dns_jitter: 1s", "use_tcp_for_dns_lookups: true",
		"dns_resolvers: [{socket_address: {address: 127.0.0.1, port_value: 53}}]", "wait_for_warm_on_init: false",
		"eds_cluster_config: {eds_config: {ads: {}}}",
	},
	{"metadata: {filter_metadata: {envoy.lb: {a: b}}}", "metadata: {filter_metadata: {x: {a: [1, null, {b: true}]}}, typed_filter_metadata: {y: {" + aType + "google.protobuf.Duration, value: 5s}}}"},
	{"transport_socket_matches: [{name: a, match: {x: y}, transport_socket: {name: envoy.transport_sockets.raw_buffer, typed_config: {" + aType + "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}]",
		"transport_socket_matches: [{match: {x: y}, transport_socket: {name: a}}]", "transport_socket_matches: [{name: a, match: {x: y}}]",
		"transport_socket: {name: envoy.transport_sockets.tls, typed_config: {" + aType + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: a.b}}",
		"transport_socket: {name: envoy.transport_sockets.tls}", "transport_socket: {}",
	},
	{"load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" + aType + "envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}}]}",
		"load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" + aType + "envoy.extensions.load_balancing_policies.maglev.v3.Maglev}}}]}",
		"load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" + aType + "google.protobuf.Duration, value: 5s}}}, {typed_extension_config: {name: y, typed_config: {" + aType + "envoy.extensions.load_balancing_policies.random.v3.Random}}}]}",
		"load_balancing_policy: {}", "load_balancing_policy: {policies: [{}]}",
	},
	{"typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {" + aType + "envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}",
		"typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {" + aType + "envoy.extensions.upstreams.http.v3.HttpProtocolOptions}}",
		"http2_protocol_options: {}", "http2_protocol_options: {max_concurrent_streams: 0}", "http_protocol_options: {}", "upstream_http_protocol_options: {auto_sni: true}",
		"common_http_protocol_options: {idle_timeout: 1s, max_headers_count: 0}", "protocol_selection: USE_DOWNSTREAM_PROTOCOL",
	},
	{"upstream_bind_config: {}", "upstream_bind_config: {source_address: {address: 127.0.0.1, port_value: 0}}", "upstream_bind_config: {source_address: {address: a.b, port_value: 0}}",
		"upstream_bind_config: {source_address: {address: 127.0.0.1, port_value: 0}, extra_source_addresses: [{address: {address: '::1', port_value: 0}}]}",
		"upstream_bind_config: {source_address: {address: 127.0.0.1, port_value: 0}, extra_source_addresses: [{address: {address: 127.0.0.1, port_value: 0}}]}",
		"upstream_bind_config: {source_address: {address: 127.0.0.1, port_value: 0}, additional_source_addresses: [{address: '::1', port_value: 0}]}",
		"upstream_connection_options: {tcp_keepalive: {keepalive_time: 5}}", "upstream_connection_options: {happy_eyeballs_config: {first_address_family_count: 0}}",
	},
	{"preconnect_policy: {per_upstream_preconnect_ratio: 0.5}", "preconnect_policy: {per_upstream_preconnect_ratio: 3}", "preconnect_policy: {predictive_preconnect_ratio: 1.5}",
		"lrs_server: {self: {}}", "lrs_server: {ads: {}}", "track_cluster_stats: {request_response_sizes: true, timeout_budgets: true}", "alt_stat_name: a", "per_connection_buffer_limit_bytes: 0",
		"max_requests_per_connection: 0", "cleanup_interval: 0s", "cleanup_interval: 1s", "connection_pool_per_downstream_connection: true", "ignore_health_on_host_removal: true", "close_connections_on_host_health_failure: true",
	},
}

// oddAssignment makes an assignment with odd endpoints and localities.
func oddAssignment(random *rand.Rand, name string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for i := range random.IntN(4) {
		group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: pick(random, "", "a", "b")}}
		switch {
		case random.IntN(48) == 0:
			group.Priority = 129
		case i > 0:
			group.Priority = a.Endpoints[i-1].GetPriority() + pick(random, uint32(0), 1)
		}
		if random.IntN(6) == 0 {
			group.LoadBalancingWeight = wrapperspb.UInt32(pick(random, uint32(1), 3, math.MaxUint32))
		}
		if random.IntN(12) == 0 {
			group.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb": {}}}
		}
		for range random.IntN(4) {
			group.LbEndpoints = append(group.LbEndpoints, oddEndpoint(random))
		}
		a.Endpoints = append(a.Endpoints, group)
	}
	if random.IntN(4) == 0 {
		a.Policy = &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			a.Policy.OverprovisioningFactor = wrapperspb.UInt32(pick(random, uint32(0), 1, 140, math.MaxUint32))
		}
		for range random.IntN(3) {
			a.Policy.DropOverloads = append(a.Policy.DropOverloads, &endpointv3.ClusterLoadAssignment_Policy_DropOverload{
				Category:       pick(random, "", "a"),
				DropPercentage: &typev3.FractionalPercent{Numerator: pick(random, uint32(0), 5, 101), Denominator: pick(random, typev3.FractionalPercent_HUNDRED, typev3.FractionalPercent_TEN_THOUSAND)},
			})
		}
	}
	if random.IntN(8) == 0 {
		a.NamedEndpoints = map[string]*endpointv3.Endpoint{"x": {Address: socketAddress(random)}}
	}
	return a
}

func oddEndpoint(random *rand.Rand) *endpointv3.LbEndpoint {
	if random.IntN(8) == 0 {
		return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}}
	}
	endpoint := &endpointv3.Endpoint{Address: oddAddress(random), Hostname: pick(random, "", "a.b")}
	if random.IntN(4) == 0 {
		endpoint.AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: socketAddress(random)}}
	}
	if random.IntN(4) == 0 {
		endpoint.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: pick(random, uint32(0), 80, 65536)}
	}
	e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}}
	if random.IntN(3) == 0 {
		e.LoadBalancingWeight = wrapperspb.UInt32(pick(random, uint32(0), 1, 7, math.MaxUint16, math.MaxUint32))
	}
	return e
}

func oddAddress(random *rand.Rand) *corev3.Address {
	switch random.IntN(12) {
	case 0, 1:
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: pick(random, "/a", "@a", "/"+strings.Repeat("a", 120)), Mode: pick(random, uint32(0), 0o600)}}}
	case 2:
		return &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
			AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: "x"}, EndpointId: pick(random, "", "a"),
		}}}
	}
	return socketAddress(random)
}

func socketAddress(random *rand.Rand) *corev3.Address {
	s := &corev3.SocketAddress{
		Address:       pick(random, "127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2", "::1", "0:0::1", "a.b", "127.000.0.1"),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: pick(random, uint32(80), 81, 80, 81, 65535, 65536)},
	}
	if random.IntN(12) == 0 {
		s.PortSpecifier = &corev3.SocketAddress_NamedPort{NamedPort: "http"}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: s}}
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }
