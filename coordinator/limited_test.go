package coordinator_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick+"limits: {max_connections: 10}\n", static("web", "192.0.2.1:80"))
	s.ready()
	for address, hello := range map[string]string{
		s.GRPCAddress(): http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", // settings
		s.HTTPAddress(): "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		// dial connects, and tells whether that is answered.
		dial := func() (c net.Conn, served bool) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(time.Now().Add(patience)) // a TCP connection has deadlines
			_, _ = io.WriteString(c, hello)             // where it is closed, so is what is read
			_, err = c.Read(make([]byte, 1))
			return c, err == nil
		}
		var open []net.Conn
		s.eventually("as many connections as are allowed", func() bool { // others may be closing yet
			if c, served := dial(); served {
				open = append(open, c)
			}
			return len(open) == 10
		})
		if _, served := dial(); served {
			t.Errorf("%s takes an eleventh connection", address)
		}
		open[0].Close()
		s.eventually("room for another", func() bool {
			c, served := dial()
			c.Close()
			return served
		})
		for _, c := range open {
			c.Close()
		}
	}
	s.eventually("those refused to be counted", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, "hdsd_connections_refused_total ") && !strings.Contains(text, "hdsd_connections_refused_total 0")
	})
}

func TestEndlessBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "192.0.2.1:80"))
	s.ready()
	c, err := net.Dial("tcp", s.HTTPAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /v3/discovery:client_status HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
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
