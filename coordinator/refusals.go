package coordinator

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// refusedBody is how much of a request is read before it is refused, as net/http itself
// does over HTTP/1.1.
const refusedBody = 256 << 10

// patiently reads the rest of a request before it is refused: up to refusedBody, and for
// headerTimeout at most. Some clients, such as curl, lose an answer that comes
// while they still send: over HTTP/2 because net/http resets the stream then, over
// HTTP/1.1 because it closes the connection.
func patiently(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&hearing{ResponseWriter: w, request: r, until: time.Now().Add(headerTimeout), ends: w.Header().Get("Connection") == "close"}, r)
	})
}

// hearing is the answer to a request with a body.
type hearing struct {
	http.ResponseWriter
	request *http.Request
	until   time.Time
	ends    bool // the connection ends after this answer, whatever becomes of the request
	begun   bool
}

// WriteHeader implements http.ResponseWriter.
func (h *hearing) WriteHeader(code int) {
	if code >= http.StatusBadRequest && !h.begun {
		h.hear()
	}
	h.begun = true
	h.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (h *hearing) Write(p []byte) (int, error) {
	h.begun = true
	return h.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (h *hearing) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// hear reads the rest of the request, unless the client awaits the answer before it
// sends any, or announced more than is read.
func (h *hearing) hear() {
	r := h.request
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") || r.ContentLength > refusedBody {
		return
	}
	control := http.NewResponseController(h.ResponseWriter)
	_ = control.SetReadDeadline(h.until) // only a writer that is not on a network lacks deadlines
	n, err := io.CopyN(io.Discard, r.Body, refusedBody+1)
	if !errors.Is(err, io.EOF) || n > refusedBody {
		return
	}
	_ = control.SetReadDeadline(time.Time{}) // it would also end the request's context
	if !h.ends {
		h.Header().Del("Connection") // all was read
	}
}

// timed bounds how long clients may take to send a body and to read the response.
// Handlers that take longer set their own deadlines.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control, now := http.NewResponseController(w), time.Now()
		// Only a writer that is not on a network lacks deadlines.
		_ = control.SetWriteDeadline(now.Add(answerTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(headerTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
