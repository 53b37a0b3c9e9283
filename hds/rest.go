package hds

import (
	"context"
	"net/http"

	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/caller"
	"hdsd/internal/rest"
)

// The paths that Handler serves.
const (
	FetchPath   = "/v3/discovery:health_check"
	FetchPathV2 = "/v2/discovery:health_check"
)

// Handler serves FetchHealthCheck by REST: POST to FetchPath and FetchPathV2,
// with proto3 JSON in and out. What is unknown in a request is left unread.
// Errors have a code as in gRPC and a message.
func (s *Server) Handler() http.Handler {
	return &rest.Server{
		Paths: map[string]func(*http.Request, []byte) (rest.Answer, error){
			FetchPath:   byREST(s.restV3),
			FetchPathV2: byREST(s.restV2),
		},
		MaxBytes:     s.options.MaxMessageBytes,
		ReadTimeout:  s.options.FirstMessageTimeout,
		WriteTimeout: s.options.WriteTimeout,
	}
}

func byREST(fetch func(context.Context, *query, []byte) (proto.Message, error)) func(*http.Request, []byte) (rest.Answer, error) {
	return func(r *http.Request, body []byte) (rest.Answer, error) {
		q := &query{from: caller.OfRequest(r), nodes: r.Header.Values(NodeHeader)}
		spec, err := fetch(r.Context(), q, body)
		if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(spec)
		return rest.Text(text), err
	}
}

func (s *Server) restV3(ctx context.Context, q *query, body []byte) (proto.Message, error) {
	q.message = &healthv3.HealthCheckRequestOrEndpointHealthResponse{}
	if err := rest.Unmarshal(lenient, body, q.message); err != nil {
		return nil, err
	}
	return s.fetch(ctx, q)
}

func (s *Server) restV2(ctx context.Context, q *query, body []byte) (proto.Message, error) {
	m := &discoveryv2.HealthCheckRequestOrEndpointHealthResponse{}
	if err := rest.Unmarshal(lenient, body, m); err != nil {
		return nil, err
	}
	return s.fetchV2(ctx, q, m)
}

var lenient = protojson.UnmarshalOptions{DiscardUnknown: true}
