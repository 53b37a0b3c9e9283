package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
)

// Handler serves the service as REST below /v1/.
func (s *Service) Handler() (http.Handler, error) {
	mux := newGateway()
	if err := hdsdv1.RegisterQueryHandlerServer(context.Background(), mux, queries{s}); err != nil {
		return nil, fmt.Errorf("serving REST: %w", err)
	}
	return checkParameters(withDocument(s.withWatch(delivered(mux)))), nil
}

func newGateway() *runtime.ServeMux {
	return runtime.NewServeMux(
		runtime.WithDisablePathLengthFallback(), // queries take no POST
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &answers{}),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
	)
}

// answers marshals responses as compact JSON.
type answers struct{ runtime.JSONPb }

func (answers) Marshal(answer any) ([]byte, error) {
	message, ok := answer.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no answer", answer)
	}
	return compactJSON(message)
}

func writeError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	rest.WriteError(w, err)
}

func writeRoutingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	grpcCode := codes.NotFound
	switch code {
	case http.StatusMethodNotAllowed:
		grpcCode = codes.Unimplemented
	case http.StatusBadRequest:
		grpcCode = codes.InvalidArgument
	}
	rest.WriteError(w, rest.Errorf(code, grpcCode, "%s %s: %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(code))))
}
