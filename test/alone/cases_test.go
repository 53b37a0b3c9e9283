package alone

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// check is a fast check that leaves upstreams on a busy machine the time to answer.
const check = `{timeout: 2s, interval: 0.25s, no_traffic_interval: 0.25s, no_traffic_healthy_interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`

// noPanic makes requests fail where no endpoint is up, instead of going anywhere. What the
// admin interface shows of an endpoint counts for requests at once.
const noPanic = "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s}"

// static is a STATIC cluster with endpoints in the zone a. More are its other fields.
func static(endpoints string, more ...string) string {
	return "name: $name\ntype: STATIC\nconnect_timeout: 1s\n" + strings.Join(more, "\n") +
		"\nload_assignment: " + assignment(endpoints)
}

// eds is an EDS cluster.
func eds(more ...string) string {
	return "name: $name\ntype: EDS\nconnect_timeout: 1s\neds_cluster_config: {eds_config: $eds}\n" + strings.Join(more, "\n")
}

// assignment has endpoints in the zone a. More are its other fields.
func assignment(endpoints string, more ...string) string {
	return localities("{locality: {region: eu, zone: a}, lb_endpoints: ["+endpoints+"]}", more...)
}

// localities is an assignment.
func localities(groups string, more ...string) string {
	return fmt.Sprintf("{cluster_name: $name, endpoints: [%s]%s}", groups, strings.Join(append([]string{""}, more...), ", "))
}

func checks(text string) string { return "health_checks: [" + text + "]" }

// with is the usual check with some of its text replaced.
func with(replacements ...string) string {
	return checks(strings.NewReplacer(replacements...).Replace(check))
}

var broken = upstream.Status(http.StatusServiceUnavailable)

// endpoint fails of three, and comes back.
func failing(b upstream.Behaviour) []Step {
	return []Step{
		Ready(), Send(60), Failing(20, Set(1, b), Down(1)), Send(60),
		During(20, Set(1, upstream.Healthy()), Up(1)), Send(60),
	}
}

// failures are endpoints that fail in each way, by each kind of check.
var failures = []Case{
	{Name: "answers 503", Cluster: static("$0, $1, $2", checks(check), noPanic), Steps: failing(broken), Want: Same},
	{Name: "hangs", Cluster: static("$0, $1, $2", with("timeout: 2s", "timeout: 1s"), noPanic), Steps: failing(upstream.Hang()), Want: Same},
	{Name: "refuses", Cluster: static("$0, $1, $2", checks(check), noPanic), Steps: failing(upstream.Refuse()), Want: Same},
	{Name: "resets", Cluster: static("$0, $1, $2", checks(check), noPanic), Steps: failing(upstream.Reset()), Want: Same},
	{Name: "EDS", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1, $2"), Steps: failing(broken), Want: Same},
	{
		Name: "no connection is reused", Cluster: static("$0, $1, $2", with("timeout", "reuse_connection: false, timeout"), noPanic),
		Steps: failing(broken), Want: Same,
	},
	{
		Name: "TCP refuses", Cluster: static("$0, $1, $2", with("http_health_check: {path: /healthz}", "tcp_health_check: {}"), noPanic),
		Steps: failing(upstream.Refuse()), Want: Same,
	},
	{
		Name: "all fail without panic", Cluster: static("$0, $1", checks(check), noPanic), Want: Same,
		Steps: []Step{Ready(), Set(0, broken), Set(1, broken), Down(0, 1), Send(20), Set(0, upstream.Healthy()), Up(0), Send(20)},
	},
	{
		Name: "panic", Cluster: static("$0, $1, $2", checks(check), "common_lb_config: {update_merge_window: 0s}"), Want: Same,
		Steps: []Step{Ready(), Set(0, broken), Set(1, broken), Down(0, 1), Send(300)},
	},
	{ // A checker that went by no_traffic_interval would find a recovery later than a test waits. So would an Envoy
		// whose first probe timed out, on a busy machine.
		Name: "interval with traffic", Want: Same,
		Cluster: static("$0, $1", with("timeout: 2s", "timeout: 20s", "no_traffic_interval: 0.25s, no_traffic_healthy_interval: 0.25s", "no_traffic_interval: 90s, no_traffic_healthy_interval: 5s"), noPanic),
		Steps:   []Step{Ready(), Send(20), Failing(20, Set(1, broken), Down(1)), Send(20), During(20, Set(1, upstream.Healthy()), Up(1)), Send(20)},
	},
	{ // Envoys before 1.39 do not report the code of the latest probe alone.
		Name: "degraded", Cluster: static("$0, $1", checks(check), noPanic), Want: Same, On: map[string]Verdict{"1.36.4": Differs, "1.38.3": Differs},
		Steps: []Step{
			Ready(), Set(0, degraded()), Set(1, degraded()), Eventually("both to be degraded", func(p *Play, plane Plane) bool {
				return p.countsDegraded(plane) == 2
			}), Send(40),
		},
	},
	{
		Name: "Redis", On: map[string]Verdict{"1.36.4": "", "1.38.3": ""}, // their checkers cannot
		Upstream: upstream.Options{Protocol: upstream.TCP, Behaviour: upstream.Behaviour{Raw: []byte("+PONG\r\n")}}, Want: Same,
		Cluster: static("$0, $1", with("http_health_check: {path: /healthz}", `custom_health_check: {name: envoy.health_checkers.redis, typed_config: {"@type": type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis}}`), noPanic),
		Steps:   []Step{Ready(), Set(1, upstream.Behaviour{Raw: []byte("-LOADING not yet\r\n")}), Down(1), Up(0)},
	},
	{
		Name: "TCP payloads", Upstream: upstream.Options{Protocol: upstream.TCP}, Want: Same, // which echoes
		Cluster: static("$0, $1", with("http_health_check: {path: /healthz}", "tcp_health_check: {send: {text: '6869'}, receive: [{binary: aGk=}]}"), noPanic),
		Steps:   []Step{Ready(), Set(1, upstream.Behaviour{Raw: []byte("no")}), Down(1), Up(0), Set(1, upstream.Healthy()), Up(1)},
	},
	{
		Name: "TCP payloads without reuse", Upstream: upstream.Options{Protocol: upstream.TCP}, Want: Same,
		Cluster: static("$0, $1", with("http_health_check: {path: /healthz}", "reuse_connection: false, tcp_health_check: {send: {text: '6869'}, receive: [{binary: aGk=}]}"), noPanic),
		Steps:   []Step{Ready(), Set(1, upstream.Behaviour{Raw: []byte("no")}), Down(1), Up(0), Set(1, upstream.Healthy()), Up(1)},
	},
	{
		Name: "TCP hangs", Upstream: upstream.Options{Protocol: upstream.TCP}, Want: Same,
		Cluster: static("$0, $1", with("timeout: 2s", "timeout: 1s", "http_health_check: {path: /healthz}", "tcp_health_check: {send: {text: '6869'}, receive: [{binary: aGk=}]}"), noPanic),
		Steps:   []Step{Ready(), Set(1, upstream.Hang()), Down(1), Up(0), Set(1, upstream.Healthy()), Up(1)},
	},
	{ // Envoy counts up to a threshold, so that one of 0 is never reached.
		Name: "a healthy_threshold of 0", Cluster: static("$0, $1", with(" healthy_threshold: 1", " healthy_threshold: 0"), noPanic), Want: Differs,
		Steps: []Step{upThrough, Set(1, broken), Down(1), Set(1, upstream.Healthy()), upThrough, Note("down", func(p *Play, plane Plane) string {
			return fmt.Sprint(p.hosts(plane)[p.up(1).Addr()].Failed())
		})},
	},
	{
		Name: "an unhealthy_threshold of 0", Cluster: static("$0, $1", with("unhealthy_threshold: 2", "unhealthy_threshold: 0"), noPanic), Want: Differs,
		Steps: []Step{Ready(), Set(1, upstream.Refuse()), Await(Through, "endpoint 1 to be down", func(p *Play) bool { return p.hosts(Through)[p.up(1).Addr()].Failed() }), Send(40)},
	},
	{ // Played short: a source that forgets to remove it, for a day, is no other.
		Name: "a dead endpoint stays listed", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1, $2"), Want: Same,
		Steps: []Step{Ready(), Set(1, upstream.Refuse()), Down(1), During(500), Change("", assignment("$0, $1, $2, $3")), Up(0, 2, 3), Down(1), Send(40)},
	},
	{
		Name: "TLS", Upstream: upstream.Options{Protocol: upstream.HTTPS}, Want: Same,
		Cluster: static("$0, $1", checks(check), noPanic, "transport_socket: "+tlsSocket), Steps: failingTwo,
	},
	{
		Name: "TLS by a match", Upstream: upstream.Options{Protocol: upstream.HTTPS}, Want: Same, Steps: failingTwo,
		Cluster: static("$0, $1", with("timeout", "transport_socket_match_criteria: {tls: true}, timeout"), noPanic,
			"transport_socket_matches: [{name: tls, match: {tls: true}, transport_socket: "+tlsSocket+"}, {name: all, match: {}, transport_socket: "+tlsSocket+"}]"),
	},
}

func degraded() upstream.Behaviour {
	b := upstream.Healthy()
	b.Header = http.Header{"X-Envoy-Degraded": {""}}
	return b
}

// tlsSocket is a transport socket that trusts the upstreams.
const tlsSocket = `{name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context: {trusted_ca: {inline_string: "$ca"}}}}}`

// failingTwo is an endpoint of two that fails and comes back.
var failingTwo = []Step{Ready(), Send(20), Set(1, broken), Down(1), Send(20), Set(1, upstream.Healthy()), Up(1), Send(20)}

// service answers with the name of a service.
func service(name string) upstream.Behaviour {
	b := upstream.Healthy()
	b.Header = http.Header{"X-Envoy-Upstream-Healthchecked-Cluster": {name}}
	return b
}

// replaced replaces all endpoints and connect_timeout n times, ten times a second.
func replaced(n int) []Step {
	var steps []Step
	for i := range n {
		cluster := strings.Replace(eds(checks(check), noPanic), "connect_timeout: 1s", fmt.Sprintf("connect_timeout: %ds", 2+i), 1)
		endpoints := [...]string{"$2, $3", "$0, $1"}[i%2]
		steps = append(steps, Change(cluster, assignment(endpoints)), func(p *Play) {
			pause := time.NewTimer(100 * time.Millisecond) // the pace of a source
			<-pause.C
		})
	}
	return steps
}

// requests are what a check sends and what it accepts.
var requests = []Case{
	{
		Name: "expected_statuses", Want: Same,
		Cluster: static("$0, $1", with("path: /healthz", "path: /healthz, expected_statuses: [{start: 200, end: 205}]"), noPanic),
		Steps:   []Step{Ready(), Set(0, upstream.Status(203)), Set(1, broken), Down(1), Up(0), Send(20)},
	},
	{
		Name: "retriable_statuses", Want: Same,
		Cluster: static("$0, $1", with("path: /healthz", "path: /healthz, retriable_statuses: [{start: 500, end: 504}]"), noPanic),
		Steps:   []Step{Ready(), Set(1, broken), Down(1), Send(20), Set(1, upstream.Healthy()), Up(1), Send(20)},
	},
	{
		Name: "receive", Want: Same,
		Cluster: static("$0, $1", with("path: /healthz", "path: /healthz, receive: [{text: 4f4b}]"), noPanic), // "OK"
		Steps:   []Step{Ready(), Set(1, upstream.Status(203)), Down(1), Send(20)},
	},
	{
		Name: "method and headers", Want: Same,
		Cluster: static("$0, $1", with("path: /healthz", "path: /healthz, method: HEAD, request_headers_to_add: [{header: {key: x-probe, value: a}}], request_headers_to_remove: [user-agent]"), noPanic),
		Steps: []Step{Ready(), Eventually("a HEAD request with its header", func(p *Play, _ Plane) bool {
			last := p.up(0).Last()
			return last.Method == http.MethodHead && last.Header.Get("X-Probe") == "a" && last.Header.Get("User-Agent") == ""
		}), Set(1, broken), Down(1), Send(20)},
	},
	{
		Name: "the Host of a check", Cluster: static("$0, $1", checks(check), noPanic), Want: Same,
		Steps: []Step{Ready(), Note("Host", func(p *Play, plane Plane) string {
			if plane == Alone {
				return p.name
			}
			var hosts []string
			for host := range p.up(0).Stats().Hosts {
				hosts = append(hosts, host)
			}
			return strings.Join(hosts, ", ")
		})},
	},
	{
		Name: "the hostname of an endpoint's check", Want: Same,
		Cluster: static("{endpoint: {address: @0, health_check_config: {hostname: probe.test}}}, $1", checks(check), noPanic),
		Steps: []Step{Ready(), Note("Host", func(p *Play, plane Plane) string {
			if plane == Alone {
				return "probe.test"
			}
			var hosts []string
			for host := range p.up(0).Stats().Hosts {
				hosts = append(hosts, host)
			}
			return strings.Join(hosts, ", ")
		})},
	},
	{
		Name: "the address of an endpoint's check", Want: Same,
		Cluster: static("{endpoint: {address: @0, health_check_config: {address: @2}}}, $1", checks(check), noPanic),
		Steps:   []Step{Up(0, 1), Set(2, broken), Down(0), Send(20), Set(2, upstream.Healthy()), Up(0), Send(20)},
	},
	{
		Name: "disable_active_health_check", Want: Same,
		Cluster: static("{endpoint: {address: @0, health_check_config: {disable_active_health_check: true}}}, $1, $2", checks(check), noPanic),
		Steps:   []Step{Ready(), Set(0, broken), Set(1, broken), Down(1), Send(40)},
	},
	{
		Name: "the port of an endpoint's check", Want: Same,
		Cluster: static("{endpoint: {address: @0, health_check_config: {port_value: #2}}}, $1", checks(check), noPanic),
		Steps:   []Step{Up(0, 1), Set(2, broken), Down(0), Send(20), Set(2, upstream.Healthy()), Up(0), Send(20)},
	},
	{
		Name: "service_name_matcher", Want: Same, Steps: []Step{Down(0, 1), Set(0, service("pay-7")), Up(0), Set(1, service("web")), Down(1), Send(20)},
		Cluster: static("$0, $1", with("path: /healthz", "path: /healthz, service_name_matcher: {prefix: pay}"), noPanic),
	},
	{
		Name: "jitter", Want: Same, Steps: failingTwo,
		Cluster: static("$0, $1", with("timeout", "interval_jitter: 0.05s, interval_jitter_percent: 20, timeout"), noPanic),
	},
}

// weights are who gets how much.
var weights = []Case{
	{
		Name: "weights", Want: Same,
		Cluster: static("{endpoint: {address: @0}, load_balancing_weight: 3}, {endpoint: {address: @1}, load_balancing_weight: 1}, $2", checks(check), noPanic),
		Steps:   []Step{Ready(), Send(100), Set(0, broken), Down(0), Send(100)},
	},
	{
		Name: "weighted localities", Want: Same,
		Cluster: eds(checks(check), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s, locality_weighted_lb_config: {}}"),
		Assignment: localities("{locality: {zone: a}, load_balancing_weight: 3, lb_endpoints: [$0, $1]}, " +
			"{locality: {zone: b}, load_balancing_weight: 1, lb_endpoints: [$2, $3]}"),
		Steps: []Step{Ready(), Send(200), Set(0, broken), Down(0), Send(200)},
	},
	{
		Name: "overprovisioning_factor", Want: Same,
		Cluster: eds(checks(check), noPanic),
		Assignment: localities("{locality: {zone: a}, priority: 0, lb_endpoints: [$0, $1]}, "+
			"{locality: {zone: b}, priority: 1, lb_endpoints: [$2]}", "policy: {overprovisioning_factor: 100}"),
		Steps: []Step{Ready(), Send(40), Set(0, broken), Down(0), Send(400)},
	},
	{
		Name: "weighted_priority_health", Want: Same,
		Cluster: eds(checks(check), noPanic),
		Assignment: localities("{locality: {zone: a}, priority: 0, lb_endpoints: [{endpoint: {address: @0}, load_balancing_weight: 9}, {endpoint: {address: @1}, load_balancing_weight: 1}]}, "+
			"{locality: {zone: b}, priority: 1, lb_endpoints: [$2]}", "policy: {weighted_priority_health: true, overprovisioning_factor: 100}"),
		Steps: []Step{Ready(), Send(40), Set(0, broken), Down(0), Send(400)},
	},
	{
		Name: "drop_overloads", Want: Same,
		Cluster:    eds(checks(check), noPanic),
		Assignment: assignment("$0, $1", "policy: {drop_overloads: [{category: all, drop_percentage: {numerator: 100}}]}"),
		Steps:      []Step{Ready(), Send(20)},
	},
	{
		Name: "slow start", Cluster: static("$0, $1", checks(check), noPanic, "round_robin_lb_config: {slow_start_config: {slow_start_window: 8s}}"),
		Want: Lost, Warn: "round_robin_lb_config.slow_start_config",
		Steps: []Step{Ready(), During(900), Set(1, broken), Down(1), Send(20), Set(1, upstream.Healthy()), Up(1), Send(200)},
	},
	{
		Name: "subsets", Want: Same,
		Cluster: static("{endpoint: {address: @0}, metadata: {filter_metadata: {envoy.lb: {v: '1'}}}}, {endpoint: {address: @1}, metadata: {filter_metadata: {envoy.lb: {v: '1'}}}}, $2",
			checks(check), noPanic, "lb_subset_config: {fallback_policy: DEFAULT_SUBSET, default_subset: {v: '1'}, subset_selectors: [{keys: [v]}]}"),
		Steps: []Step{Ready(), Send(40), Set(0, broken), Down(0), Send(40)},
	},
	{
		Name: "least request", Cluster: static("$0, $1, $2", checks(check), noPanic, "lb_policy: LEAST_REQUEST", "least_request_lb_config: {choice_count: 2}"), Want: Same,
		Steps: []Step{Ready(), Set(0, broken), Down(0), During(60)},
	},
	{
		Name: "a hash ring", Cluster: static("$0, $1, $2", checks(check), noPanic, "lb_policy: RING_HASH", "ring_hash_lb_config: {minimum_ring_size: 64}"), Want: Same,
		Steps: []Step{Ready(), Set(0, broken), Down(0), During(60)},
	},
	{
		Name: "Maglev", Cluster: static("$0, $1, $2", checks(check), noPanic, "lb_policy: MAGLEV", "maglev_lb_config: {table_size: 127}"), Want: Same,
		Steps: []Step{Ready(), Set(0, broken), Down(0), During(60)},
	},
	{
		Name: "a load balancing policy", Want: Same, Steps: []Step{Ready(), Send(60), Set(0, broken), Down(0), Send(60)},
		Cluster: static("$0, $1, $2", checks(check), noPanic, `load_balancing_policy: {policies: [{typed_extension_config: {name: rr, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}}]}`),
	},
	{
		Name: "one address three times", Cluster: static("$0, $0, $0, $1", checks(check), noPanic), Want: Same, Warn: "more than once",
		Steps: []Step{Ready(), Send(200), Set(1, broken), Down(1), Send(40)},
	},
}

// moves are endpoints and settings that change.
var moves = []Case{
	{
		Name: "a name in an assignment", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{
			Ready(), Change(eds(checks(check), noPanic), assignment("$0, $1, {endpoint: {address: {socket_address: {address: mysql.internal, port_value: 3306}}}}")),
			Set(1, broken), Down(1), Send(40),
		},
	},
	{
		Name: "a dead endpoint comes", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Differs,
		Steps: []Step{Ready(), Set(2, upstream.Refuse()), During(20, Change("", assignment("$0, $1, $2")), Down(2)), Send(20)},
	},
	{
		Name: "ignore_new_hosts_until_first_hc", Assignment: assignment("$0, $1"), Want: Same,
		Cluster: eds(checks(check), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s, ignore_new_hosts_until_first_hc: true}"),
		Steps:   []Step{Ready(), Set(2, broken), During(20, Change("", assignment("$0, $1, $2")), Down(2)), Send(20)},
	},
	{
		Name: "priorities are swapped", Cluster: eds(checks(check), noPanic), Want: Same,
		Assignment: localities("{locality: {zone: a}, priority: 0, lb_endpoints: [$0, $1]}, {locality: {zone: b}, priority: 1, lb_endpoints: [$2, $3]}"),
		Steps: []Step{Ready(), Set(0, broken), Down(0), Send(400), During(20,
			Change("", localities("{locality: {zone: a}, priority: 1, lb_endpoints: [$0, $1]}, {locality: {zone: b}, priority: 0, lb_endpoints: [$2, $3]}")),
			Eventually("the new priorities", func(p *Play, plane Plane) bool {
				hosts := p.hosts(plane)
				return hosts[p.up(0).Addr()].Priority == 1 && hosts[p.up(2).Addr()].Priority == 0
			}), Down(0)), Send(40)},
	},
	{
		Name: "a healthy endpoint is removed", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Differs,
		Steps: []Step{Ready(), Send(20), Change("", assignment("$0")), Eventually("hdsd to have taken it away", func(p *Play, plane Plane) bool {
			_, there := p.hosts(plane)[p.up(1).Addr()]
			return plane == Alone || !there
		}), Send(40)},
	},
	{
		Name: "ignore_health_on_host_removal", Assignment: assignment("$0, $1"), Want: Same,
		Cluster: eds(checks(check), noPanic, "ignore_health_on_host_removal: true"),
		Steps:   []Step{Ready(), Send(20), During(20, Change("", assignment("$0")), Gone(1)), Send(40)},
	},
	{
		Name: "a dead endpoint is removed", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), Set(1, broken), Down(1), During(20, Change("", assignment("$0")), Gone(1)), Send(40)},
	},
	{
		Name: "health checks are taken out", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), Set(1, broken), Down(1), Send(20), Change(eds(noPanic), assignment("$0, $1")), Up(1), Send(40)},
	},
	{
		Name: "the source says unhealthy", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, {endpoint: {address: @1}, health_status: UNHEALTHY}"), Want: Same,
		Steps: []Step{Ready(1), Send(20), During(20, Change("", assignment("$0, $1")), Up(1)), Send(20), Change("", assignment("$0, {endpoint: {address: @1}, health_status: DRAINING}")), Down(1), Send(20)},
	},
	{
		Name: "an endpoint has more addresses", Want: Same,
		Cluster: static("{endpoint: {address: @0, additional_addresses: [{address: @1}]}}, $2", checks(check), noPanic),
		Steps:   []Step{Up(0, 2), Send(40), Set(0, upstream.Status(500)), Down(0), Send(20), Set(0, upstream.Healthy()), Up(0), Send(40)},
	},
	{
		Name: "close_connections_on_host_health_failure", Cluster: static("$0, $1", checks(check), noPanic, "close_connections_on_host_health_failure: true"),
		Want: Lost, Warn: "close_connections_on_host_health_failure",
		Steps: []Step{Ready(), Send(20), Set(1, broken), Down(1), Await(Alone, "its connection to end", func(p *Play) bool { return p.connections(Alone) == 1 }),
			Note("connections", func(p *Play, plane Plane) string { return fmt.Sprint(p.connections(plane)) })},
	},
	{
		Name: "close_connections_on_host_set_change", Want: Same,
		Cluster: eds(checks(check), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s, close_connections_on_host_set_change: true}"), Assignment: assignment("$0, $1"),
		Steps: []Step{Ready(), Send(20), Change("", assignment("$0, $1, $2")), Ready(),
			Eventually("all connections to end", func(p *Play, plane Plane) bool { return p.connections(plane) == 0 }), Send(30)},
	},
	{
		Name: "override_host_status", Want: Same,
		Cluster: static("$0, $1", with("timeout: 2s", "timeout: 0.5s"), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s, override_host_status: {statuses: [UNKNOWN, HEALTHY, DEGRADED, UNHEALTHY]}}"),
		Steps:   []Step{Ready(), Sticky(0, 20), Set(0, broken), Down(0), Sticky(0, 20)},
	},
	{
		Name: "an assignment that grows stale", Cluster: static("$0, $1", checks(check), noPanic), Want: Same,
		Steps: []Step{Ready(), Change(strings.Replace(static("$0, $1", checks(check), noPanic), "}]}", "}], policy: {endpoint_stale_after: 1s}}", 1), ""), During(400), Send(20)},
	},
	{
		Name: "update_merge_window", Cluster: static("$0, $1, $2", checks(check), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0.5s}"), Want: Same,
		Steps: []Step{Ready(), Failing(60, Set(1, broken), Down(1)), Send(40)},
	},
	{
		Name: "override_host_status after a timeout", Want: Differs,
		Cluster: static("$0, $1", with("timeout: 2s", "timeout: 0.5s"), "common_lb_config: {healthy_panic_threshold: {value: 0}, update_merge_window: 0s, override_host_status: {statuses: [UNKNOWN, HEALTHY, DEGRADED, UNHEALTHY]}}"),
		Steps: []Step{Ready(), Sticky(0, 20), Set(0, upstream.Slow(time.Second)), Down(0), Await(Through, "a timeout", func(p *Play) bool {
			return p.rig.Hdsd.Endpoints(p.name)[p.up(0).Addr()].Health == "TIMEOUT"
		}), Sticky(0, 5)},
	},
	{
		Name: "all endpoints and connect_timeout are replaced", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), During(20, replaced(10)...), Ready(), Send(40)},
	},
	{
		Name: "two clusters share a service_name", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{Ready(), func(p *Play) { p.twin(strings.NewReplacer()) }, Set(1, broken), Down(1), Send(40), Eventually("the twin to have the same health", func(p *Play, plane Plane) bool {
			twin := p.twins(plane)
			up, down := twin[p.up(0).Addr()], twin[p.up(1).Addr()]
			return up.Address != "" && !up.Failed() && down.Failed()
		})},
	},
	{ // The worst of their verdicts counts for both.
		Name: "two clusters share a service_name and check otherwise", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Differs,
		Steps: []Step{Ready(), func(p *Play) {
			p.twin(strings.NewReplacer("http_health_check: {path: /healthz}", "tcp_health_check: {}"))
		}, Set(1, broken), Down(1), Send(40), Await(Through, "the twin to be down", func(p *Play) bool { return p.twins(Through)[p.up(1).Addr()].Failed() }),
			Note("down for the twin", func(p *Play, plane Plane) string { return fmt.Sprint(p.twins(plane)[p.up(1).Addr()].Failed()) })},
	},
	{
		Name: "upstream_bind_config", Want: Lost, Warn: "upstream_bind_config",
		Cluster: static("$0, $1", checks(check), noPanic, "upstream_bind_config: {source_address: {address: 127.0.0.9, port_value: 0}}"),
		Steps: []Step{
			Ready(), Send(20), func(p *Play) { p.up(1).Cut("127.0.0.1", broken) },
			Await(Through, "the checkers' own addresses to fail", func(p *Play) bool { return p.hosts(Through)[p.up(1).Addr()].Failed() }), Send(20),
		},
	},
	{
		Name: "only the zone changes", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{
			Ready(), Set(1, broken), Down(1), Send(20),
			During(40, Change("", strings.ReplaceAll(assignment("$0, $1"), "zone: a", "zone: b")), Eventually("the zone b", func(p *Play, plane Plane) bool {
				return p.hosts(plane)[p.up(0).Addr()].Zone == "b"
			}), Down(1)), Send(20),
		},
	},
}

// lost are fields whose effect is gone, which validate says.
var lost = []Case{
	{
		Name: "an ejected endpoint passes its checks", Want: Lost, Warn: "outlier_detection",
		Cluster: static("$0, $1", with("unhealthy_threshold: 2", "unhealthy_threshold: 60"), noPanic,
			"outlier_detection: {consecutive_5xx: 1, base_ejection_time: 300s, max_ejection_percent: 100, interval: 0.5s, max_ejection_time_jitter: 0s}"),
		Steps: []Step{Ready(), Set(1, upstream.Reset()), Eventually("an ejection", func(p *Play, plane Plane) bool {
			p.send(plane, nil)
			return p.stat(plane, "outlier_detection.ejections_active") == 1
		}), Set(1, upstream.Healthy()), Await(Alone, "its own check to end the ejection", func(p *Play) bool {
			return p.stat(Alone, "outlier_detection.ejections_active") == 0
		}), Send(40)},
	},
	{
		Name: "edges", Want: Lost, Warn: "unhealthy_edge_interval",
		Cluster: static("$0, $1", with("unhealthy_threshold: 2", "unhealthy_edge_interval: 60s, unhealthy_threshold: 2"), noPanic),
		Steps: []Step{Ready(), Send(20), Set(1, upstream.Refuse()), Await(Through, "endpoint 1 to be down", func(p *Play) bool {
			return p.hosts(Through)[p.up(1).Addr()].Failed()
		}), Note("down", func(p *Play, plane Plane) string { return fmt.Sprint(p.hosts(plane)[p.up(1).Addr()].Failed()) })},
	},
}

// uncheckable are clusters that hdsd cannot check as a whole.
var uncheckable = []Case{
	{
		Name: "a name that Envoys resolve", Want: Left,
		Cluster: strings.Replace(static("$0, {endpoint: {address: {socket_address: {address: localhost, port_value: #1}}}}", checks(check), noPanic, "dns_lookup_family: V4_ONLY"), "STATIC", "STRICT_DNS", 1),
		Steps:   []Step{Up(0, 1), Send(40), Failing(20, Set(1, broken), Down(1)), Send(40)},
	},
	{
		Name: "one endpoint cannot be checked by hdsd", Want: Left,
		Cluster: static("$0, $1, {endpoint: {address: @2}, metadata: {filter_metadata: {envoy.transport_socket_match: {proxy: true}}}}", checks(check), noPanic,
			`transport_socket_matches: [{name: proxy, match: {proxy: true}, transport_socket: {name: proxy, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport, config: {}, transport_socket: {name: raw, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}}}]`),
		Steps: []Step{Up(0, 1), Set(2, upstream.Refuse()), Down(2), Send(60), Set(1, broken), Down(1), Send(20)},
	},
}

// twin gives both data planes another cluster with the same service_name, which differs.
func (p *Play) twin(difference *strings.Replacer) {
	p.t.Helper()
	twin := strings.NewReplacer("name: "+p.name+"\n", "name: "+p.name+"-twin\n", "eds_cluster_config: {", "eds_cluster_config: {service_name: "+p.name+", ").Replace(p.given.Cluster)
	p.rig.Put(p.t, p.name+"-twin", Resource{Cluster: difference.Replace(twin), Assignment: p.given.Assignment})
}

// twins is what a data plane thinks of the endpoints of the other cluster.
func (p *Play) twins(plane Plane) map[string]envoy.Host {
	p.t.Helper()
	return p.rig.Planes[plane].Clusters(p.t)[p.name+"-twin"]
}

// upThrough waits until the data plane behind hdsd may send traffic to all endpoints.
func upThrough(p *Play) {
	p.t.Helper()
	Await(Through, "all to be up", func(p *Play) bool {
		for _, host := range p.hosts(Through) {
			if host.Failed() {
				return false
			}
		}
		return len(p.hosts(Through)) > 0
	})(p)
}

// Sticky sends requests that ask for one endpoint.
func Sticky(i, n int) Step {
	return func(p *Play) {
		record := newRecord(fmt.Sprintf("%d requests for endpoint %d", n, i), false)
		for range n {
			for plane := range p.rig.Planes {
				to, failed := p.send(Plane(plane), session(p.up(i).Addr()))
				record.add(Plane(plane), to, failed)
			}
		}
		p.records = append(p.records, record)
	}
}

// countsDegraded is how many endpoints a data plane holds for degraded.
func (p *Play) countsDegraded(plane Plane) int {
	if plane == Through {
		n := 0
		for _, host := range p.hosts(plane) {
			if host.EDSHealth == "DEGRADED" || host.Failed() {
				n++
			}
		}
		return n
	}
	return int(p.rig.Planes[plane].Stats(p.t, "^cluster."+p.name+".membership_degraded$")["cluster."+p.name+".membership_degraded"])
}
