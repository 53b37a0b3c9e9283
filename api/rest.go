package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// questions are the paths and the messages whose fields they take as
// parameters.
var questions = map[string]proto.Message{
	"/v1/endpoints":    &hdsdv1.ListEndpointsRequest{},
	"/v1/transitions":  &hdsdv1.ListTransitionsRequest{},
	"/v1/availability": &hdsdv1.ListAvailabilityRequest{},
	"/v1/clusters":     &hdsdv1.ListClustersRequest{},
	"/v1/checkers":     &hdsdv1.ListCheckersRequest{},
	"/v1/clients":      &hdsdv1.ListClientsRequest{},
	watchPath:          &hdsdv1.WatchRequest{},
}

// Handler serves the service as REST below /v1/.
func (s *Service) Handler() (http.Handler, error) {
	mux := runtime.NewServeMux(
		runtime.WithDisablePathLengthFallback(), // a POST is no question
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{
			MarshalOptions: protojson.MarshalOptions{EmitDefaultValues: true},
		}),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
	)
	if err := hdsdv1.RegisterQueryHandlerServer(context.Background(), mux, s); err != nil {
		return nil, fmt.Errorf("serving REST: %w", err)
	}
	return checkParameters(s.withWatch(mux)), nil
}

// checkParameters drops empty parameters and refuses unknown ones, which the
// gateway would ignore: a misspelt filter must not answer everything.
func checkParameters(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, ok := questions[r.URL.Path]
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		given, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			writeStatus(w, status.Newf(codes.InvalidArgument, "query: %v", err))
			return
		}
		known := parameters(question)
		for name, values := range given {
			if !slices.Contains(known, name) {
				writeStatus(w, status.Newf(codes.InvalidArgument, "unknown parameter %q: %s takes %s", name, r.URL.Path, strings.Join(known, ", ")))
				return
			}
			if len(values) > 1 {
				writeStatus(w, status.Newf(codes.InvalidArgument, "parameter %q is given %d times", name, len(values)))
				return
			}
			if values[0] == "" {
				given.Del(name)
			}
		}
		asked := r.Clone(r.Context())
		asked.URL.RawQuery = given.Encode()
		next.ServeHTTP(w, asked)
	})
}

// parameters are the names a question's fields go by in a URL.
func parameters(question proto.Message) []string {
	var names []string
	fields := question.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		names = append(names, field.JSONName())
		if plain := string(field.Name()); plain != field.JSONName() {
			names = append(names, plain)
		}
	}
	return names
}

func writeError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	writeStatus(w, status.Convert(err))
}

func writeRoutingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	grpcCode := codes.NotFound
	if code == http.StatusMethodNotAllowed {
		grpcCode = codes.Unimplemented
	}
	writeBody(w, grpcCode, fmt.Sprintf("%s %s: %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(code))))
}

func writeStatus(w http.ResponseWriter, s *status.Status) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(runtime.HTTPStatusFromCode(s.Code()))
	writeBody(w, s.Code(), s.Message())
}

func writeBody(w http.ResponseWriter, code codes.Code, message string) {
	// An error here means that the client is gone.
	_ = json.NewEncoder(w).Encode(struct {
		Code    codes.Code `json:"code"`
		Message string     `json:"message"`
	}{code, message})
}
