package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/thrift/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// saneMessage gives a harmless message of a type, so that one bad value in it
// is the only thing wrong. The empty message where nothing needs to be set.
func saneMessage(md protoreflect.MessageDescriptor) protoreflect.Message {
	if m, ok := saneMessages[md.FullName()]; ok {
		return proto.Clone(m).ProtoReflect()
	}
	return newMessage(md)
}

var saneMessages = byName(
	sane(&corev3.HealthCheck{}),
	&corev3.HealthCheck_HttpHealthCheck{Path: "/"},
	&corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: "00"}},
	&corev3.HealthCheck_CustomHealthCheck{Name: "envoy.health_checkers.redis", ConfigType: &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: anyOf(&redisv3.Redis{})}},
	&corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: "x-test", Value: "1"}},
	&corev3.HeaderValue{Key: "x-test", Value: "1"},
	&corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 9}},
	&corev3.Pipe{Path: "/tmp/no-such-socket"},
	&corev3.EnvoyInternalAddress{AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: "x"}},
	&corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 9}}}},
	&endpointv3.Endpoint_AdditionalAddress{Address: endpointOf("127.0.0.1:9").Address},
	&corev3.SocketOption{Level: 1, Name: 9, Value: &corev3.SocketOption_IntValue{IntValue: 1}}, // SO_KEEPALIVE
	&corev3.ExtraSourceAddress{Address: &corev3.SocketAddress{Address: "::1", PortSpecifier: &corev3.SocketAddress_PortValue{}}},
	&corev3.TypedExtensionConfig{Name: "x", TypedConfig: anyOf(&rawv3.RawBuffer{})},
	&corev3.TransportSocket{Name: "envoy.transport_sockets.raw_buffer", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(&rawv3.RawBuffer{})}},
	&corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: certificate}},
	&corev3.WatchedDirectory{Path: "/tmp"},
	&corev3.ProxyProtocolConfig{Version: corev3.ProxyProtocolConfig_V1},
	&corev3.TlvEntry{Type: 0xe0, Value: []byte("x")},
	&corev3.ProxyProtocolPassThroughTLVs{},
	&typev3.Int64Range{Start: 200, End: 300},
	&typev3.Int32Range{Start: 200, End: 300},
	&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "x"}},
	&matcherv3.RegexMatcher{Regex: "x"},
	&tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "x"}}},
	&tlsv3.TlsCertificate{CertificateChain: inline(certificate), PrivateKey: inline(privateKey)},
	&tlsv3.SdsSecretConfig{Name: "secret"},
	&tlsv3.PrivateKeyProvider{ProviderName: "x"},
	&tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
		DefaultValidationContext:         &tlsv3.CertificateValidationContext{},
		ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "secret"},
	},
	&clusterv3.Cluster_TransportSocketMatch{Name: "x", Match: criteria(), TransportSocket: &corev3.TransportSocket{
		Name: "envoy.transport_sockets.raw_buffer", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(&rawv3.RawBuffer{})},
	}},
	&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue("b")}},
	&thriftv3.Thrift{MethodName: "ping", Transport: 1, Protocol: 1},
)

func byName(all ...proto.Message) map[protoreflect.FullName]proto.Message {
	named := map[protoreflect.FullName]proto.Message{}
	for _, m := range all {
		named[m.ProtoReflect().Descriptor().FullName()] = m
	}
	return named
}

// secureContext trusts the lab's secure upstream.
func secureContext() *tlsv3.UpstreamTlsContext {
	return &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: &tlsv3.CommonTlsContext{
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(certificate)}},
	}}
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func criteria() *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"socket": structpb.NewStringValue("x")}}
}

// source is what a source of clusters says about one cluster.
type source struct {
	name       string
	config     *clusterv3.Cluster
	assignment *endpointv3.ClusterLoadAssignment
	checks     []*corev3.HealthCheck
}

// root is a message in a source that is mutated.
type root struct {
	name  string
	base  proto.Message
	place func(s *source, m proto.Message)
}

func (l *lab) roots() []root {
	endpoint := proto.Clone(l.upstream).(*endpointv3.Endpoint)
	check := func(s *source, m proto.Message) { s.checks = []*corev3.HealthCheck{m.(*corev3.HealthCheck)} }
	return []root{
		{"HealthCheck", sane(&corev3.HealthCheck{}), check},
		{"Redis", &redisv3.Redis{}, func(s *source, m proto.Message) { check(s, custom("envoy.health_checkers.redis", m)) }},
		{"Thrift", saneMessages["envoy.extensions.health_checkers.thrift.v3.Thrift"], func(s *source, m proto.Message) { check(s, custom("envoy.health_checkers.thrift", m)) }},
		{"Endpoint", endpoint, func(s *source, m proto.Message) {
			s.assignment.Endpoints[0].LbEndpoints[0].HostIdentifier = &endpointv3.LbEndpoint_Endpoint{Endpoint: m.(*endpointv3.Endpoint)}
		}},
		{"Locality", &corev3.Locality{Region: "r", Zone: "z"}, func(s *source, m proto.Message) { s.assignment.Endpoints[0].Locality = m.(*corev3.Locality) }},
		{"TransportSocketMatch", saneMessages["envoy.config.cluster.v3.Cluster.TransportSocketMatch"], func(s *source, m proto.Message) {
			s.config.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{m.(*clusterv3.Cluster_TransportSocketMatch)}
			s.checks[0].TransportSocketMatchCriteria = criteria()
		}},
		{"UpstreamTlsContext", secureContext(), func(s *source, m proto.Message) {
			s.assignment.Endpoints[0].LbEndpoints[0].HostIdentifier = &endpointv3.LbEndpoint_Endpoint{Endpoint: l.secure}
			s.config.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(m)}}
		}},
		{"BindConfig", &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{}}},
			func(s *source, m proto.Message) { s.config.UpstreamBindConfig = m.(*corev3.BindConfig) }},
	}
}

func custom(name string, m proto.Message) *corev3.HealthCheck {
	return sane(&corev3.HealthCheck{HealthChecker: &corev3.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &corev3.HealthCheck_CustomHealthCheck{
		Name: name, ConfigType: &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: anyOf(m)},
	}}})
}

// plain is a source whose cluster is harmless.
func (l *lab) plain(name string) *source {
	return &source{
		name: name, config: &clusterv3.Cluster{Name: name}, checks: []*corev3.HealthCheck{sane(&corev3.HealthCheck{})},
		assignment: &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			Locality:    &corev3.Locality{Zone: "a"},
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: l.upstream}}},
		}}},
	}
}
