package catalog_test

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/sample"
)

// noRules are those of an empty configuration.
func noRules() *catalog.Rules { return catalog.NewRules(&configv1.Config{}) }

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
	c := sample.Web("web")
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		group := a.Endpoints[0]
		for _, e := range odd {
			group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}})
		}
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "named"}})
	})
	k := catalog.Prepare(c, noRules())
	var listed, known []string
	for _, e := range k.Endpoints {
		listed = append(listed, e.Address())
		if e.Checked() < 0 && e.Reason() == "not checked: its active health check is disabled" {
			t.Errorf("%s: its reason was not found", e.Address())
		}
	}
	for _, q := range k.Checked.Excluded {
		known = append(known, q.Address)
	}
	for _, e := range k.Checked.Endpoints {
		known = append(known, e.Address)
	}
	slices.Sort(known)
	if !slices.Equal(listed, known) {
		t.Errorf("listed are\n%q\nthe specifier package has\n%q", listed, known)
	}
}

// TestHostnamesAreKept of endpoints that are checked and of those that are not.
func TestHostnamesAreKept(t *testing.T) {
	named := func(host, name string) *endpointv3.LbEndpoint {
		address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}}}}
		return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address, Hostname: name}}}
	}
	c := sample.Web("web", "10.0.0.9:80")
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, named("10.0.0.2", "b.test"), named("10.0.0.1", "a.test"), named("db.internal", "db.test"), named("other.internal", ""))
	})
	want := map[string]string{"10.0.0.1:80": "a.test", "10.0.0.2:80": "b.test", "10.0.0.9:80": "", "db.internal:80": "db.test", "other.internal:80": ""}
	k := catalog.Prepare(c, noRules())
	for i := range k.Endpoints {
		e := &k.Endpoints[i]
		if name, ok := want[e.Address()]; !ok || e.Hostname() != name {
			t.Errorf("%s, checked: %t: hostname %q, want %q", e.Address(), e.Checked() != catalog.None, e.Hostname(), name)
		}
		delete(want, e.Address())
	}
	if len(want) > 0 {
		t.Errorf("missing are %v", want)
	}
}
