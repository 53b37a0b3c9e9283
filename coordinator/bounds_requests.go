package coordinator

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/rest"
	"hdsd/internal/wire"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// refusals logs requests that are refused because they hold or ask for too much.
type refusals struct {
	log   zerolog.Logger
	lines limit.Pace
}

// tell logs a refusal. Its reason says what the limit is, and what to do about it. Those
// of a pool are logged by the pool, as limit_reached.
func (r *refusals) tell(from, call string, err error) {
	if pooled := (*limit.Error)(nil); status.Code(err) != codes.ResourceExhausted || errors.As(err, &pooled) {
		return
	}
	r.lines.Warn(time.Now(), &r.log, "request_refused").Str("caller", limit.Name(from)).Str("call", call).
		Str("reason", rest.Brief(status.Convert(err).Message())).
		Msg("refused a request that holds or asks for too much")
}

func (r *refusals) byREST(q *http.Request, err error) {
	r.tell(peer.OfRequest(q).Key(), q.URL.Path, err)
}

// options are those of the gRPC server, by the caller that the guard knows.
func (r *refusals) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, m any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			answer, err := handle(ctx, m)
			r.called(ctx, info.FullMethod, err)
			return answer, err
		}),
		grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			err := handle(server, &received{s, func(err error) error { return r.decoded(s.Context(), info.FullMethod, err) }})
			r.called(s.Context(), info.FullMethod, err)
			return err
		}),
	}
}

// called logs a refused call. The calls of checkers have events of their own.
func (r *refusals) called(ctx context.Context, method string, err error) {
	if err != nil && !strings.HasPrefix(method, checkersPrefix) {
		r.tell(peer.FromContext(ctx).Key(), method, err)
	}
}

var checkersPrefix = "/" + healthv3.HealthDiscoveryService_ServiceDesc.ServiceName + "/"

// registrar registers services. It logs unary requests that are too large to decode: grpc
// decodes them before any interceptor sees them.
type registrar struct {
	grpc.ServiceRegistrar
	refusals *refusals
}

// RegisterService implements grpc.ServiceRegistrar.
func (r *registrar) RegisterService(generated *grpc.ServiceDesc, server any) {
	service := *generated
	service.Methods = slices.Clone(service.Methods)
	for i := range service.Methods {
		m := &service.Methods[i]
		call, handle := "/"+service.ServiceName+"/"+m.MethodName, m.Handler
		m.Handler = func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return handle(server, ctx, func(m any) error {
				err := wire.Refusal(decode(m))
				r.refusals.called(ctx, call, err)
				return err
			}, intercept)
		}
	}
	r.ServiceRegistrar.RegisterService(&service, server)
}

// decoded gives the error of a message that may be refused because of its size when it is decoded.
// grpc ends the stream then, before its handler returns.
func (r *refusals) decoded(ctx context.Context, call string, err error) error {
	refused := wire.Refusal(err)
	if refused != err { //nolint:errorlint // it is the same unless it is a refusal
		r.called(ctx, call, refused)
	}
	return refused
}

// received is a stream that sees what came of each message, and may replace the error.
type received struct {
	grpc.ServerStream
	see func(error) error
}

// RecvMsg implements grpc.ServerStream.
func (r *received) RecvMsg(m any) error { return r.see(r.ServerStream.RecvMsg(m)) }
