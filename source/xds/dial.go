package xds

import (
	"context"
	"net"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// keepaliveTime is the interval of pings on a silent connection. By default, gRPC
// servers end connections that ping more often.
const keepaliveTime = 5 * time.Minute

// dial makes a connection for one stream. So each stream reads the files again, and
// only the back-off of this package decides when to retry.
func (s *Source) dial(server int) (*grpc.ClientConn, error) {
	google := s.settings.api.GetGrpcServices()[server].GetGoogleGrpc()
	secure, err := s.secured(server, google)
	if err != nil {
		return nil, err
	}
	alive := keepalive.ClientParameters{Time: keepaliveTime}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.options.MaxMessageBytes), grpc.ForceCodecV2(newCodec())),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
	}
	for key, arg := range google.GetChannelArgs().GetArgs() {
		options = append(options, channelArgs[key](arg, &alive)...)
	}
	options = append(options, grpc.WithKeepaliveParams(alive), grpc.WithContextDialer(s.dialer))
	return grpc.NewClient(google.GetTargetUri(), options...)
}

// dialer opens connections.
type dialer func(context.Context, string) (net.Conn, error)

// dial opens a connection that fails within half a minute of losing its peer, however
// silent it is.
func dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	if name, ok := strings.CutPrefix(address, "\x00"); ok {
		return d.DialContext(ctx, "unix", "@"+name)
	}
	return d.DialContext(ctx, "tcp", address)
}

// channelArgs are the supported arguments of a channel.
var channelArgs = map[string]func(*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value, *keepalive.ClientParameters) []grpc.DialOption{
	"grpc.keepalive_time_ms": func(v *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value, k *keepalive.ClientParameters) []grpc.DialOption {
		k.Time = time.Duration(v.GetIntValue()) * time.Millisecond
		return nil
	},
	"grpc.keepalive_timeout_ms": func(v *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value, k *keepalive.ClientParameters) []grpc.DialOption {
		k.Timeout = time.Duration(v.GetIntValue()) * time.Millisecond
		return nil
	},
	"grpc.default_authority": func(v *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value, _ *keepalive.ClientParameters) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithAuthority(v.GetStringValue())}
	},
}

// secured returns the credentials for a server's connections. If the files are broken,
// it returns the last valid ones.
func (s *Source) secured(server int, google *corev3.GrpcService_GoogleGrpc) (credentials.TransportCredentials, error) {
	now, err := transport(google)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.secure[server] = now
		return now.Clone(), nil
	}
	before := s.secure[server]
	if before == nil {
		return nil, err
	}
	s.options.Log.Warn().Str("event", "upstream_files_refused").Str("source", s.options.Name).
		Str("upstream", google.GetTargetUri()).Err(err).Msg("TLS stays with the files read before")
	return before.Clone(), nil
}
