package eds

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// The paths that Handler serves.
const (
	EndpointsPath = "/v3/discovery:endpoints"
	ClustersPath  = "/v3/discovery:clusters"
)

// maxBody is the size of the largest request taken in REST: as many names as a
// subscription may have, and a node.
const maxBody = 16 << 20

// Handler serves fetches by REST: a DiscoveryRequest in proto3 JSON by POST, the
// DiscoveryResponse or 304 back, which is the answer where version_info is what
// there is, or error_detail is about it. What does not exist is not in it: an
// Envoy that polls keeps the endpoints of an assignment that is gone. What is
// unknown in a request is left unread; what JSON has no place for is left out of
// the response.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := s.rest(w, r)
		if err != nil {
			writeError(w, err)
			return
		}
		if text == nil {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		size := 0
		for _, part := range text {
			size += len(part)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for _, part := range text {
			if _, err := w.Write(part); err != nil {
				return // the client has gone
			}
		}
	})
}

// rest gives the parts of the response; none where the client has it.
func (s *Server) rest(w http.ResponseWriter, r *http.Request) ([][]byte, error) {
	var t *table
	switch r.URL.Path {
	case EndpointsPath:
		t = s.assignments
	case ClustersPath:
		t = s.clusters
	default:
		return nil, status.Errorf(codes.NotFound, "nothing is served at %s: POST to %s or %s", r.URL.Path, EndpointsPath, ClustersPath)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, status.Errorf(codes.Unimplemented, "the method %s is not served; use POST with a DiscoveryRequest", r.Method)
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	done, err := s.turn(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	m := new(discoveryv3.DiscoveryRequest)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the request is not a DiscoveryRequest in proto3 JSON: %v", err)
	}
	f, err := s.fetch(t, m)
	if err != nil {
		return nil, err
	}
	if f.known(m) {
		s.metrics.unchanged.WithLabelValues(t.typeURL).Inc()
		return nil, nil
	}
	return s.text(f), nil
}

// readBody reads a request that is not endless.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, status.Errorf(codes.ResourceExhausted, "a request may have up to %d bytes", maxBody)
	} else if err != nil {
		w.Header().Set("Connection", "close") // the request was not read to its end
		return nil, status.Errorf(codes.InvalidArgument, "reading the request: %v", err)
	}
	return body, nil
}

func writeError(w http.ResponseWriter, err error) {
	said := status.Convert(err)
	text, _ := json.Marshal(map[string]any{"code": said.Code(), "message": said.Message()}) // cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(said.Code()))
	_, _ = w.Write(text)
}

// statusOf gives the HTTP status of the codes that fetches end with.
func statusOf(code codes.Code) int {
	switch code {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.NotFound:
		return http.StatusNotFound
	case codes.Unimplemented:
		return http.StatusMethodNotAllowed
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
