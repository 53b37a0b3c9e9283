package hds

import (
	"bytes"
	"context"
	"net/http"

	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/rest"
	"hdsd/peer"
	"hdsd/peer/access"
)

// The paths that Handler serves.
const (
	FetchPath   = "/v3/discovery:health_check"
	FetchPathV2 = "/v2/discovery:health_check"
)

// Handler serves FetchHealthCheck by REST: POST to FetchPath and FetchPathV2, with proto3 JSON
// in and out. It ignores unknown fields of a request. Errors have a code as in gRPC and a
// message.
func (s *Server) Handler() http.Handler {
	return &rest.Server{
		Paths: map[string]func(*http.Request, []byte) (rest.Answer, error){
			FetchPath: byREST(s, func() *healthv3.HealthCheckRequestOrEndpointHealthResponse {
				return new(healthv3.HealthCheckRequestOrEndpointHealthResponse)
			}, s.fetch),
			FetchPathV2: byREST(s, func() *discoveryv2.HealthCheckRequestOrEndpointHealthResponse {
				return new(discoveryv2.HealthCheckRequestOrEndpointHealthResponse)
			}, s.fetchV2),
		},
		Limit:    s.mostText,
		Budget:   s.options.Bodies,
		MaxBytes: s.options.MaxMessageBytes,

		MaxBytesField: "limits.max_message_bytes",
		ReadTimeout:   s.options.FirstMessageTimeout,
		WriteTimeout:  s.options.WriteTimeout,
	}
}

func byREST[T, M proto.Message](s *Server, request func() M, fetch func(context.Context, *query) (T, error)) func(*http.Request, []byte) (rest.Answer, error) {
	return func(r *http.Request, body []byte) (rest.Answer, error) {
		nodes := r.Header.Values(NodeHeader)
		if err := s.checkText(body, nodes); err != nil {
			s.refuseReport(peer.OfRequest(r).Key(), "", err)
			return nil, err
		}
		m := request()
		if err := rest.Unmarshal(lenient, body, m); err != nil {
			return nil, err
		}
		message, err := encoded(m)
		if err != nil {
			return nil, err
		}
		spec, err := fetch(r.Context(), &query{caller: peer.OfRequest(r), permit: access.FromContext(r.Context()), nodes: nodes, message: message})
		if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(spec)
		return rest.Text(text), err
	}
}

// textFactor bounds how much larger a message is in JSON.
const textFactor = 8

// mostText bounds the bytes of a request's body.
func (s *Server) mostText(r *http.Request) int {
	return min(s.options.MaxMessageBytes, textFactor*max(maxFirstBytes, s.mostBytes(r.Header.Values(NodeHeader))))
}

// checkText returns an error if a body has more parts than any message accepted from the
// checker. It counts before anything is decoded: a comma stands between two parts.
func (s *Server) checkText(body []byte, nodes []string) error {
	limit := maxFirstFields + s.mostBytes(nodes)/bytesPerEntry*fieldsPerEntry
	if n := bytes.Count(body, []byte{','}); n > limit {
		return rest.TooLarge("the fetch has %d fields, and %d are taken for what the checker is assigned: report only what the specifier lists", n, limit)
	}
	return nil
}

// fieldsPerEntry bounds the JSON fields of a report's entry.
const fieldsPerEntry = 8

var lenient = protojson.UnmarshalOptions{DiscardUnknown: true}
