package hds

import (
	"context"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/peer"
)

// fetchedBytes is a fetch as received. It is not decoded before hdsd knows its checker, and that
// checker's bound.
type fetchedBytes struct {
	limit   int
	bytes   []byte
	refusal error // reason why it was refused; grpc would hide the error's code
}

// UnmarshalWire implements wire.Unmarshaler.
func (f *fetchedBytes) UnmarshalWire(data mem.BufferSlice) error {
	if size := data.Len(); size > f.limit {
		f.refusal = tooLargeFetch(size, f.limit)
		return nil
	}
	f.bytes = data.Materialize()
	return nil
}

func tooLargeFetch(size, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "the fetch has %d bytes, and %d are taken for what the checker is assigned: report only what the specifier lists", size, limit)
}

// unary returns the description of a health discovery service whose fetches reach answer without
// being decoded.
func unary[T proto.Message](s *Server, service grpc.ServiceDesc, answer func(context.Context, *query) (T, error)) *grpc.ServiceDesc {
	method := service.Methods[0].MethodName // the only one
	info := grpc.UnaryServerInfo{FullMethod: "/" + service.ServiceName + "/" + method}
	service.Methods = []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			q := queryOf(ctx, nil)
			m := &fetchedBytes{limit: max(maxFirstBytes, s.mostBytes(q.nodes))}
			if err := decode(m); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, m any) (any, error) {
				fetched := m.(*fetchedBytes)
				if fetched.refusal != nil {
					s.refuseReport(peer.FromContext(ctx).Key(), "", fetched.refusal)
					return nil, fetched.refusal
				}
				q := queryOf(ctx, fetched.bytes)
				return answer(ctx, q)
			}
			if intercept == nil {
				return handle(ctx, m)
			}
			called := info
			called.Server = server
			return intercept(ctx, m, &called, handle)
		},
	}}
	return &service
}

// mostBytes bounds a report of the fetching checker named by the values of NodeHeader.
func (s *Server) mostBytes(nodes []string) int {
	var current plans
	if len(nodes) == 1 {
		s.mu.Lock()
		session := s.sessions[nodes[0]]
		s.mu.Unlock()
		if session != nil {
			current = session.progress.sentPlans()
		}
	}
	return current.maxBytes()
}

// encoded returns the wire form of a fetch.
func encoded(m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the request cannot be read: %v", err)
	}
	return b, nil
}

// FetchHealthCheck serves a decoded fetch.
func (s *Server) FetchHealthCheck(ctx context.Context, m *healthv3.HealthCheckRequestOrEndpointHealthResponse) (*healthv3.HealthCheckSpecifier, error) {
	b, err := encoded(m)
	if err != nil {
		return nil, err
	}
	return s.fetch(ctx, queryOf(ctx, b))
}
