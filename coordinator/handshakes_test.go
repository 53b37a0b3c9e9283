package coordinator

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"hdsd/peer/limit"
	pki "hdsd/test/authority"
)

// loggedLines are what was logged.
type loggedLines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *loggedLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *loggedLines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// port is a gRPC server that says which handshakes fail.
type port struct {
	*handshakes
	address string
	lines   *loggedLines
}

func newPort(t *testing.T, of credentials.TransportCredentials, isTLS bool) *port {
	p := &port{lines: &loggedLines{}}
	p.handshakes = newHandshakes(of, isTLS, zerolog.New(p.lines), prometheus.NewRegistry())
	server := grpc.NewServer(grpc.Creds(p.handshakes))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return p
}

// call calls the server once.
func (p *port) call(t *testing.T, as credentials.TransportCredentials) error {
	t.Helper()
	connection, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(as))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// await waits until a reason is counted, and returns what was logged with it.
func (p *port) await(t *testing.T, kind, text string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for testutil.ToFloat64(p.failed.WithLabelValues(kind)) == 0 || text != "" && !p.lines.has(text) {
		select {
		case <-deadline:
			t.Fatalf("%s, %q: the log is %s", kind, text, p.lines.text.String())
		case <-time.After(time.Millisecond):
		}
	}
}

// TestFailedHandshakes covers the address and the reason in the log, and hdsd_grpc_handshakes_failed_total. A
// probe that sends nothing is counted only.
func TestFailedHandshakes(t *testing.T) {
	ca, other := pki.New(t, "one"), pki.New(t, "other")
	own := ca.Issue(t, "hdsd")
	server := credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own.Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
	})
	client := func(trusts *pki.Authority, certificates ...tls.Certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{
			RootCAs: trusts.Pool(), ServerName: "hdsd", MinVersion: tls.VersionTLS12,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // whoever issued it
				if len(certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certificates[0], nil
			},
		})
	}
	for name, c := range map[string]struct {
		as         credentials.TransportCredentials
		kind, text string
	}{
		"plaintext":         {insecure.NewCredentials(), failsPlaintext, "plaintext gRPC at a port with TLS"},
		"no certificate":    {client(ca), failsCertificate, "the client has no certificate"},
		"other certificate": {client(ca, other.Issue(t, "c1").Certificate), failsCertificate, "the client's certificate is not accepted"},
		"does not trust":    {client(other, ca.Issue(t, "c1").Certificate), failsRefused, "the client does not accept hdsd's certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPort(t, server, true)
			if err := p.call(t, c.as); err == nil {
				t.Fatal("it can speak")
			}
			p.await(t, c.kind, c.text)
			if !p.lines.has(`"event":"grpc_handshake_failed","address":"127.0.0.1:`) {
				t.Errorf("the log is %s", p.lines.text.String())
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		p := newPort(t, server, true)
		connection, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
		p.await(t, failsClosed, "")
		if p.lines.has("grpc") {
			t.Errorf("the log is %s", p.lines.text.String())
		}
	})
	t.Run("right", func(t *testing.T) {
		p := newPort(t, server, true)
		if err := p.call(t, client(ca, ca.Issue(t, "c1").Certificate)); err != nil || p.lines.has("grpc") {
			t.Errorf("%v; the log is %s", err, p.lines.text.String())
		}
	})
}

// TestTLSAtPlaintextPort covers the log. Plaintext connections work.
func TestTLSAtPlaintextPort(t *testing.T) {
	p := newPort(t, insecure.NewCredentials(), false)
	if err := p.call(t, insecure.NewCredentials()); err != nil || p.lines.has("grpc") {
		t.Fatalf("%v; the log is %s", err, p.lines.text.String())
	}
	if err := p.call(t, credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})); err == nil { //nolint:gosec // there is nothing to verify
		t.Fatal("it can speak")
	}
	p.await(t, failsTLS, "TLS at a port without TLS")
}

// TestManyFailedHandshakes covers one line a second.
func TestManyFailedHandshakes(t *testing.T) {
	all := &loggedLines{}
	h := newHandshakes(insecure.NewCredentials(), true, zerolog.New(all), prometheus.NewRegistry())
	h.lines = &limit.Pace{}
	for range 1000 {
		h.report(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, failsPlaintext, "x")
	}
	if n := strings.Count(all.text.String(), "\n"); n > 10 || testutil.ToFloat64(h.failed.WithLabelValues(failsPlaintext)) != 1000 {
		t.Errorf("%d lines", n)
	}
}
