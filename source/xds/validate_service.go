package xds

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	credentialv3 "github.com/envoyproxy/go-control-plane/envoy/config/grpc_credential/v3"
)

// service checks one of grpc_services.
func (v *validation) service(field string, s *corev3.GrpcService) {
	if s.GetTimeout() != nil && s.GetTimeout().AsDuration() <= 0 {
		v.add(field+".timeout", "needs a duration above 0: it is how long a stream may take to open (%s where it is absent)", defaultOpenTimeout)
	}
	if s.GetRetryPolicy() != nil {
		v.add(field+".retry_policy", "is for envoy_grpc only; hdsd tries again after %s to %s: remove it", leastBackoff, mostBackoff)
	}
	for i, header := range s.GetInitialMetadata() {
		v.header(fmt.Sprintf("%s.initial_metadata[%d]", field, i), header)
	}
	switch target := s.GetTargetSpecifier().(type) {
	case *corev3.GrpcService_EnvoyGrpc_:
		v.add(field+".envoy_grpc", "names a cluster of an Envoy (%q), and hdsd has none: use google_grpc: {target_uri: \"10.0.0.5:18000\", stat_prefix: upstream}",
			target.EnvoyGrpc.GetClusterName())
	case *corev3.GrpcService_GoogleGrpc_:
		v.google(field+".google_grpc", target.GoogleGrpc)
	default: // the message's own rules require one
	}
}

func (v *validation) header(field string, h *corev3.HeaderValue) {
	binary := strings.HasSuffix(h.GetKey(), "-bin")
	switch {
	case !lower(h.GetKey()) || strings.HasPrefix(h.GetKey(), "grpc-"):
		v.add(field+".key", "needs a name in lower case that is not gRPC's own, such as x-team")
	case h.GetValue() != "" && len(h.GetRawValue()) > 0:
		v.add(field, "has value and raw_value: only one of them may be set")
	case strings.Contains(strings.ReplaceAll(h.GetValue(), "%%", ""), "%"):
		v.add(field+".value", "has a variable (%%…%%), and there is no request that it could be of: write the value itself, and %%%% for a percent sign")
	case !binary && !printable(h.GetValue()+string(h.GetRawValue())):
		v.add(field, "has characters that a header cannot have: use printable ASCII, or a key that ends in -bin")
	}
}

func (v *validation) google(field string, g *corev3.GrpcService_GoogleGrpc) {
	v.target(field, g)
	if g.GetConfig() != nil {
		v.add(field+".config", "is for the C++ library alone: remove it")
	}
	if name := g.GetCredentialsFactoryName(); name != "" && name != "envoy.grpc_credentials.default" && name != fileBasedName {
		v.add(field+".credentials_factory_name", "hdsd does not know %q: remove it, and use channel_credentials and call_credentials", name)
	}
	if len(g.GetChannelCredentialsPlugin()) > 0 {
		v.add(field+".channel_credentials_plugin", "is not known to hdsd, as it is not to Envoy: use channel_credentials")
	}
	if len(g.GetCallCredentialsPlugin()) > 0 {
		v.add(field+".call_credentials_plugin", "is not known to hdsd, as it is not to Envoy: use call_credentials")
	}
	for key, arg := range g.GetChannelArgs().GetArgs() {
		v.channelArg(field+".channel_args.args["+fmt.Sprintf("%q", key)+"]", key, arg)
	}
	v.channel(field, g)
	for i, call := range g.GetCallCredentials() {
		v.call(fmt.Sprintf("%s.call_credentials[%d]", field, i), call, g)
	}
}

func (v *validation) target(field string, g *corev3.GrpcService_GoogleGrpc) {
	endpoint := g.GetTargetUri()
	if u, err := url.Parse(endpoint); err == nil && strings.Contains(endpoint, "://") {
		switch u.Scheme {
		case "dns":
			endpoint = strings.TrimPrefix(u.Path, "/")
		case "unix", "unix-abstract", "passthrough":
			return
		default:
			v.add(field+".target_uri", "is a %s URI: gRPC takes \"host:port\", \"dns:///host:port\" and \"unix:///path\"", u.Scheme)
			return
		}
	}
	if strings.HasPrefix(endpoint, "unix:") || strings.HasPrefix(endpoint, "unix-abstract:") {
		return
	}
	if _, port, err := net.SplitHostPort(strings.TrimPrefix(endpoint, "dns:")); err != nil || port == "" {
		v.add(field+".target_uri", "needs a host and a port, such as \"10.0.0.5:18000\"")
	}
}

func (v *validation) channelArg(field, key string, arg *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value) {
	_, number := arg.GetValueSpecifier().(*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue)
	switch {
	case channelArgs[key] == nil:
		v.add(field, "hdsd does not know this one: of the library's, it takes grpc.default_authority, grpc.keepalive_time_ms and grpc.keepalive_timeout_ms")
	case number != strings.HasSuffix(key, "_ms"):
		v.add(field, "is of the wrong type: times are int_value, all else is string_value")
	case number && arg.GetIntValue() <= 0:
		v.add(field, "needs a number above 0")
	}
}

// channel checks the channel credentials of a connection.
func (v *validation) channel(field string, g *corev3.GrpcService_GoogleGrpc) {
	switch c := g.GetChannelCredentials().GetCredentialSpecifier().(type) {
	case *corev3.GrpcService_GoogleGrpc_ChannelCredentials_SslCredentials:
		_, err := clientTLS(c.SslCredentials)
		if wrong, ok := errors.AsType[*fileError](err); ok {
			v.add(field+".channel_credentials.ssl_credentials."+wrong.field, "%s", wrong.err)
		}
	case *corev3.GrpcService_GoogleGrpc_ChannelCredentials_GoogleDefault:
		v.add(field+".channel_credentials.google_default", "takes credentials of Google's cloud from the machine, which hdsd does not: use ssl_credentials: {} for TLS with the machine's authorities")
	case *corev3.GrpcService_GoogleGrpc_ChannelCredentials_LocalCredentials:
		if !isLocal(g.GetTargetUri()) {
			v.add(field+".channel_credentials.local_credentials", "is for unix sockets and loopback addresses, and %s is none: use ssl_credentials", g.GetTargetUri())
		}
	default: // without credentials, the connection is in plaintext
	}
}

func isLocal(target string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return true
	}
	host, _, err := net.SplitHostPort(target[strings.LastIndex(target, "/")+1:])
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

const fileBasedName = "envoy.grpc_credentials.file_based_metadata"

// call checks the call credentials of a stream.
func (v *validation) call(field string, call *corev3.GrpcService_GoogleGrpc_CallCredentials, g *corev3.GrpcService_GoogleGrpc) {
	if g.GetChannelCredentials().GetCredentialSpecifier() == nil {
		v.add(field, "would be sent in plaintext: add channel_credentials: {ssl_credentials: {}}")
	}
	switch c := call.GetCredentialSpecifier().(type) {
	case *corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken:
		if c.AccessToken == "" || !printable(c.AccessToken) {
			v.add(field+".access_token", "needs a token in printable ASCII")
		}
	case *corev3.GrpcService_GoogleGrpc_CallCredentials_FromPlugin:
		v.plugin(field+".from_plugin", c.FromPlugin)
	case nil: // the message's own rules require one
	default:
		m := call.ProtoReflect()
		name := m.WhichOneof(m.Descriptor().Oneofs().Get(0)).Name()
		v.add(field, "is %s, which hdsd does not have: use access_token, or from_plugin with %s for a token in a file", name, fileBasedName)
	}
}

func (v *validation) plugin(field string, plugin *corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin) {
	config := &credentialv3.FileBasedMetadataConfig{}
	if plugin.GetName() != fileBasedName || plugin.GetTypedConfig().UnmarshalTo(config) != nil {
		v.add(field, "hdsd does not know %q (%s): the one that it knows is %s, with a %s",
			plugin.GetName(), plugin.GetTypedConfig().GetTypeUrl(), fileBasedName, config.ProtoReflect().Descriptor().FullName())
		return
	}
	if key := strings.ToLower(config.GetHeaderKey()); key != "" && (!lower(key) || strings.HasPrefix(key, "grpc-")) {
		v.add(field+".typed_config.header_key", "needs the name of a header that is not gRPC's own, such as authorization")
	}
	if !printable(config.GetHeaderPrefix()) {
		v.add(field+".typed_config.header_prefix", "needs printable ASCII, such as \"Bearer \"")
	}
	if _, _, err := fileBased(plugin); err != nil {
		v.add(field+".typed_config.secret_data", "%s", err)
	}
}
