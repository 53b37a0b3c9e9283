package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/bootstrap"
	"hdsd/health"
	"hdsd/internal/yamlpb"
)

func node() bootstrap.Node {
	return bootstrap.Node{
		ID: "envoy-7", Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "rack 1"},
		Metadata: map[string]string{"vpc": "blue", "on": "true"}, Admin: "[::1]:9901",
	}
}

// read decodes a bootstrap strictly, and holds its JSON to say the same.
func read(t testing.TB, text []byte) *bootstrapv3.Bootstrap {
	t.Helper()
	root, problems := yamlpb.Parse("bootstrap.yaml", text)
	m := &bootstrapv3.Bootstrap{}
	if problems = append(problems, root.Decode(m)...); len(problems) > 0 {
		t.Fatalf("%v:\n%s", problems, text)
	}
	if err := m.ValidateAll(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	asJSON, err := bootstrap.JSON(text)
	if err != nil {
		t.Fatal(err)
	}
	again := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(asJSON, again); err != nil {
		t.Fatalf("%v:\n%s", err, asJSON)
	}
	if !proto.Equal(m, again) {
		t.Errorf("JSON differs:\n%s\n%s", text, asJSON)
	}
	return m
}

func yaml(t testing.TB, of interface{ YAML() ([]byte, error) }) []byte {
	t.Helper()
	text, err := of.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestACheckerTakesItsChecksFromHDSD(t *testing.T) {
	m := read(t, yaml(t, bootstrap.Checker{Node: node(), Server: bootstrap.Server{Address: "10.0.0.5:18000"}}))
	n := m.GetNode()
	if n.GetId() != "envoy-7" || n.GetCluster() != "checkers" || n.GetLocality().GetSubZone() != "rack 1" ||
		n.GetMetadata().GetFields()["vpc"].GetStringValue() != "blue" || n.GetMetadata().GetFields()["on"].GetStringValue() != "true" {
		t.Errorf("node is %v", n)
	}
	if a := m.GetAdmin().GetAddress().GetSocketAddress(); a.GetAddress() != "::1" || a.GetPortValue() != 9901 {
		t.Errorf("admin listens on %v", a)
	}
	if c := m.GetHdsConfig(); c.GetApiType() != corev3.ApiConfigSource_GRPC || c.GetGrpcServices()[0].GetEnvoyGrpc().GetClusterName() != "hdsd" {
		t.Errorf("hds_config is %v", c)
	}
	cluster := m.GetStaticResources().GetClusters()[0]
	at := cluster.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
	if cluster.GetName() != "hdsd" || cluster.GetType().String() != "STATIC" || at.GetAddress() != "10.0.0.5" || at.GetPortValue() != 18000 || cluster.GetTransportSocket() != nil {
		t.Errorf("hdsd is %v", cluster)
	}
}

func TestAClientTakesClustersOrEndpoints(t *testing.T) {
	c := bootstrap.Client{Node: node(), Server: bootstrap.Server{Address: "hdsd.example.com:18000"}}
	m := read(t, yaml(t, c))
	if d := m.GetDynamicResources(); d.GetAdsConfig().GetApiType() != corev3.ApiConfigSource_GRPC || d.GetCdsConfig().GetAds() == nil {
		t.Errorf("dynamic resources are %v", d)
	}
	if s := m.GetStaticResources(); len(s.GetListeners()) != 0 || len(s.GetClusters()) != 1 || s.GetClusters()[0].GetType().String() != "STRICT_DNS" {
		t.Errorf("static resources are %v", s)
	}
	c.Delta, c.Clusters, c.Listen, c.Route = true, []string{"web", "pay/eu: 1"}, "127.0.0.1:10000", "web"
	m = read(t, yaml(t, c))
	if d := m.GetDynamicResources(); d.GetAdsConfig().GetApiType() != corev3.ApiConfigSource_DELTA_GRPC || d.GetCdsConfig() != nil {
		t.Errorf("dynamic resources are %v", d)
	}
	s := m.GetStaticResources()
	if len(s.GetClusters()) != 3 || s.GetClusters()[1].GetName() != "pay/eu: 1" || s.GetClusters()[1].GetType().String() != "EDS" {
		t.Errorf("clusters are %v", s.GetClusters())
	}
	if l := s.GetListeners(); len(l) != 1 || l[0].GetAddress().GetSocketAddress().GetPortValue() != 10000 {
		t.Errorf("listeners are %v", l)
	}
}

func TestAnEnvoyKnowsAllReplicas(t *testing.T) {
	server := bootstrap.Server{Address: "10.0.0.1:18000", Replicas: []string{"10.0.0.2:18000", "[::1]:18001"}}
	cluster := read(t, yaml(t, bootstrap.Checker{Node: node(), Server: server})).GetStaticResources().GetClusters()[0]
	var have []string
	for _, e := range cluster.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints() {
		address := e.GetEndpoint().GetAddress().GetSocketAddress()
		have = append(have, fmt.Sprintf("%s %d", address.GetAddress(), address.GetPortValue()))
	}
	if diff := cmp.Diff([]string{"10.0.0.1 18000", "10.0.0.2 18000", "::1 18001"}, have); diff != "" || cluster.GetType().String() != "STATIC" {
		t.Errorf("hdsd is %v:\n%s", cluster, diff)
	}
	server.Replicas[1] = "hdsd-3.example.com:18000"
	if c := read(t, yaml(t, bootstrap.Client{Node: node(), Server: server})).GetStaticResources().GetClusters()[0]; c.GetType().String() != "STRICT_DNS" {
		t.Errorf("hdsd is %v", c)
	}
}

func TestTLSNamesWhatItTrusts(t *testing.T) {
	for _, c := range []struct{ address, name, sni, exact, kind string }{
		{"hdsd.example.com:18000", "", "hdsd.example.com", "hdsd.example.com", "DNS"},
		{"10.0.0.5:18000", "", "", "10.0.0.5", "IP_ADDRESS"},
		{"[2001:db8::5]:18000", "", "", "2001:db8::5", "IP_ADDRESS"},
		{"10.0.0.5:18000", "hdsd", "hdsd", "hdsd", "DNS"},
	} {
		server := bootstrap.Server{Address: c.address, TLS: &bootstrap.TLS{CA: "/etc/ca.pem", Certificate: "cert 1.pem", Key: "key.pem", Name: c.name}}
		m := read(t, yaml(t, bootstrap.Checker{Node: node(), Server: server}))
		socket := &tlsv3.UpstreamTlsContext{}
		if err := m.GetStaticResources().GetClusters()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(socket); err != nil {
			t.Fatal(err)
		}
		common := socket.GetCommonTlsContext()
		match := common.GetValidationContext().GetMatchTypedSubjectAltNames()[0]
		if socket.GetSni() != c.sni || match.GetMatcher().GetExact() != c.exact || match.GetSanType().String() != c.kind {
			t.Errorf("%+v: %v", c, socket)
		}
		if common.GetValidationContext().GetTrustedCa().GetFilename() != "/etc/ca.pem" || common.GetTlsCertificates()[0].GetCertificateChain().GetFilename() != "cert 1.pem" {
			t.Errorf("%+v: files %v", c, common)
		}
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	good := bootstrap.Server{Address: "10.0.0.5:18000"}
	for want, c := range map[string]bootstrap.Client{
		"id is missing": {Node: bootstrap.Node{Admin: "127.0.0.1:0"}, Server: good},
		"admin address": {Node: bootstrap.Node{ID: "x", Admin: "localhost:9901"}, Server: good},
		"want HOST:PORT": {
			Node: node(), Server: bootstrap.Server{Address: "10.0.0.5"},
		},
		`server "y"`:            {Node: node(), Server: bootstrap.Server{Address: "x:1", Replicas: []string{"y"}}},
		"that the certificates": {Node: node(), Server: bootstrap.Server{Address: "x:1", Replicas: []string{"y:1"}, TLS: &bootstrap.TLS{CA: "ca"}}},
		`server "x:0"`:          {Node: node(), Server: bootstrap.Server{Address: "x:0"}},
		"listener":              {Node: node(), Server: good, Route: "web"},
		"authorities":           {Node: node(), Server: bootstrap.Server{Address: "x:1", TLS: &bootstrap.TLS{Certificate: "c", Key: "k"}}},
		"needs its private":     {Node: node(), Server: bootstrap.Server{Address: "x:1", TLS: &bootstrap.TLS{CA: "ca", Key: "k"}}},
	} {
		if _, err := c.YAML(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, have %v", want, err)
		}
	}
}

func FuzzAnyTextStaysOneValue(f *testing.F) {
	f.Add("checker-1", "eu", "vpc", "blue", "/etc/ca.pem")
	f.Add("a: b", "{}", "on", "null", "#\n\t\x7f\ufeff\u0085'\"")
	f.Fuzz(func(t *testing.T, id, zone, key, value, file string) {
		for _, s := range []*string{&id, &zone, &key, &value, &file} {
			*s = strings.ToValidUTF8(*s, "?")
		}
		if id == "" || file == "" {
			t.Skip()
		}
		m := read(t, yaml(t, bootstrap.Client{
			Node:   bootstrap.Node{ID: id, Locality: health.Locality{Zone: zone}, Metadata: map[string]string{key: value}, Admin: "127.0.0.1:0"},
			Server: bootstrap.Server{Address: "h:1", TLS: &bootstrap.TLS{CA: file, Name: "n"}},
		}))
		n := m.GetNode()
		if n.GetId() != id || n.GetLocality().GetZone() != zone || n.GetMetadata().GetFields()[key].GetStringValue() != value {
			t.Errorf("node is %v", n)
		}
	})
}
