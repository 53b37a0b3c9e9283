package coordinator_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick+"limits: {max_connections: 10}\n", static("web", "192.0.2.1:80"))
	s.ready()
	for _, address := range []string{s.GRPCAddress(), s.HTTPAddress()} {
		var open []net.Conn
		closed := func(c net.Conn, within time.Duration) bool {
			_ = c.SetReadDeadline(time.Now().Add(within)) // a TCP connection has deadlines
			for {
				if _, err := c.Read(make([]byte, 1024)); err != nil {
					timeout, ok := err.(net.Error) //nolint:errorlint // as it came
					return !ok || !timeout.Timeout()
				}
			}
		}
		dial := func() net.Conn {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		s.eventually("as many connections as are allowed", func() bool { // others may be closing yet
			open = slices.DeleteFunc(append(open, dial()), func(c net.Conn) bool { return closed(c, 10*time.Millisecond) })
			return len(open) == 10
		})
		if !closed(dial(), patience) {
			t.Errorf("%s takes an eleventh connection", address)
		}
		open[0].Close()
		s.eventually("room for another", func() bool { c := dial(); defer c.Close(); return !closed(c, 50*time.Millisecond) })
		for _, c := range open {
			c.Close()
		}
	}
	s.eventually("those refused to be counted", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "hdsd_connections_refused_total ") && !strings.Contains(text, "hdsd_connections_refused_total 0")
	})
}

func TestABodyThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "192.0.2.1:80"))
	s.ready()
	c, err := net.Dial("tcp", s.HTTPAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /v3/discovery:client_status HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(2 * patience)) // a TCP connection has deadlines
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("it is waited for: %v", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the answer is %s", answer.Status)
	}
}
