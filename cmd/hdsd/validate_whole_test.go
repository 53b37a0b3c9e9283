package main

import "testing"

// whole is a configuration that has everything which the configuration can be asked for
// beside the ordinary.
const whole = `node_id: hdsd-1
grpc: {address: "127.0.0.1:18000"}
http: {address: "127.0.0.1:18080"}
data_dir: ./data
access:
  mode: ENFORCE
  grants:
  - roles: [CHECKER]
    san: "spiffe://prod/checker/{zone}/{node.id}"
  - roles: [DATA_PLANE, VIEWER]
    san: "*.envoy.internal"
    cluster_name_glob: "pay-*"
  - roles: [OPERATOR]
    token_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  - roles: [VIEWER]
    oidc: {issuer: "https://id.example.com", audience: hdsd, claim: groups, value: sre}
probes: {address: "127.0.0.1:18081"}
checkers:
  sds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: sds}}]}}
  admit: [{node_id_glob: "edge-*", addresses: ["10.0.0.0/8"]}]
  probation: 30s
  node_weights: false
sources:
- name: local
  config_source: {path_config_source: {path: clusters.yaml}}
  resolve_names: true
- name: mesh
  config_source:
    api_config_source:
      api_type: AGGREGATED_DELTA_GRPC
      transport_api_version: V3
      grpc_services: [{google_grpc: {target_uri: "127.0.0.1:18100", stat_prefix: upstream}}]
  hold_shrinkage: {share: 0.5, for: 300s}
  resolve_names: true
  node: {cluster: eg, locality: {zone: a}, metadata: {role: checked}}
dns: {resolvers: ["10.0.0.2:53"]}
relay:
  upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: "127.0.0.1:18200", stat_prefix: control}}]}}
  health: ON
  keep: 300s
  forward: NONE
data_planes:
  eds_config_source: {ads: {}}
  xdstp_authority: hdsd
notify:
- name: oncall
  alertmanager: {url: "http://127.0.0.1:9093"}
  cluster_name_glob: "*"
  kinds: [ENDPOINT_DOWN, CLUSTER_DOWN, ZONE_DOWN, NO_CHECKERS, CHECKER_DOUBTED, SHRINKAGE_HELD, HISTORY_FAILING]
  min_duration: 10s
- name: hook
  webhook: {url: "https://example.com/hook", secret_file: hmac.key}
metrics: {cluster_name_globs: ["pay-*"]}
history: {retention: 90d, max_bytes: 0}
`

// TestValidateTakesAllOfTheConfiguration at once.
func TestValidateTakesAllOfTheConfiguration(t *testing.T) {
	dir := folder(t, map[string]string{"hdsd.yaml": whole, "hmac.key": "secret", "clusters.yaml": `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STRICT_DNS
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: web.internal, port_value: 80}}}}]}]}
`})
	if status, out, errors := hdsd(t, "validate", "-c", dir+"/hdsd.yaml"); status != 0 {
		t.Errorf("exits %d: %s%s", status, out, errors)
	} else {
		t.Log(out)
	}
}
