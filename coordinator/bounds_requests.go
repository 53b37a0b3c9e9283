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

	"hdsd/internal/caller"
	"hdsd/internal/pace"
	"hdsd/internal/rest"
	"hdsd/internal/share"
	"hdsd/internal/wire"
)

// refusals logs requests that are refused because they hold or ask for too much.
type refusals struct {
	log   zerolog.Logger
	lines pace.Pace
}

// tell logs a refusal. Its reason says what the limit is, and what to do about it. Those
// of a pool are logged by the pool, as limit_reached.
func (r *refusals) tell(from, call string, err error) {
	if pooled := (*share.Error)(nil); status.Code(err) != codes.ResourceExhausted || errors.As(err, &pooled) {
		return
	}
	if more, ok := r.lines.Next(time.Now()); ok {
		r.log.Warn().Str("event", "request_refused").Str("caller", share.Name(from)).Str("call", call).
			Str("reason", rest.Brief(status.Convert(err).Message())).Uint64("more", more).
			Msg("refused a request that holds or asks for too much")
	}
}

func (r *refusals) byREST(q *http.Request, err error) {
	r.tell(caller.OfRequest(q).Key(), q.URL.Path, err)
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
			err := handle(server, &decoded{s, r, info.FullMethod})
			r.called(s.Context(), info.FullMethod, err)
			return err
		}),
	}
}

// called logs a refused call. The calls of checkers have events of their own.
func (r *refusals) called(ctx context.Context, method string, err error) {
	if err != nil && !strings.HasPrefix(method, checkersPrefix) {
		r.tell(caller.FromContext(ctx).Key(), method, err)
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

// decoded is a stream whose messages may be refused because of their size when they are
// decoded. grpc ends the stream then, before its handler returns.
type decoded struct {
	grpc.ServerStream
	refusals *refusals
	call     string
}

// RecvMsg implements grpc.ServerStream.
func (d *decoded) RecvMsg(m any) error {
	err := d.ServerStream.RecvMsg(m)
	if refused := wire.Refusal(err); refused != err { //nolint:errorlint // it is the same unless it is a refusal
		d.refusals.called(d.Context(), d.call, refused)
		return refused
	}
	return err
}
