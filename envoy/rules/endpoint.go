package rules

import (
	"fmt"
	"net/netip"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/internal/yamlpb"
)

// maxPipe is one more than the longest path of a pipe.
const maxPipe = 108

// Remedies for a name, by the way in which a cluster gets its endpoints.
const (
	staticName = "is no IP address, and a STATIC cluster takes nothing else: give the IP address, or write type: STRICT_DNS"
	edsName    = "is no IP address, and EDS takes nothing else: give the IP address, or list it in a cluster with type: STRICT_DNS " +
		"(which hdsd checks with resolve_names: true; it resolves no names of EDS)"
)

// Refusal returns the reason why a client refuses a whole cluster or assignment because of an
// endpoint in it, and the remedy; empty if it takes the endpoint. The cluster is nil for a
// single assignment, which comes by EDS. Only clients know how an extension reads endpoints.
func Refusal(c *clusterv3.Cluster, e *endpointv3.LbEndpoint) string {
	if e.ValidateAll() != nil {
		wrong := yamlpb.Validate(e)[0]
		return wrong.Field + ": " + wrong.Reason
	}
	name := edsName
	switch {
	case c == nil || hasType(c, clusterv3.Cluster_EDS):
	case hasType(c, clusterv3.Cluster_STATIC):
		name = staticName
	case hasType(c, clusterv3.Cluster_STRICT_DNS), hasType(c, clusterv3.Cluster_LOGICAL_DNS):
		name = "" // it is resolved
	default:
		return ""
	}
	endpoint := e.GetEndpoint()
	check := endpoint.GetHealthCheckConfig()
	if a := endpoint.GetAddress(); a != nil && a.GetSocketAddress() == nil && check.GetPortValue() != 0 {
		return "health_check_config.port_value: is possible with a socket_address only: remove it"
	}
	if len(endpoint.GetAdditionalAddresses()) > 0 && endpoint.GetAddress().GetSocketAddress() == nil { // Envoy 1.36 refuses that
		return "additional_addresses: are possible with a socket_address only: remove them"
	}
	addresses := []*corev3.Address{endpoint.GetAddress()}
	if check.GetAddress() != nil {
		addresses = append(addresses, check.GetAddress())
	}
	for _, additional := range endpoint.GetAdditionalAddresses() {
		addresses = append(addresses, additional.GetAddress())
	}
	for _, a := range addresses {
		if wrong := wrongAddress(a, name); wrong != "" {
			return wrong
		}
	}
	return ""
}

// wrongAddress returns the reason why a client refuses an address. A resolver other than Envoy's
// own might be an extension of the client, but others would lose everything that comes with the
// endpoint. An empty name means that names are resolved.
func wrongAddress(a *corev3.Address, name string) string {
	switch address := a.GetAddress().(type) {
	case nil:
		return "an address is missing: give a socket_address or a pipe"
	case *corev3.Address_Pipe:
		path := address.Pipe.GetPath()
		switch {
		case len(path) >= maxPipe:
			return fmt.Sprintf("a pipe's path is too long: write less than %d characters", maxPipe)
		case address.Pipe.GetMode() != 0 && strings.HasPrefix(path, "@"):
			return "an abstract pipe (@) has no mode: remove it"
		}
	case *corev3.Address_SocketAddress:
		socket := address.SocketAddress
		if resolver := socket.GetResolverName(); resolver != "" && resolver != "envoy.ip" {
			return fmt.Sprintf("resolver_name: %q is no resolver of Envoy: remove it, and give the IP address", resolver)
		}
		_, err := netip.ParseAddr(socket.GetAddress())
		if err != nil && name != "" {
			return fmt.Sprintf("%q %s", socket.GetAddress(), name)
		}
		if err == nil && socket.GetNamedPort() != "" {
			return "named_port: is not possible with an IP address: write port_value"
		}
	}
	return ""
}
