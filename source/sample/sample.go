package sample

import (
	"net"
	"strconv"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/source"
)

// Web makes a STATIC cluster of source "local" with endpoints at these addresses in
// zone a of region eu, checked by HTTP.
func Web(name string, addresses ...string) *source.Cluster {
	return WithPath(name, "/healthz", addresses...)
}

// WithPath makes a cluster as Web does, with another path of the check.
func WithPath(name, path string, addresses ...string) *source.Cluster {
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: path}},
	}
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		Locality: &corev3.Locality{Region: "eu", Zone: "a"},
	}}}
	for _, address := range addresses {
		assignment.Endpoints[0].LbEndpoints = append(assignment.Endpoints[0].LbEndpoints, Endpoint(address))
	}
	config := &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		HealthChecks: []*corev3.HealthCheck{check},
	}
	return &source.Cluster{
		Source: "local", Name: name, ServiceName: name, Config: config, Assignment: source.EncodeAssignment(assignment), HealthChecks: config.GetHealthChecks(),
	}
}

// Endpoint makes an endpoint with an IP address and a port. It panics unless the
// address is host:port.
func Endpoint(address string) *endpointv3.LbEndpoint {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, err := strconv.ParseUint(portText, 10, 32) // also ports that no Envoy takes
	if err != nil {
		panic(err)
	}
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
		}}},
	}}}
}

// Change changes the endpoints of a cluster.
func Change(c *source.Cluster, change func(*endpointv3.ClusterLoadAssignment)) {
	a := c.Assignment.Message()
	change(a)
	c.Assignment = source.EncodeAssignment(a)
}
