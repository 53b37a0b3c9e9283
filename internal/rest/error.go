package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/internal/printable"
	"hdsd/internal/reason"
)

// refusal is an error whose HTTP status does not follow from its code.
type refusal struct {
	said       *status.Status
	httpStatus int
}

// Error implements error.
func (r *refusal) Error() string { return r.said.Message() }

// GRPCStatus returns the status that grpc sends.
func (r *refusal) GRPCStatus() *status.Status { return r.said }

// Errorf makes an error with an HTTP status of its own.
func Errorf(httpStatus int, code codes.Code, format string, values ...any) error {
	return &refusal{status.Newf(code, format, values...), httpStatus}
}

// TooLarge is the error of a request with too much content.
func TooLarge(format string, values ...any) error {
	return Errorf(http.StatusRequestEntityTooLarge, codes.ResourceExhausted, format, values...)
}

// MethodError names the methods that a path is served by, in the error and in a header of
// the answer.
func MethodError(w http.ResponseWriter, r *http.Request, served ...string) error {
	allowed := strings.Join(served, ", ")
	w.Header().Set("Allow", allowed)
	return Errorf(http.StatusMethodNotAllowed, codes.Unimplemented, "%s is not served at %s: use %s", r.Method, r.URL.Path, allowed)
}

// retryAfter is when a client may try again that was refused because of a limit, in
// seconds.
const retryAfter = "5"

// WriteError answers with an error. If a limit was reached, it says when to try again.
func WriteError(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	code := statusOf(err)
	if code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(code)
	_, _ = w.Write(append(ErrorText(err), '\n')) // on an error the client has gone
}

// ErrorText returns an error in JSON, on one line. Among its details is its reason.
func ErrorText(err error) []byte {
	said := reason.Complete(status.Convert(err))
	shown := struct {
		Code    codes.Code        `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}{Code: said.Code(), Message: Brief(said.Message())}
	for _, detail := range said.Proto().GetDetails() {
		if text, err := protojson.Marshal(detail); err == nil { // else of a kind that hdsd does not know
			shown.Details = append(shown.Details, text)
		}
	}
	text, _ := json.Marshal(shown) // nothing in it can fail
	return printable.JSON(text)
}

func statusOf(err error) int {
	if own := (*refusal)(nil); errors.As(err, &own) {
		return own.httpStatus
	}
	return runtime.HTTPStatusFromCode(status.Code(err))
}

// longMessage is how many bytes a message may have before Brief cuts it.
const longMessage = 1000

// Brief leaves out the middle of a long message, which may quote the request.
func Brief(message string) string {
	if len(message) <= longMessage {
		return message
	}
	const half = longMessage / 2
	return strings.ToValidUTF8(message[:half], "") + " … " + strings.ToValidUTF8(message[len(message)-half:], "")
}
