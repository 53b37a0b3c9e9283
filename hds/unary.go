package hds

import (
	"context"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/caller"
)

// fetchedBytes is a fetch as it came. It is not decoded before hdsd knows whose it is,
// and how much that checker may say.
type fetchedBytes struct {
	most    int
	bytes   []byte
	refusal error // why it was not taken; grpc would hide the error's code
}

// UnmarshalWire implements wire.Unmarshaler.
func (f *fetchedBytes) UnmarshalWire(data mem.BufferSlice) error {
	if size := data.Len(); size > f.most {
		f.refusal = tooLargeFetch(size, f.most)
		return nil
	}
	f.bytes = data.Materialize()
	return nil
}

func tooLargeFetch(size, most int) error {
	return status.Errorf(codes.ResourceExhausted, "the fetch has %d bytes, and %d are taken for what the checker is assigned: report only what the specifier lists", size, most)
}

// unary returns the description of a health discovery service whose fetches are not
// decoded before answer gets them.
func unary[T proto.Message](s *Server, service grpc.ServiceDesc, answer func(context.Context, *query) (T, error)) *grpc.ServiceDesc {
	method := service.Methods[0].MethodName // the only one
	info := grpc.UnaryServerInfo{FullMethod: "/" + service.ServiceName + "/" + method}
	service.Methods = []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			q := queryOf(ctx, nil)
			m := &fetchedBytes{most: max(maxFirstBytes, s.mostBytes(q.nodes))}
			if err := decode(m); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, m any) (any, error) {
				in := m.(*fetchedBytes)
				if in.refusal != nil {
					s.refuseReport(caller.FromContext(ctx).Key(), "", in.refusal)
					return nil, in.refusal
				}
				q := queryOf(ctx, in.bytes)
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

// mostBytes is how many bytes a report may have of a checker that fetches, which the
// values of NodeHeader name.
func (s *Server) mostBytes(nodes []string) int {
	var of plans
	if len(nodes) == 1 {
		s.mu.Lock()
		one := s.sessions[nodes[0]]
		s.mu.Unlock()
		if one != nil {
			of = one.progress.sentPlans()
		}
	}
	return of.maxBytes()
}

// encoded gives the wire form of a fetch.
func encoded(m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the request cannot be read: %v", err)
	}
	return b, nil
}

// FetchHealthCheck is what the service does with a fetch that is decoded already.
func (s *Server) FetchHealthCheck(ctx context.Context, m *healthv3.HealthCheckRequestOrEndpointHealthResponse) (*healthv3.HealthCheckSpecifier, error) {
	b, err := encoded(m)
	if err != nil {
		return nil, err
	}
	return s.fetch(ctx, queryOf(ctx, b))
}
