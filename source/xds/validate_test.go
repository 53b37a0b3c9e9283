package xds

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	xdsv3 "github.com/cncf/xds/go/xds/core/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	minimumv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/config/validators/minimum_clusters/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type (
	googleGrpc      = corev3.GrpcService_GoogleGrpc
	callCredentials = corev3.GrpcService_GoogleGrpc_CallCredentials
	channelArg      = corev3.GrpcService_GoogleGrpc_ChannelArgs_Value
)

// TestValidate: each field that is wrong is named, with how to put it right,
// and nothing else is.
func TestValidate(t *testing.T) {
	grpcWith := func(change func(*corev3.ApiConfigSource)) *corev3.ConfigSource {
		from := clone(deltaSource)
		change(from.GetApiConfigSource())
		return from
	}
	service := func(change func(*corev3.GrpcService)) *corev3.ConfigSource {
		return grpcWith(func(api *corev3.ApiConfigSource) { change(api.GetGrpcServices()[0]) })
	}
	google := func(change func(*googleGrpc)) *corev3.ConfigSource {
		return service(func(s *corev3.GrpcService) { change(s.GetGoogleGrpc()) })
	}
	call := func(credentials ...*callCredentials) *corev3.ConfigSource {
		return google(func(g *googleGrpc) {
			g.ChannelCredentials = sslCredentials(&corev3.GrpcService_GoogleGrpc_SslCredentials{})
			g.CallCredentials = credentials
		})
	}
	header := func(h *corev3.HeaderValue) *corev3.ConfigSource {
		return service(func(s *corev3.GrpcService) { s.InitialMetadata = []*corev3.HeaderValue{h} })
	}
	ssl := func(c *corev3.GrpcService_GoogleGrpc_SslCredentials) *corev3.ConfigSource {
		return google(func(g *googleGrpc) { g.ChannelCredentials = sslCredentials(c) })
	}
	arg := func(key string, value *channelArg) *corev3.ConfigSource {
		return google(func(g *googleGrpc) {
			g.ChannelArgs = &corev3.GrpcService_GoogleGrpc_ChannelArgs{Args: map[string]*channelArg{key: value}}
		})
	}
	restWith := func(change func(*corev3.ApiConfigSource)) *corev3.ConfigSource {
		from := restSource("http://10.0.0.5:8080")
		change(from.GetApiConfigSource())
		return from
	}
	source := func(change func(*corev3.ConfigSource)) *corev3.ConfigSource {
		from := clone(deltaSource)
		change(from)
		return from
	}
	folder := t.TempDir()
	a := newAuthority(t, "a")
	chain, key := a.pair(t, "hdsd")
	_, otherKey := a.pair(t, "other")
	const api, first = "api_config_source.", "api_config_source.grpc_services[0].google_grpc."

	tests := map[string]struct {
		from *corev3.ConfigSource
		want []string // "field: part of the message"
	}{
		"REST":                  {ways["REST"], nil},
		"GRPC":                  {ways["GRPC"], nil},
		"DELTA_GRPC":            {ways["DELTA_GRPC"], nil},
		"AGGREGATED_GRPC":       {ways["AGGREGATED_GRPC"], nil},
		"AGGREGATED_DELTA_GRPC": {ways["AGGREGATED_DELTA_GRPC"], nil},
		"versions not given":    {grpcWith(func(api *corev3.ApiConfigSource) { api.TransportApiVersion = corev3.ApiVersion_AUTO }), nil},

		"nothing":         {&corev3.ConfigSource{}, []string{"config_source_specifier: "}},
		"path":            {&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: "x"}}, []string{": is a path"}},
		"ads":             {&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}, []string{"ads: means the ADS of an Envoy's bootstrap"}},
		"self":            {&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}, []string{"self: means the server that the configuration"}},
		"resources of v2": {source(func(c *corev3.ConfigSource) { c.ResourceApiVersion = corev3.ApiVersion_V2 }), []string{"resource_api_version: V2 has come to its end"}},                  //nolint:staticcheck // to be refused
		"transport of v2": {grpcWith(func(api *corev3.ApiConfigSource) { api.TransportApiVersion = corev3.ApiVersion_V2 }), []string{api + "transport_api_version: V2 has come to its end"}}, //nolint:staticcheck // to be refused
		"no type":         {grpcWith(func(api *corev3.ApiConfigSource) { api.ApiType = 0 }), []string{api + "api_type: needs one of"}},
		"unknown type":    {grpcWith(func(api *corev3.ApiConfigSource) { api.ApiType = 99 }), []string{api + "api_type: "}},
		"authorities":     {source(func(c *corev3.ConfigSource) { c.Authorities = []*xdsv3.Authority{{Name: "a"}} }), []string{"authorities: "}},
		"timeout":         {source(func(c *corev3.ConfigSource) { c.InitialFetchTimeout = durationpb.New(-1) }), []string{"initial_fetch_timeout: "}},

		"no server":        {grpcWith(func(api *corev3.ApiConfigSource) { api.GrpcServices = nil }), []string{api + "grpc_services: needs a server"}},
		"URLs for gRPC":    {grpcWith(func(api *corev3.ApiConfigSource) { api.ClusterNames = []string{"a"} }), []string{api + "cluster_names: is for REST"}},
		"delay for gRPC":   {grpcWith(func(api *corev3.ApiConfigSource) { api.RefreshDelay = durationpb.New(time.Second) }), []string{api + "refresh_delay: is for REST"}},
		"timeout for gRPC": {grpcWith(func(api *corev3.ApiConfigSource) { api.RequestTimeout = durationpb.New(time.Second) }), []string{api + "request_timeout: is for REST"}},
		"no tokens":        {grpcWith(func(api *corev3.ApiConfigSource) { api.RateLimitSettings = rateSettings(0, 1) }), []string{api + "rate_limit_settings.max_tokens: "}},
		"no fill rate":     {grpcWith(func(api *corev3.ApiConfigSource) { api.RateLimitSettings = rateSettings(1, 0) }), []string{api + "rate_limit_settings.fill_rate: "}},
		"minimum of clusters": {grpcWith(func(api *corev3.ApiConfigSource) {
			api.ConfigValidators = []*corev3.TypedExtensionConfig{{Name: minimumName, TypedConfig: pack(&minimumv3.MinimumClustersValidator{MinClustersNum: 1})}}
		}), nil},
		"unknown validator": {grpcWith(func(api *corev3.ApiConfigSource) {
			api.ConfigValidators = []*corev3.TypedExtensionConfig{{Name: "mine", TypedConfig: pack(&emptypb.Empty{})}}
		}), []string{api + `config_validators[0]: hdsd does not know "mine" (type.googleapis.com/google.protobuf.Empty): the one that it knows is ` + minimumName}},
		"broken validator": {grpcWith(func(api *corev3.ApiConfigSource) {
			api.ConfigValidators = []*corev3.TypedExtensionConfig{{Name: minimumName, TypedConfig: &anypb.Any{TypeUrl: pack(&minimumv3.MinimumClustersValidator{}).TypeUrl, Value: []byte{255}}}}
		}), []string{api + "config_validators[0].typed_config: cannot be decoded"}},

		"no URL":             {restWith(func(api *corev3.ApiConfigSource) { api.ClusterNames = nil }), []string{api + "cluster_names: needs the base URL"}},
		"a name":             {restWith(func(api *corev3.ApiConfigSource) { api.ClusterNames = []string{"https://ok", "xds_cluster"} }), []string{api + "cluster_names[1]: needs a base URL"}},
		"a query":            {restWith(func(api *corev3.ApiConfigSource) { api.ClusterNames = []string{"http://a?b"} }), []string{api + "cluster_names[0]: needs a base URL without"}},
		"no delay":           {restWith(func(api *corev3.ApiConfigSource) { api.RefreshDelay = nil }), []string{api + "refresh_delay: "}},
		"no request timeout": {restWith(func(api *corev3.ApiConfigSource) { api.RequestTimeout = durationpb.New(0) }), []string{api + "request_timeout: "}},
		"gRPC for REST": {restWith(func(api *corev3.ApiConfigSource) {
			api.GrpcServices = deltaSource.GetApiConfigSource().GetGrpcServices()
		}), []string{api + "grpc_services: "}},
		"rate for REST": {restWith(func(api *corev3.ApiConfigSource) { api.RateLimitSettings = rateSettings(1, 1) }), []string{api + "rate_limit_settings: "}},
		"node for REST": {restWith(func(api *corev3.ApiConfigSource) { api.SetNodeOnFirstMessageOnly = true }), []string{api + "set_node_on_first_message_only: "}},

		"envoy_grpc": {service(func(s *corev3.GrpcService) {
			s.TargetSpecifier = &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "xds"}}
		}), []string{api + `grpc_services[0].envoy_grpc: names a cluster of an Envoy ("xds"), and hdsd has none: use google_grpc`}},
		"neither":        {service(func(s *corev3.GrpcService) { s.TargetSpecifier = nil }), []string{api + "grpc_services[0].target_specifier: "}},
		"opening":        {service(func(s *corev3.GrpcService) { s.Timeout = durationpb.New(0) }), []string{api + "grpc_services[0].timeout: "}},
		"retry policy":   {service(func(s *corev3.GrpcService) { s.RetryPolicy = &corev3.RetryPolicy{} }), []string{api + "grpc_services[0].retry_policy: "}},
		"header":         {header(&corev3.HeaderValue{Key: "X-Team", Value: "a"}), []string{api + "grpc_services[0].initial_metadata[0].key: "}},
		"gRPC's header":  {header(&corev3.HeaderValue{Key: "grpc-timeout", Value: "a"}), []string{api + "grpc_services[0].initial_metadata[0].key: "}},
		"two values":     {header(&corev3.HeaderValue{Key: "a", Value: "a", RawValue: []byte("b")}), []string{api + "grpc_services[0].initial_metadata[0]: has value and raw_value"}},
		"variable":       {header(&corev3.HeaderValue{Key: "a", Value: "%HOSTNAME%"}), []string{api + "grpc_services[0].initial_metadata[0].value: has a variable (%…%)"}},
		"not printable":  {header(&corev3.HeaderValue{Key: "a", Value: "ä"}), []string{api + "grpc_services[0].initial_metadata[0]: has characters"}},
		"binary":         {header(&corev3.HeaderValue{Key: "a-bin", RawValue: []byte{255}}), nil},
		"no target":      {google(func(g *googleGrpc) { g.TargetUri = "" }), []string{first + "target_uri: "}},
		"http target":    {google(func(g *googleGrpc) { g.TargetUri = "http://a:1" }), []string{first + "target_uri: is a http URI"}},
		"xds target":     {google(func(g *googleGrpc) { g.TargetUri = "xds:///a" }), []string{first + "target_uri: is a xds URI"}},
		"unix target":    {google(func(g *googleGrpc) { g.TargetUri = "unix:///run/xds.sock" }), nil},
		"no port":        {google(func(g *googleGrpc) { g.TargetUri = "10.0.0.5" }), []string{first + "target_uri: needs a host and a port"}},
		"DNS":            {google(func(g *googleGrpc) { g.TargetUri = "dns:///upstream:18000" }), nil},
		"impossible":     {google(func(g *googleGrpc) { g.TargetUri = "dns:///a:b:c" }), []string{first + "target_uri: needs a host and a port"}},
		"no stat_prefix": {google(func(g *googleGrpc) { g.StatPrefix = "" }), []string{first + "stat_prefix: "}},
		"library":        {google(func(g *googleGrpc) { g.Config = &structpb.Struct{} }), []string{first + "config: "}},
		"factory":        {google(func(g *googleGrpc) { g.CredentialsFactoryName = "envoy.grpc_credentials.aws_iam" }), []string{first + `credentials_factory_name: hdsd does not know "envoy.grpc_credentials.aws_iam"`}},
		"buffer":         {google(func(g *googleGrpc) { g.PerStreamBufferLimitBytes = wrapperspb.UInt32(1 << 20) }), nil},
		"plugins": {google(func(g *googleGrpc) {
			g.ChannelCredentialsPlugin = []*anypb.Any{pack(&emptypb.Empty{})}
			g.CallCredentialsPlugin = []*anypb.Any{pack(&emptypb.Empty{})}
		}), []string{first + "channel_credentials_plugin: ", first + "call_credentials_plugin: "}},
		"argument":     {arg("grpc.keepalive_time_ms", &channelArg{ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 10_000}}), nil},
		"no argument":  {arg("grpc.http_proxy", &channelArg{ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 1}}), []string{first + `channel_args.args["grpc.http_proxy"]: hdsd does not know`}},
		"text for int": {arg("grpc.keepalive_time_ms", &channelArg{ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_StringValue{StringValue: "1"}}), []string{first + `channel_args.args["grpc.keepalive_time_ms"]: is of the wrong type`}},
		"negative":     {arg("grpc.keepalive_timeout_ms", &channelArg{ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: -1}}), []string{first + `channel_args.args["grpc.keepalive_timeout_ms"]: needs a number`}},

		"TLS":           {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{RootCerts: inlineString(string(a.pem)), CertChain: inlineString(string(chain)), PrivateKey: inlineString(string(key))}), nil},
		"no roots":      {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{RootCerts: inlineString("none")}), []string{first + "channel_credentials.ssl_credentials.root_certs: holds no certificate"}},
		"no file":       {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{RootCerts: filename(filepath.Join(folder, "none"))}), []string{first + "channel_credentials.ssl_credentials.root_certs: "}},
		"no key":        {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{CertChain: inlineString(string(chain))}), []string{first + "channel_credentials.ssl_credentials.private_key: needs"}},
		"no chain":      {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{PrivateKey: inlineString(string(key))}), []string{first + "channel_credentials.ssl_credentials.cert_chain: needs"}},
		"another's key": {ssl(&corev3.GrpcService_GoogleGrpc_SslCredentials{CertChain: inlineString(string(chain)), PrivateKey: inlineString(string(otherKey))}), []string{first + "channel_credentials.ssl_credentials.cert_chain: makes no pair"}},
		"google default": {google(func(g *googleGrpc) {
			g.ChannelCredentials = &corev3.GrpcService_GoogleGrpc_ChannelCredentials{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelCredentials_GoogleDefault{GoogleDefault: &emptypb.Empty{}}}
		}), []string{first + "channel_credentials.google_default: "}},
		"local, far away": {google(func(g *googleGrpc) { g.TargetUri = "10.0.0.5:1"; g.ChannelCredentials = localCredentials() }), []string{first + "channel_credentials.local_credentials: "}},
		"local":           {google(func(g *googleGrpc) { g.TargetUri = "dns:///127.0.0.1:1"; g.ChannelCredentials = localCredentials() }), nil},

		"token":              {call(accessToken("a")), nil},
		"no token":           {call(accessToken("")), []string{first + "call_credentials[0].access_token: "}},
		"token in plaintext": {google(func(g *googleGrpc) { g.CallCredentials = []*callCredentials{accessToken("a")} }), []string{first + "call_credentials[0]: would be sent in plaintext"}},
		"file of a token":    {call(tokenFile(inlineString("a\n"), "", "")), nil},
		"no file of a token": {call(tokenFile(filename(filepath.Join(folder, "none")), "", "")), []string{first + "call_credentials[0].from_plugin.typed_config.secret_data: "}},
		"two lines":          {call(tokenFile(inlineString("a\nb"), "", "")), []string{first + "call_credentials[0].from_plugin.typed_config.secret_data: the token has characters"}},
		"no header":          {call(tokenFile(inlineString("a"), "a b", "")), []string{first + "call_credentials[0].from_plugin.typed_config.header_key: "}},
		"no prefix":          {call(tokenFile(inlineString("a"), "a", "\n")), []string{first + "call_credentials[0].from_plugin.typed_config.header_prefix: "}},
		"unknown plugin": {call(&callCredentials{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_FromPlugin{
			FromPlugin: &corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin{Name: "envoy.grpc_credentials.aws_iam"},
		}}), []string{first + `call_credentials[0].from_plugin: hdsd does not know "envoy.grpc_credentials.aws_iam"`}},
		"google's": {call(&callCredentials{CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_GoogleRefreshToken{GoogleRefreshToken: "a"}}),
			[]string{first + "call_credentials[0]: is google_refresh_token, which hdsd does not have"}},
		"none": {call(&callCredentials{}), []string{first + "call_credentials[0].credential_specifier: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			problems := Validate("config_source", test.from)
			for i, p := range problems {
				if i >= len(test.want) || !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(p.Field, "config_source"), ".")+": "+p.Message, test.want[i]) {
					t.Errorf("problem %d: %s: %s", i, p.Field, p.Message)
				}
			}
			if len(problems) < len(test.want) {
				t.Errorf("problems %v, want %v", problems, test.want)
			}
			if _, err := New(Options{ConfigSource: test.from}); (err == nil) != (len(problems) == 0) {
				t.Errorf("New: %v", err)
			}
		})
	}
}

func localCredentials() *corev3.GrpcService_GoogleGrpc_ChannelCredentials {
	return &corev3.GrpcService_GoogleGrpc_ChannelCredentials{
		CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelCredentials_LocalCredentials{LocalCredentials: &corev3.GrpcService_GoogleGrpc_GoogleLocalCredentials{}},
	}
}
