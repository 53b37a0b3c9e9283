package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// Handler serves the service as REST below /v1/.
func (s *Service) Handler() (http.Handler, error) {
	mux := newGateway()
	if err := hdsdv1.RegisterQueryHandlerServer(context.Background(), mux, s); err != nil {
		return nil, fmt.Errorf("serving REST: %w", err)
	}
	return checkParameters(withDocument(s.withWatch(mux))), nil
}

func newGateway() *runtime.ServeMux {
	return runtime.NewServeMux(
		runtime.WithDisablePathLengthFallback(), // a POST is no question
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &answers{}),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
	)
}

// answers puts answers into compact JSON.
type answers struct{ runtime.JSONPb }

func (answers) Marshal(answer any) ([]byte, error) {
	message, ok := answer.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no answer", answer)
	}
	return compactJSON(message)
}

func writeError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	writeStatus(w, status.Convert(err))
}

func writeRoutingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	grpcCode := codes.NotFound
	switch code {
	case http.StatusMethodNotAllowed:
		grpcCode = codes.Unimplemented
	case http.StatusBadRequest:
		grpcCode = codes.InvalidArgument
	}
	refuse(w, code, grpcCode, fmt.Sprintf("%s %s: %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(code))))
}

// refuseMethod says which methods a path is served by.
func refuseMethod(w http.ResponseWriter, r *http.Request, served ...string) {
	allowed := strings.Join(served, ", ")
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, codes.Unimplemented, fmt.Sprintf("%s is not served at %s: use %s", r.Method, r.URL.Path, allowed))
}

func writeStatus(w http.ResponseWriter, s *status.Status) {
	refuse(w, runtime.HTTPStatusFromCode(s.Code()), s.Code(), s.Message())
}

// refuse writes an error as every error here looks.
func refuse(w http.ResponseWriter, status int, code codes.Code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone.
	_ = json.NewEncoder(w).Encode(struct {
		Code    codes.Code `json:"code"`
		Message string     `json:"message"`
	}{code, brief(message)})
}

// longMessage is the length in bytes from which on a message is cut.
const longMessage = 1000

// brief leaves out the middle of a message that has become long by what it
// quotes from the request.
func brief(message string) string {
	if len(message) <= longMessage {
		return message
	}
	const half = longMessage / 2
	return strings.ToValidUTF8(message[:half], "") + " … " + strings.ToValidUTF8(message[len(message)-half:], "")
}
