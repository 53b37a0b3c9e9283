package specifier

import "google.golang.org/protobuf/reflect/protoreflect"

// endpointFields are the fields of an Endpoint and the messages in it, and the related
// ones of a ClusterLoadAssignment. (The rest of a ClusterLoadAssignment concerns
// traffic and is never sent.)
var endpointFields = merge(
	qualified("envoy.config.endpoint.v3.Endpoint", map[protoreflect.Name]treatment{
		"address": sent, "health_check_config": sent,
		"hostname":             leftOut, // health checks use the hostname in health_check_config
		"additional_addresses": leftOut, // health checks go to the first address
		"observability_name":   leftOut, // statistics
	}),
	qualified("envoy.config.endpoint.v3.Endpoint.HealthCheckConfig", map[protoreflect.Name]treatment{
		"port_value": kept(atMost(65535, "a port")), "hostname": kept(shortText), "address": sent,
		"disable_active_health_check": leftOut, // an endpoint with it set is not sent at all
	}),
	qualified("envoy.config.core.v3.Address", map[protoreflect.Name]treatment{
		"socket_address": sent, "pipe": sent,
		"envoy_internal_address": refused("an internal address means a listener of the Envoy itself, and a checker has another; give a socket address"),
	}),
	qualified("envoy.config.core.v3.SocketAddress", map[protoreflect.Name]treatment{
		"protocol": sent, "address": kept(ip), "port_value": kept(atMost(65535, "a port")),
		"named_port":                 refused("checkers are sent numbers of ports only; give port_value"),
		"resolver_name":              refused("hdsd does not know whether checkers have this resolver; give an IP address"),
		"ipv4_compat":                leftOut, // for listeners
		"network_namespace_filepath": refused(namespaces),
	}),
	qualified("envoy.config.core.v3.Pipe", map[protoreflect.Name]treatment{
		"path": kept(pipePath), "mode": leftOut, // for listeners
	}),
	qualified("envoy.config.core.v3.Locality", map[protoreflect.Name]treatment{
		"region": sent, "zone": sent, "sub_zone": sent,
	}),
)
