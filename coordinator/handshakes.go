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

// Why handshakes fail, as labels.
const (
	failsPlaintext   = "plaintext"   // no TLS at a port with TLS
	failsTLS         = "tls"         // TLS at a port without
	failsCertificate = "certificate" // of the client
	failsRefused     = "refused"     // the client does not accept hdsd's certificate
	failsClosed      = "closed"      // the client said nothing, as a probe of a load balancer does
	failsOther       = "other"
)

// handshakes adds to the credentials of a gRPC server that it says which handshakes fail.
type handshakes struct {
	credentials.TransportCredentials
	isTLS  bool
	log    zerolog.Logger
	failed *prometheus.CounterVec
	lines  *limit.Pace
}

func newHandshakes(of credentials.TransportCredentials, isTLS bool, log zerolog.Logger, to prometheus.Registerer) *handshakes {
	h := &handshakes{TransportCredentials: of, isTLS: isTLS, log: log, lines: &limit.Pace{}, failed: promauto.With(to).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_grpc_handshakes_failed_total", Help: "Connections to the gRPC address that could not speak with hdsd, by why.",
	}, []string{"reason"})}
	for _, reason := range []string{failsPlaintext, failsTLS, failsCertificate, failsRefused, failsClosed, failsOther} {
		h.failed.WithLabelValues(reason) // so that it exists from the start
	}
	return h
}

// ServerHandshake implements credentials.TransportCredentials.
func (h *handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		kind, text := explainHandshake(err)
		h.tell(raw.RemoteAddr(), kind, text)
	} else if !h.isTLS {
		secured = &greeted{Conn: secured, of: h}
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials {
	clone := *h
	clone.TransportCredentials = h.TransportCredentials.Clone()
	return &clone
}

func (h *handshakes) tell(from net.Addr, kind, text string) {
	h.failed.WithLabelValues(kind).Inc()
	if kind == failsClosed {
		return
	}
	h.lines.Warn(time.Now(), &h.log, "grpc_handshake_failed").Str("address", from.String()).Str("reason", text).
		Msg("a client cannot speak with hdsd on the gRPC address: " + text)
}

// explainHandshake says in plain words why a TLS handshake failed.
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
	switch said := err.Error(); {
	case errors.Is(err, io.EOF):
		return failsClosed, "it closed the connection"
	case strings.Contains(said, "client didn't provide a certificate"):
		return failsCertificate, "the client has no certificate, and grpc.tls asks for one"
	case strings.Contains(said, "remote error") && strings.Contains(said, "certificate"):
		return failsRefused, "the client does not accept hdsd's certificate (" + said + "): give it the authority that issued that, and a name that is in it"
	default:
		return failsOther, said
	}
}

// greeted is a connection without TLS, which looks at the first byte that comes.
type greeted struct {
	net.Conn
	of   *handshakes
	seen atomic.Bool
}

// tlsRecord is the first byte of a TLS handshake.
const tlsRecord = 0x16

// Read implements net.Conn.
func (g *greeted) Read(into []byte) (int, error) {
	n, err := g.Conn.Read(into)
	if n > 0 && g.seen.CompareAndSwap(false, true) && into[0] == tlsRecord {
		g.of.tell(g.RemoteAddr(), failsTLS, "TLS at a port without TLS: let the client speak plaintext, or give hdsd grpc.tls")
	}
	return n, err
}
