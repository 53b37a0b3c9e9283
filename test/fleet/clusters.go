package fleet

import (
	"fmt"
	"net"
	"strings"
)

// ClusterFile writes a cluster file with the given clusters.
func ClusterFile(clusters ...string) string { return "resources:\n" + strings.Join(clusters, "") }

// CheckHTTP is a fast HTTP health check that still leaves upstreams on a busy machine
// the time to answer.
const CheckHTTP = `{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`

// CheckTCP is a fast TCP health check.
const CheckTCP = `{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, tcp_health_check: {}}`

// StaticCluster writes a cluster whose endpoints are spread over the zones a, b and c.
// It adds more (YAML of Cluster's fields, one a line) unchanged.
func StaticCluster(name, check string, addresses []string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: %s\n  type: STATIC\n  connect_timeout: 1s\n", name)
	if check != "" {
		fmt.Fprintf(&b, "  health_checks: [%s]\n", check)
	}
	for _, line := range more {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, "  load_assignment:\n    cluster_name: %s\n    endpoints:\n", name)
	zones := []string{"a", "b", "c"}
	for i, zone := range zones {
		var here []string
		for j := i; j < len(addresses); j += len(zones) {
			here = append(here, endpointYAML(addresses[j]))
		}
		if len(here) > 0 {
			fmt.Fprintf(&b, "    - {locality: {region: eu, zone: %s}, lb_endpoints: [%s]}\n", zone, strings.Join(here, ", "))
		}
	}
	return b.String()
}

func endpointYAML(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("{endpoint: {address: {pipe: {path: %q}}}}", address)
	}
	return fmt.Sprintf("{endpoint: {address: {socket_address: {address: %q, port_value: %s}}}}", host, port)
}
