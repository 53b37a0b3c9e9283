package redact

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/envoytypes"
)

const secret = "-----BEGIN PRIVATE KEY-----"

func packed(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func tlsContext() *tlsv3.UpstreamTlsContext {
	return &tlsv3.UpstreamTlsContext{Sni: "example.com", CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsCertificates: []*tlsv3.TlsCertificate{{
			CertificateChain: inline("the chain"), PrivateKey: inline(secret),
			Password: &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte(secret)}},
		}},
	}}
}

func header(name string) []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: name, Value: secret}}}
}

func payload() *corev3.HealthCheck_Payload {
	return &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: secret}}
}

func socket(t testing.TB, m proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, m)}}
}

// uncoded is a message of a type without Go code.
func uncoded(t testing.TB, name protoreflect.FullName, text string) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := kind.New().Interface()
	if _, ok := m.(*dynamicpb.Message); !ok {
		t.Fatalf("%s has code", name)
	}
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSecretsAreNotShown(t *testing.T) {
	envoytypes.Register()
	withSocket := func(m proto.Message) *clusterv3.Cluster {
		return &clusterv3.Cluster{Name: "secret", TransportSocket: socket(t, m)}
	}
	for name, test := range map[string]struct {
		config proto.Message
		still  []string // what is shown
	}{
		"a cluster's key":   {withSocket(tlsContext()), []string{"the chain", "example.com", Hidden}},
		"a socket's socket": {withSocket(&quicv3.QuicUpstreamTransport{UpstreamTlsContext: tlsContext()}), []string{"the chain", Hidden}},
		"a specifier's key": {&healthv3.HealthCheckSpecifier{ClusterHealthChecks: []*healthv3.ClusterHealthCheck{{
			ClusterName:            "web",
			TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{Name: "m", TransportSocket: socket(t, tlsContext())}},
		}}}, []string{"web", "the chain", Hidden}},
		"what checks send": {&clusterv3.Cluster{Name: "web", HealthChecks: []*corev3.HealthCheck{
			{HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{
				Path: "/ready?token=" + secret, RequestHeadersToAdd: header("authorization"), Send: payload(), Receive: []*corev3.HealthCheck_Payload{payload()},
			}}},
			{HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{
				Send: payload(), Receive: []*corev3.HealthCheck_Payload{{Payload: &corev3.HealthCheck_Payload_Binary{Binary: []byte(secret)}}},
			}}},
			{HealthChecker: &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
				ServiceName: "shop", InitialMetadata: header("token"),
			}}},
		}}, []string{"/ready?" + Hidden, "authorization", "shop", "token", "tcp_health_check"}},
		"what a checker is sent": {&healthv3.HealthCheckSpecifier{ClusterHealthChecks: []*healthv3.ClusterHealthCheck{{
			ClusterName: "web", HealthChecks: []*corev3.HealthCheck{{HealthChecker: &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
				InitialMetadata: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "token", RawValue: []byte(secret)}}},
			}}}},
		}}}, []string{"web", "token", Hidden}},
		"credentials of calls": {withSocket(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{
			Name: "shown", SdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{GrpcServices: []*corev3.GrpcService{{
				TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "secrets:443", CallCredentials: []*corev3.GrpcService_GoogleGrpc_CallCredentials{
					{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken{AccessToken: secret}},
					{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_GoogleRefreshToken{GoogleRefreshToken: secret}},
					{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_ServiceAccountJwtAccess{ServiceAccountJwtAccess: &corev3.GrpcService_GoogleGrpc_CallCredentials_ServiceAccountJWTAccessCredentials{JsonKey: secret}}},
					{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_GoogleIam{GoogleIam: &corev3.GrpcService_GoogleGrpc_CallCredentials_GoogleIAMCredentials{AuthorizationToken: secret}}},
				}}},
			}}}}},
		}}}}), []string{"shown", "secrets:443", Hidden}},
		"an unknown message": {&clusterv3.Cluster{Name: "odd", TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"acme": {TypeUrl: "type.googleapis.com/acme.Secret", Value: []byte(secret)},
		}}, []string{"odd", "acme.Secret"}},
		"a type without code": {withSocket(uncoded(t, "envoy.extensions.filters.network.dubbo_proxy.v3.DubboFilter", `{"name": "outer", "config": {"@type": "type.googleapis.com/envoy.config.core.v3.TransportSocket",
			"name": "inner", "typedConfig": {"@type": "type.googleapis.com/envoy.config.core.v3.HeaderValue", "key": "shown", "value": "`+secret+`"}}}`)), []string{"outer", "inner", "shown"}},
		"a sensitive field without code": {withSocket(uncoded(t, "envoy.extensions.filters.http.basic_auth.v3.BasicAuth", `{"users": {"inlineString": "`+secret+`"}, "forwardUsernameHeader": "shown"}`)), []string{"shown"}},
		"a broken message": {&clusterv3.Cluster{Name: "odd", TransportSocket: &corev3.TransportSocket{
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: &anypb.Any{
				TypeUrl: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", Value: []byte("\x0a" + secret),
			}},
		}}, []string{"odd", "UpstreamTlsContext"}},
	} {
		t.Run(name, func(t *testing.T) {
			given := packed(t, test.config)
			before := slices.Clone(given.GetValue())
			got := Any(given)
			if bytes.Contains(got.GetValue(), []byte(secret)) {
				t.Error("the secret is shown")
			}
			m, err := got.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			text := prototext.Format(m) + fmt.Sprintf("%q", got.GetValue())
			for _, want := range test.still {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not shown: %s", want, text)
				}
			}
			if !bytes.Equal(given.GetValue(), before) {
				t.Error("what was given has been changed")
			}
		})
	}
}

func TestConfigurationsWithoutSecretsAreUnchanged(t *testing.T) {
	given := packed(t, &clusterv3.Cluster{Name: "a", HealthChecks: []*corev3.HealthCheck{{HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{
		HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/ready?"},
	}}}, TransportSocket: socket(t, &tlsv3.UpstreamTlsContext{Sni: "b"})})
	given.Value = append(given.Value, 0xfa, 0xff, 0x7f, 0x01, 'x') // an unknown field
	if got := Any(given); got != given {
		t.Errorf("got %v", got)
	}
	if got := Any(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := Any(&anypb.Any{TypeUrl: resourcev3.ClusterType, Value: []byte{0xff}}); got != nil {
		t.Errorf("of what cannot be read: %v", got)
	}
}
