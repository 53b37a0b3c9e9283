package csds

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// Path is where the handler of REST belongs.
const Path = "/v3/discovery:client_status"

// maxRequest is the size of the largest request taken in REST.
const maxRequest = 1 << 20

// Handler gives the REST form: a ClientStatusRequest in proto3 JSON by POST, or
// none by GET, where node_id (exact) and exclude_resource_contents may be given
// as query parameters.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := readRequest(w, r)
		if err != nil {
			writeError(w, err)
			return
		}
		response, err := s.answer(r.Context(), request)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		writeResponse(w, response)
	})
}

func readRequest(w http.ResponseWriter, r *http.Request) (*statusv3.ClientStatusRequest, error) {
	switch r.Method {
	case http.MethodPost:
		return readBody(http.MaxBytesReader(w, r.Body, maxRequest))
	case http.MethodGet, http.MethodHead:
		return readQuery(r)
	}
	w.Header().Set("Allow", "GET, HEAD, POST")
	return nil, status.Errorf(codes.Unimplemented, "the method %s is not served; use POST with a ClientStatusRequest, or GET", r.Method)
}

func readBody(body io.Reader) (*statusv3.ClientStatusRequest, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, status.Errorf(codes.InvalidArgument, "a request may have up to %d bytes", maxRequest)
		}
		return nil, status.Errorf(codes.InvalidArgument, "reading the request: %v", err)
	}
	request := &statusv3.ClientStatusRequest{}
	if len(text) == 0 {
		return request, nil
	}
	if err := protojson.Unmarshal(text, request); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the request is not a ClientStatusRequest in proto3 JSON: %v", err)
	}
	return request, nil
}

func readQuery(r *http.Request) (*statusv3.ClientStatusRequest, error) {
	request := &statusv3.ClientStatusRequest{}
	for name, values := range r.URL.Query() {
		switch name {
		case "node_id", "nodeId":
			for _, id := range values {
				request.NodeMatchers = append(request.NodeMatchers, &matcherv3.NodeMatcher{
					NodeId: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: id}},
				})
			}
		case "exclude_resource_contents", "excludeResourceContents":
			exclude, err := strconv.ParseBool(values[len(values)-1])
			if err != nil {
				return nil, status.Errorf(codes.InvalidArgument, "%s: is %q, use true or false", name, values[len(values)-1])
			}
			request.ExcludeResourceContents = exclude
		default:
			return nil, status.Errorf(codes.InvalidArgument, "the query parameter %q is not known; use node_id or exclude_resource_contents, or POST a ClientStatusRequest", name)
		}
	}
	return request, nil
}

func writeError(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(s.Code()))
	fmt.Fprintf(w, "{\"code\":%d,\"message\":%s}\n", s.Code(), quoted(s.Message()))
}

func statusOf(code codes.Code) int {
	switch code {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unimplemented:
		return http.StatusMethodNotAllowed
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
