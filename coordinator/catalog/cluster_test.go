package catalog_test

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/coordinator/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

// noRules are those of an empty configuration.
func noRules() *catalog.Rules { return catalog.NewRules(&configv1.Config{}) }

// web gives a cluster of the addresses, checked by HTTP.
func web(name string, addresses ...string) *source.Cluster {
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/healthz"}},
	}
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		Locality: &corev3.Locality{Region: "eu", Zone: "a"},
	}}}
	for _, address := range addresses {
		assignment.Endpoints[0].LbEndpoints = append(assignment.Endpoints[0].LbEndpoints, lbEndpoint(address))
	}
	config := &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		HealthChecks: []*corev3.HealthCheck{check}, LoadAssignment: assignment,
	}
	return &source.Cluster{
		Source: "local", Name: name, ServiceName: name, Config: config, Assignment: assignment, HealthChecks: config.GetHealthChecks(),
	}
}

func lbEndpoint(address string) *endpointv3.LbEndpoint {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		panic(err)
	}
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
		}}},
	}}}
}

func TestAddressesAreWrittenAsTheSpecifierPackageDoes(t *testing.T) {
	odd := []*endpointv3.Endpoint{
		{},
		{Address: &corev3.Address{}},
		{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/app.sock"}}}},
		{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{}}}},
		{Address: &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
			AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: "inner"},
		}}}},
		{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "db.internal", PortSpecifier: &corev3.SocketAddress_NamedPort{NamedPort: "pg"},
		}}}},
		{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "2001:DB8::1"}}}},
	}
	c := web("web")
	for _, e := range odd {
		c.Assignment.Endpoints[0].LbEndpoints = append(c.Assignment.Endpoints[0].LbEndpoints,
			&endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}})
	}
	c.Assignment.Endpoints[0].LbEndpoints = append(c.Assignment.Endpoints[0].LbEndpoints,
		&endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "named"}})
	k := catalog.Prepare(c, noRules())
	var listed, known []string
	for _, e := range k.Endpoints {
		listed = append(listed, e.Key.Address)
		if e.Checked < 0 && e.Reason == "not checked: its active health check is disabled" {
			t.Errorf("%s: its reason was not found", e.Key.Address)
		}
	}
	for _, q := range k.Checked.Quarantined {
		known = append(known, q.Address)
	}
	for _, e := range k.Checked.Endpoints {
		known = append(known, e.Key.Address)
	}
	slices.Sort(known)
	if !slices.Equal(listed, known) {
		t.Errorf("listed are\n%q\nthe specifier package has\n%q", listed, known)
	}
}
