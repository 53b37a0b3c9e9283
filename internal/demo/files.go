package demo

import (
	"fmt"
	"strings"
)

const clusterName = "web"

// configuration returns the coordinator's configuration: defaults with faster reports.
func configuration(id, grpc, http string) string {
	return fmt.Sprintf(`node_id: %s
grpc: {address: %q}
http: {address: %q}
data_dir: data-%[1]s
sources:
- name: local
  config_source: {path_config_source: {path: clusters.yaml}}
assignment: {redundancy: 3, settle: 1s}
reporting: {interval: 0.25s}
`, id, grpc, http)
}

// replication returns the further lines of the configuration of a replica.
func replication(etcd, peer string) string {
	return fmt.Sprintf(`replication:
  etcd: {endpoints: [%q]}
  peer: {address: %q}
`, "http://"+etcd, peer)
}

// clusters returns the cluster file: one cluster of the upstreams, spread over the
// zones.
func clusters(upstreams []*upstream) string {
	var endpoints strings.Builder
	for i, u := range upstreams {
		fmt.Fprintf(&endpoints, "    - {locality: {zone: %s, sub_zone: rack-%d}, lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}\n",
			zones[i%len(zones)], i, strings.TrimPrefix(u.address, "127.0.0.1:"))
	}
	return `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: ` + clusterName + `
  type: STATIC
  connect_timeout: 1s
  health_checks:
  - {timeout: 0.3s, interval: 0.5s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}
  load_assignment:
    cluster_name: ` + clusterName + `
    endpoints:
` + endpoints.String()
}
