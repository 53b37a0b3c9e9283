package hds

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
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
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := s.rest(w, r)
		if err == nil {
			var encoded []byte
			if encoded, err = protojson.Marshal(answer); err == nil {
				s.respond(w, http.StatusOK, encoded)
				return
			}
		}
		said := status.Convert(err)
		encoded, _ := json.Marshal(map[string]any{"code": said.Code(), "message": said.Message()}) // cannot fail
		s.respond(w, httpStatus(said.Code()), encoded)
	})
}

func (s *Server) rest(w http.ResponseWriter, r *http.Request) (proto.Message, error) {
	control := http.NewResponseController(w)
	// A writer that knows no deadlines is not one of a server on a network.
	_ = control.SetReadDeadline(time.Now().Add(s.options.FirstMessageTimeout))
	w.Header().Set("Connection", "close") // where the request is not read to its end
	fetch := s.restV3
	switch {
	case r.URL.Path == FetchPathV2:
		fetch = s.restV2
	case r.URL.Path != FetchPath:
		return nil, status.Errorf(codes.NotFound, "nothing is served at %s: POST to %s or %s", r.URL.Path, FetchPath, FetchPathV2)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, status.Errorf(codes.Unimplemented, "%s is not served here: POST the request", r.Method)
	}
	body, err := s.body(w, r)
	if err != nil {
		return nil, err
	}
	w.Header().Del("Connection")
	_ = control.SetReadDeadline(time.Time{})
	q := &query{from: caller{hostOf(r.RemoteAddr), namesIn(r.TLS)}, nodes: r.Header.Values(NodeHeader)}
	return fetch(r.Context(), q, body)
}

func (s *Server) restV3(ctx context.Context, q *query, body []byte) (proto.Message, error) {
	q.message = &healthv3.HealthCheckRequestOrEndpointHealthResponse{}
	if err := fromJSON(body, q.message); err != nil {
		return nil, err
	}
	return s.fetch(ctx, q)
}

func (s *Server) restV2(ctx context.Context, q *query, body []byte) (proto.Message, error) {
	m := &discoveryv2.HealthCheckRequestOrEndpointHealthResponse{}
	if err := fromJSON(body, m); err != nil {
		return nil, err
	}
	return s.fetchV2(ctx, q, m)
}

func fromJSON(body []byte, m proto.Message) error {
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return status.Errorf(codes.InvalidArgument, "the body is not the JSON of a %s: %v", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// body reads a request that is not endless.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.options.MaxMessageBytes)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, status.Errorf(codes.ResourceExhausted, "the body is larger than %d bytes", large.Limit)
	case err != nil:
		return nil, status.Errorf(codes.InvalidArgument, "reading the body: %v", err)
	}
	return body, nil
}

func (s *Server) respond(w http.ResponseWriter, code int, body []byte) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		return // the peer is gone
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}

// httpStatus gives the HTTP status of the codes that fetches end with.
func httpStatus(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.FailedPrecondition:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.NotFound:
		return http.StatusNotFound
	case codes.Unimplemented:
		return http.StatusMethodNotAllowed
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusRequestEntityTooLarge
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
