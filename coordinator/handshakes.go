package coordinator

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"

	"hdsd/peer/limit"
)

// These are the reasons of failed handshakes, as values of a label.
const (
	failsPlaintext   = "plaintext"   // plaintext at a port with TLS
	failsTLS         = "tls"         // TLS at a port without TLS
	failsCertificate = "certificate" // hdsd does not accept the certificate of the client
	failsRefused     = "refused"     // the client does not accept the certificate of hdsd
	failsClosed      = "closed"      // the client sent nothing, like probes of load balancers
	failsOther       = "other"
)

// handshakes wraps the credentials of a gRPC server, and counts and logs failed handshakes.
type handshakes struct {
	credentials.TransportCredentials
	isTLS  bool
	log    zerolog.Logger
	failed *prometheus.CounterVec
	lines  *limit.Pace
}

func newHandshakes(wrapped credentials.TransportCredentials, isTLS bool, log zerolog.Logger, registerer prometheus.Registerer) *handshakes {
	h := &handshakes{TransportCredentials: wrapped, isTLS: isTLS, log: log, lines: &limit.Pace{}, failed: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_grpc_handshakes_failed_total", Help: "Connections to the gRPC address that could not speak with hdsd, by why.",
	}, []string{"reason"})}
	for _, reason := range []string{failsPlaintext, failsTLS, failsCertificate, failsRefused, failsClosed, failsOther} {
		h.failed.WithLabelValues(reason) // the series exists from the start
	}
	return h
}

// ServerHandshake implements credentials.TransportCredentials.
func (h *handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		kind, text := explainHandshake(err)
		h.report(raw.RemoteAddr(), kind, text)
	} else if !h.isTLS {
		secured = &plaintextConn{Conn: secured, handshakes: h}
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials {
	clone := *h
	clone.TransportCredentials = h.TransportCredentials.Clone()
	return &clone
}

// report counts and logs a failed handshake.
func (h *handshakes) report(client net.Addr, kind, text string) {
	h.failed.WithLabelValues(kind).Inc()
	if kind == failsClosed {
		return
	}
	h.lines.Warn(time.Now(), &h.log, "grpc_handshake_failed").Str("address", client.String()).Str("reason", text).
		Msg("a client cannot speak with hdsd on the gRPC address: " + text)
}

// explainHandshake returns the reason of a failed TLS handshake as a label, and as text for people.
func explainHandshake(err error) (kind, text string) {
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if greeting := string(plain.RecordHeader[:]); strings.HasPrefix(greeting, "PRI *") {
			return failsPlaintext, "plaintext gRPC at a port with TLS: give the client TLS"
		}
		return failsPlaintext, "no TLS at a port with TLS: give the client TLS, or see whether it is the right port"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || strings.Contains(err.Error(), "certificate has") {
		return failsCertificate, "the client's certificate is not accepted: " + err.Error()
	}
	switch text := err.Error(); {
	case errors.Is(err, io.EOF):
		return failsClosed, "it closed the connection"
	case strings.Contains(text, "client didn't provide a certificate"):
		return failsCertificate, "the client has no certificate, and grpc.tls asks for one"
	case strings.Contains(text, "remote error") && strings.Contains(text, "certificate"):
		return failsRefused, "the client does not accept hdsd's certificate (" + text + "): give it the authority that issued that, and a name that is in it"
	default:
		return failsOther, text
	}
}

// plaintextConn is a connection without TLS. It reports a client that begins with TLS.
type plaintextConn struct {
	net.Conn
	handshakes *handshakes
	seen       atomic.Bool // the first byte
}

// tlsRecord is the first byte of a TLS handshake.
const tlsRecord = 0x16

// Read implements net.Conn.
func (c *plaintextConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.seen.CompareAndSwap(false, true) && p[0] == tlsRecord {
		c.handshakes.report(c.RemoteAddr(), failsTLS, "TLS at a port without TLS: let the client speak plaintext, or give hdsd grpc.tls")
	}
	return n, err
}
