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

// refusals logs requests that hdsd refuses because of their size or their demands.
type refusals struct {
	log   zerolog.Logger
	lines limit.Pace
}

// report logs a refusal, whose reason names the limit and a remedy. It leaves out refusals of pools, which log
// them as limit_reached.
func (r *refusals) report(caller, call string, err error) {
	if pooled := (*limit.Error)(nil); status.Code(err) != codes.ResourceExhausted || errors.As(err, &pooled) {
		return
	}
	r.lines.Warn(time.Now(), &r.log, "request_refused").Str("caller", limit.Name(caller)).Str("call", call).
		Str("reason", rest.Brief(status.Convert(err).Message())).
		Msg("refused a request that holds or asks for too much")
}

// reportREST logs the refusal of a REST request.
func (r *refusals) reportREST(q *http.Request, err error) {
	r.report(peer.OfRequest(q).Key(), q.URL.Path, err)
}

// options returns the options of the gRPC server. They come after the guard, which knows the caller.
func (r *refusals) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, m any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			answer, err := handle(ctx, m)
			r.reportCall(ctx, info.FullMethod, err)
			return answer, err
		}),
		grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			err := handle(server, &observedStream{s, func(err error) error { return r.decoded(s.Context(), info.FullMethod, err) }})
			r.reportCall(s.Context(), info.FullMethod, err)
			return err
		}),
	}
}

// reportCall logs the refusal of a gRPC call. Calls of checkers have events of their own.
func (r *refusals) reportCall(ctx context.Context, method string, err error) {
	if err != nil && !strings.HasPrefix(method, checkersPrefix) {
		r.report(peer.FromContext(ctx).Key(), method, err)
	}
}

var checkersPrefix = "/" + healthv3.HealthDiscoveryService_ServiceDesc.ServiceName + "/"

// registrar registers services, and logs unary requests that are too large to decode. grpc decodes requests
// before it calls interceptors.
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
				r.refusals.reportCall(ctx, call, err)
				return err
			}, intercept)
		}
	}
	r.ServiceRegistrar.RegisterService(&service, server)
}

// decoded returns the error of decoding a message of a stream. It logs a refusal because of the size; grpc
// ends the stream then, before the handler returns.
func (r *refusals) decoded(ctx context.Context, call string, err error) error {
	refusal := wire.Refusal(err)
	if refusal != err { //nolint:errorlint // identical unless it is a refusal
		r.reportCall(ctx, call, refusal)
	}
	return refusal
}

// observedStream passes the error of each received message through a function.
type observedStream struct {
	grpc.ServerStream
	observe func(error) error
}

// RecvMsg implements grpc.ServerStream.
func (r *observedStream) RecvMsg(m any) error { return r.observe(r.ServerStream.RecvMsg(m)) }
