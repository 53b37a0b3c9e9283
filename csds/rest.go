package csds

import (
	"net/http"
	"strconv"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/internal/rest"
)

// Path is the path of the REST handler.
const Path = "/v3/discovery:client_status"

// maxRequest is the size of the largest REST request.
const maxRequest = 1 << 20

// Handler serves client status by REST: a POST of a ClientStatusRequest in proto3 JSON, or
// a GET with the query parameters node_id (exact) and exclude_resource_contents.
func (s *Server) Handler() http.Handler {
	return &rest.Server{
		Paths:    map[string]func(*http.Request, []byte) (rest.Answer, error){Path: s.rest},
		Methods:  []string{http.MethodGet, http.MethodHead, http.MethodPost},
		MaxBytes: maxRequest,
		Budget:   s.bodies,
	}
}

func (s *Server) rest(r *http.Request, body []byte) (rest.Answer, error) {
	var request *statusv3.ClientStatusRequest
	var err error
	if r.Method == http.MethodPost {
		request, err = readBody(body)
	} else {
		request, err = readQuery(r)
	}
	if err != nil {
		return nil, err
	}
	response, err := s.answer(r.Context(), request)
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter) { writeResponse(w, response) }, nil
}

func readBody(body []byte) (*statusv3.ClientStatusRequest, error) {
	request := &statusv3.ClientStatusRequest{}
	if len(body) == 0 {
		return request, nil
	}
	return request, rest.Unmarshal(protojson.UnmarshalOptions{}, body, request)
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
