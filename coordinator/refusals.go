package coordinator

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxDrain limits the bytes that hdsd reads of a refused request. It is the limit of net/http over HTTP/1.1.
const maxDrain = 256 << 10

// drainRefused reads the rest of a request before hdsd refuses it: up to maxDrain bytes, for at most
// headerTimeout. Some clients, such as curl, lose a response that comes while they send: net/http resets
// the stream then, or closes the connection over HTTP/1.1.
func drainRefused(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&drainingWriter{ResponseWriter: w, request: r, deadline: time.Now().Add(headerTimeout), closing: w.Header().Get("Connection") == "close"}, r)
	})
}

// drainingWriter writes the response to a request with a body.
type drainingWriter struct {
	http.ResponseWriter
	request  *http.Request
	deadline time.Time
	closing  bool // the connection ends after this response in any case
	begun    bool // the header is written
}

// WriteHeader implements http.ResponseWriter.
func (d *drainingWriter) WriteHeader(code int) {
	if code >= http.StatusBadRequest && !d.begun {
		d.drain()
	}
	d.begun = true
	d.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (d *drainingWriter) Write(p []byte) (int, error) {
	d.begun = true
	return d.ResponseWriter.Write(p)
}

// Unwrap implements the interface of http.ResponseController.
func (d *drainingWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// drain reads the rest of the request, unless the client waits for the response before it sends the body, or
// has announced more than maxDrain bytes.
func (d *drainingWriter) drain() {
	r := d.request
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") || r.ContentLength > maxDrain {
		return
	}
	control := http.NewResponseController(d.ResponseWriter)
	_ = control.SetReadDeadline(d.deadline) // only writers outside of a network lack deadlines
	n, err := io.CopyN(io.Discard, r.Body, maxDrain+1)
	if !errors.Is(err, io.EOF) || n > maxDrain {
		return
	}
	_ = control.SetReadDeadline(time.Time{}) // the deadline would also end the context of the request
	if !d.closing {
		d.Header().Del("Connection") // the request is read
	}
}

// limitTime limits the time in which clients send a body and read the response. Handlers that take longer
// set their own deadlines.
func limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control, now := http.NewResponseController(w), time.Now()
		// Only writers outside of a network lack deadlines.
		_ = control.SetWriteDeadline(now.Add(answerTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(headerTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
