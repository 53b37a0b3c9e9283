package coordinator

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/test/bufconn"

	"hdsd/peer/limit"
)

// TestInsecureListenerWarnsDaily covers a listener that stays without TLS.
func TestInsecureListenerWarnsDaily(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	var said bytes.Buffer
	w := &watchedListener{name: "grpc", Listener: limit.Listen(on, limit.ListenerOptions{}), log: zerolog.New(&said)}
	began := time.Now()
	w.sweep(began)
	w.warnInsecure(began)
	for hours, want := range []int{0: 1, 23: 1, 24: 2, 25: 2, 47: 2, 48: 3} {
		if want == 0 {
			continue
		}
		w.sweep(began.Add(time.Duration(hours) * time.Hour))
		if got := strings.Count(said.String(), "listener_insecure"); got != want {
			t.Errorf("after %d hours it was said %d times, want %d", hours, got, want)
		}
	}
}

// TestOldHTTPConnectionsEnd between two requests: the client is told before, in virtual
// time.
func TestOldHTTPConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := bufconn.Listen(1 << 10)
		server := &http.Server{ConnContext: inContext, Handler: closeOld(http.NotFoundHandler()), ReadHeaderTimeout: headerTimeout}
		served := make(chan error, 1)
		go func() { served <- server.Serve(limit.Listen(under, limit.ListenerOptions{MaxAge: 1000 * time.Second})) }()
		client, err := under.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reading := bufio.NewReader(client)
		for _, step := range []struct {
			wait time.Duration
			ends bool
		}{{0, false}, {719 * time.Second, false}, {162 * time.Second, true}} {
			time.Sleep(step.wait)
			if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(reading, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body) // up to the next answer
			answer.Body.Close()
			if answer.Close != step.ends {
				t.Errorf("after %v more, the answer ends the connection: %t", step.wait, answer.Close)
			}
		}
		client.Close()
		server.Close()
		<-served
	})
}
