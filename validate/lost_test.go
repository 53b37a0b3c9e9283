package validate_test

import (
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3" // of the texts below
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"

	"hdsd/validate"
)

// cluster is a cluster that hdsd checks. Its check and itself have more fields.
func cluster(check, more string) string {
	return `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /}` + check + `}]
  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80}}}}]}]}
` + more
}

// TestWhatLosesItsEffectIsSaid: a warning names each field that a cluster sets in vain, and
// the effect that is missing.
func TestWhatLosesItsEffectIsSaid(t *testing.T) {
	const policy = `  load_balancing_policy: {policies: [{typed_extension_config: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality, ` +
		`endpoint_picking_policy: {policies: [{typed_extension_config: {name: b, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin, slow_start_config: {slow_start_window: 9s}}}}]}}}}]}`
	cases := []struct{ field, path, check, more string }{
		{"envoy.config.cluster.v3.Cluster.close_connections_on_host_health_failure", "close_connections_on_host_health_failure: ", "", "  close_connections_on_host_health_failure: true"},
		{"*.slow_start_config", "round_robin_lb_config.slow_start_config: ", "", "  round_robin_lb_config: {slow_start_config: {slow_start_window: 9s}}"},
		{"*.slow_start_config", "load_balancing_policy.policies[0].typed_extension_config.typed_config.endpoint_picking_policy.policies[0].typed_extension_config.typed_config.slow_start_config: ", "", policy},
		{"envoy.config.cluster.v3.Cluster.outlier_detection", "outlier_detection: ends no ejection when a check passes, since ", "", "  outlier_detection: {}"},
		{"envoy.config.cluster.v3.Cluster.filters", "filters: ", "", "  filters: [{name: a}]"},
		{"envoy.config.cluster.v3.Cluster.upstream_bind_config", "upstream_bind_config: has no effect on health checks, since ", "", "  upstream_bind_config: {source_address: {address: 192.0.2.1, port_value: 0}}"},
		{"envoy.config.core.v3.HealthCheck.unhealthy_edge_interval", "health_checks[0].unhealthy_edge_interval: ", ", unhealthy_edge_interval: 2s", ""},
		{"envoy.config.core.v3.HealthCheck.healthy_edge_interval", "health_checks[0].healthy_edge_interval: ", ", healthy_edge_interval: 2s", ""},
		{"envoy.config.core.v3.HealthCheck.event_log_path", "health_checks[0].event_log_path: ", ", event_log_path: /a", ""},
		{"envoy.config.core.v3.HealthCheck.event_logger", "health_checks[0].event_logger: ", `, event_logger: [{name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: /a}}]`, ""},
		{"envoy.config.core.v3.HealthCheck.event_service", "health_checks[0].event_service: ", ", event_service: {grpc_service: {envoy_grpc: {cluster_name: events}}}", ""},
		{"envoy.config.core.v3.HealthCheck.always_log_health_check_failures", "health_checks[0].always_log_health_check_failures: ", ", always_log_health_check_failures: true", ""},
		{"envoy.config.core.v3.HealthCheck.always_log_health_check_success", "health_checks[0].always_log_health_check_success: ", ", always_log_health_check_success: true", ""},
	}
	tried := map[string]bool{}
	for _, c := range cases {
		tried[c.field] = true
		found := examineText(t, cluster(c.check, c.more)).Problems
		if len(found) != 1 || !found[0].Warning || !strings.HasPrefix(found[0].Message, c.path) {
			t.Errorf("%s: %v", c.path, found)
		}
	}
	for _, lost := range validate.LostFields {
		if !tried[string(lost.Field)] {
			t.Errorf("no case sets %s", lost.Field)
		}
	}
	for _, fine := range []string{cluster("", ""), cluster("", "  outlier_detection: {successful_active_health_check_uneject_host: false}"), strings.Replace(cluster("", "  close_connections_on_host_health_failure: true"), "127.0.0.1", "a.test", 1)} {
		for _, p := range examineText(t, fine).Problems {
			if strings.Contains(p.Message, "since hdsd checks the cluster") {
				t.Errorf("%v", p)
			}
		}
	}
}
