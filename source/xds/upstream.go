package xds

import (
	"context"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
)

// Dial makes a connection to one of the grpc_services of a valid ApiConfigSource, for clients
// without a Source. It reads the files with certificates. secured returns the dial options for
// the transport credentials.
func Dial(service *corev3.GrpcService, codec encoding.CodecV2, maxMessageBytes int, secured func(credentials.TransportCredentials) []grpc.DialOption) (*grpc.ClientConn, error) {
	google := service.GetGoogleGrpc()
	secure, err := transport(google)
	if err != nil {
		return nil, err
	}
	alive := keepalive.ClientParameters{Time: keepaliveTime}
	options := append(secured(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.ForceCodecV2(codec)),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
	)
	for key, arg := range google.GetChannelArgs().GetArgs() {
		options = append(options, channelArgs[key](arg, &alive)...)
	}
	options = append(options, grpc.WithKeepaliveParams(alive), grpc.WithContextDialer(dial))
	return grpc.NewClient(google.GetTargetUri(), options...)
}

// WithMetadata adds the metadata of a stream to such a server. It reads tokens from their
// files.
func WithMetadata(ctx context.Context, service *corev3.GrpcService) (context.Context, error) {
	return withMetadata(ctx, service)
}

// OpenTimeout bounds the time for a stream to such a server to open.
func OpenTimeout(service *corev3.GrpcService) time.Duration {
	if timeout := service.GetTimeout().AsDuration(); timeout > 0 {
		return timeout
	}
	return defaultOpenTimeout
}
