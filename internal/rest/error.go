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
	st         *status.Status
	httpStatus int
}

// Error implements error.
func (r *refusal) Error() string { return r.st.Message() }

// GRPCStatus returns the status that grpc sends.
func (r *refusal) GRPCStatus() *status.Status { return r.st }

// Errorf makes an error with an HTTP status of its own.
func Errorf(httpStatus int, code codes.Code, format string, values ...any) error {
	return &refusal{status.Newf(code, format, values...), httpStatus}
}

// TooLarge is the error of a request with too much content.
func TooLarge(format string, values ...any) error {
	return Errorf(http.StatusRequestEntityTooLarge, codes.ResourceExhausted, format, values...)
}

// MethodError names the methods of a path, in the error and in a header of the answer.
func MethodError(w http.ResponseWriter, r *http.Request, served ...string) error {
	allowed := strings.Join(served, ", ")
	w.Header().Set("Allow", allowed)
	return Errorf(http.StatusMethodNotAllowed, codes.Unimplemented, "%s is not served at %s: use %s", r.Method, r.URL.Path, allowed)
}

// retryAfter is the time after which a client may retry a request refused by a limit, in
// seconds.
const retryAfter = "5"

// WriteError answers with an error. If a limit was reached, it adds the time of a retry.
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
	st := reason.Complete(status.Convert(err))
	shown := struct {
		Code    codes.Code        `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}{Code: st.Code(), Message: Brief(st.Message())}
	for _, detail := range st.Proto().GetDetails() {
		if text, err := protojson.Marshal(detail); err == nil { // else of an unknown kind
			shown.Details = append(shown.Details, text)
		}
	}
	text, _ := json.Marshal(shown) // nothing in it can fail
	return printable.JSON(text)
}

func statusOf(err error) int {
	if refusedErr := (*refusal)(nil); errors.As(err, &refusedErr) {
		return refusedErr.httpStatus
	}
	return runtime.HTTPStatusFromCode(status.Code(err))
}

// longMessage is the size above which Brief cuts a message.
const longMessage = 1000

// Brief omits the middle of a long message, which may quote the request.
func Brief(message string) string {
	if len(message) <= longMessage {
		return message
	}
	const half = longMessage / 2
	return strings.ToValidUTF8(message[:half], "") + " … " + strings.ToValidUTF8(message[len(message)-half:], "")
}
