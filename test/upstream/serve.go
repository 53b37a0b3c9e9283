package upstream

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serve handles one connection until it ends.
func (s *Server) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // nothing to do about it
	if s.now(c).Kind == KindRefuse {
		reset(c)
		return
	}
	switch s.protocol {
	case TCP:
		s.serveTCP(c)
	case HTTPS:
		s.serveHTTP(c, tls.Server(c, s.tls))
	default:
		s.serveHTTP(c, c)
	}
}

// serveHTTP answers requests. raw is the connection below TLS.
func (s *Server) serveHTTP(raw, c net.Conn) {
	reader := bufio.NewReaderSize(c, 4096)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		if err != nil {
			return
		}
		s.counts.probed(Request{
			Method: request.Method, Path: request.RequestURI, Host: request.Host,
			Header: request.Header, Body: string(body),
		})
		if !s.answerHTTP(raw, c, request.Method, s.now(raw)) {
			return
		}
	}
}

// answerHTTP answers, and reports whether the connection stays usable.
func (s *Server) answerHTTP(raw, c net.Conn, method string, b Behaviour) bool {
	switch b.Kind {
	case KindHang:
		linger(c)
		return false
	case KindReset, KindRefuse:
		reset(raw)
		return false
	case KindRaw:
		c.Write(b.Raw) //nolint:errcheck // the connection ends anyway
		return false
	}
	if !s.pause(b.Delay) {
		return false
	}
	if _, err := io.WriteString(c, response(method, b)); err != nil {
		return false
	}
	return !b.Close
}

func response(method string, b Behaviour) string {
	var text strings.Builder
	text.WriteString("HTTP/1.1 " + strconv.Itoa(b.Status) + " " + http.StatusText(b.Status) + "\r\n")
	b.Header.Write(&text) //nolint:errcheck // a Builder cannot fail
	if b.Header.Get("Transfer-Encoding") == "" {
		text.WriteString("content-length: " + strconv.Itoa(len(b.Body)) + "\r\n")
	}
	text.WriteString("\r\n")
	if method != http.MethodHead {
		text.WriteString(b.Body)
	}
	return text.String()
}

// serveTCP answers everything that it reads.
func (s *Server) serveTCP(c net.Conn) {
	s.counts.probed(Request{})
	if s.now(c).Kind == KindReset {
		reset(c)
		return
	}
	buffer := make([]byte, 4096)
	for first := true; ; first = false {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if !first {
			s.counts.probed(Request{})
		}
		b := s.now(c)
		answer := b.Raw
		switch b.Kind {
		case KindHang:
			linger(c)
			return
		case KindReset, KindRefuse:
			reset(c)
			return
		case KindAnswer:
			if answer == nil {
				answer = buffer[:n]
			}
		}
		if !s.pause(b.Delay) {
			return
		}
		if _, err := c.Write(answer); err != nil || b.Close || b.Kind == KindRaw {
			return
		}
	}
}

// linger keeps the connection until the peer closes it.
func linger(c net.Conn) {
	io.Copy(io.Discard, c) //nolint:errcheck // this waits for the end
}

// reset makes closing the connection send a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // if it fails, the connection closes the ordinary way
	}
}

// pause waits, and reports whether the server still runs.
func (s *Server) pause(delay time.Duration) bool {
	if delay <= 0 {
		return s.ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
