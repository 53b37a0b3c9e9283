package stall

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// SlowBody posts a body to a path, a byte a second and without end. It gives
// how long the connection lasts, and the answer.
func SlowBody(t *testing.T, handler http.Handler, path string) (borne time.Duration, answer string) {
	t.Helper()
	return connect(t, handler, 64<<10, func(c net.Conn) string {
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: hdsd\r\nContent-Length: 100000\r\n\r\n", path)
			for err == nil {
				time.Sleep(time.Second)
				_, err = c.Write([]byte(" "))
			}
		})
		answer, _ := io.ReadAll(c) // the caller looks at what came
		return string(answer)
	})
}

// UnreadAnswer posts a body to a path and reads nothing of the answer. It gives
// how long the connection lasts.
func UnreadAnswer(t *testing.T, handler http.Handler, path, body string) (borne time.Duration) {
	t.Helper()
	const less = 64 // than any answer has
	borne, _ = connect(t, handler, less, func(c net.Conn) string {
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: hdsd\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
			t.Error(err)
		}
		return ""
	})
	return borne
}

// connect has a client talk on a connection that takes so many bytes unread, and
// waits until the server has closed it.
func connect(t *testing.T, handler http.Handler, unread int, talk func(net.Conn) string) (time.Duration, string) {
	t.Helper()
	listener, closed := bufconn.Listen(unread), make(chan struct{})
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(closed)
			}
		},
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer server.Close()
	serving.Go(func() { _ = server.Serve(listener) })
	c, err := listener.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	answer := talk(c)
	select {
	case <-closed:
	case <-time.After(time.Hour):
		t.Error("the connection is kept")
	}
	return time.Since(began), answer
}
