package coordinator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// endless is a body that counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// TestRefusalReadsLimitedBody covers that hdsd reads no body that the client does not send.
func TestRefusalReadsLimitedBody(t *testing.T) {
	for name, c := range map[string]struct {
		code      int
		announced int64
		expect    string
		least     int
		most      int
	}{
		"a refusal":                      {403, -1, "", maxDrain, maxDrain + 64<<10},
		"an answer":                      {200, -1, "", 0, 0},
		"more than is read is announced": {413, maxDrain + 1, "", 0, 0},
		"the client awaits the answer":   {403, 100, "100-continue", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{}
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(body))
			if r.ContentLength = c.announced; c.expect != "" {
				r.Header.Set("Expect", c.expect)
			}
			w := httptest.NewRecorder()
			drainRefused(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "close")
				w.WriteHeader(c.code)
			})).ServeHTTP(w, r)
			if body.read < c.least || body.read > c.most || w.Code != c.code || w.Header().Get("Connection") != "close" {
				t.Errorf("%d bytes are read, %d, %v", body.read, w.Code, w.Header())
			}
		})
	}
}
