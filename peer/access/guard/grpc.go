package guard

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"hdsd/peer"
	"hdsd/peer/access"
)

// ServerOptions returns those of a gRPC server; mutual means that it demands client
// certificates.
func (g *Guard) ServerOptions(mutual bool) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			facts, token := factsOf(ctx, mutual)
			c, err := g.enter(ctx, info.FullMethod, access.OfMethod(info.FullMethod), facts, token)
			if err != nil {
				return nil, err
			}
			return handle(c.context(ctx), request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return g.stream(server, stream, info, handle, mutual)
		}),
	}
}

func (g *Guard) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler, mutual bool) error {
	facts, token := factsOf(stream.Context(), mutual)
	c, err := g.enter(stream.Context(), info.FullMethod, access.OfMethod(info.FullMethod), facts, token)
	if err != nil {
		return err
	}
	ctx, leave := c.follow(c.context(stream.Context()))
	defer leave()
	err = handle(server, &guarded{stream, ctx})
	if ended := withdrawn(ctx); ended != nil {
		return ended
	}
	return err
}

// factsOf returns the facts of a call's caller, and its bearer token.
func factsOf(ctx context.Context, mutual bool) (access.Facts, string) {
	md, _ := metadata.FromIncomingContext(ctx)
	return access.Facts{Caller: peer.FromContext(ctx), Mutual: mutual}, bearer(md.Get("authorization"))
}

// bearer returns the token of an authorization header, empty without one. Any other credential
// becomes a token that matches none: it begins with a space.
func bearer(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	text := strings.Join(headers, ",")
	if scheme, token, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "bearer") {
		if token = strings.TrimSpace(token); token != "" {
			return token
		}
	}
	return " " + text
}

// guarded is a stream whose authority may be withdrawn.
type guarded struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *guarded) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *guarded) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return withdrawn(s.ctx)
}

// SendMsg implements grpc.ServerStream.
func (s *guarded) SendMsg(m any) error {
	if err := withdrawn(s.ctx); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// withdrawn returns the error that ended a call's authority, or nil.
func withdrawn(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if cause := (*withdrawal)(nil); errors.As(context.Cause(ctx), &cause) {
		return cause.error
	}
	return nil
}
