package hds

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// caller is what hdsd knows of the other end without asking it.
type caller struct {
	host  string // its address without the port
	names string // fingerprint of the names in its certificate; empty without one
}

// is reports whether two calls are from one caller: by certificate or, without one,
// by address.
func (c caller) is(other caller) bool {
	return c.names == other.names && (c.names != "" || c.host == other.host)
}

func callerOf(ctx context.Context) caller {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}
	}
	c := caller{host: hostOf(p.Addr.String())}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		c.names = namesIn(&info.State)
	}
	return c
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// namesIn gives a fingerprint of the names in the verified client certificate. It
// stays the same when the certificate is renewed.
func namesIn(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return fingerprint(state.VerifiedChains[0][0])
}

func fingerprint(c *x509.Certificate) string {
	alternative := len(c.DNSNames) + len(c.EmailAddresses) + len(c.IPAddresses) + len(c.URIs)
	h := sha256.New()
	fmt.Fprintf(h, "%x %q %q %q %q", c.RawSubject, c.DNSNames, c.EmailAddresses, c.IPAddresses, c.URIs)
	if len(c.Subject.Names) == 0 && alternative == 0 { // it is for whoever has the key
		fmt.Fprintf(h, " %x", c.RawSubjectPublicKeyInfo)
	}
	return string(h.Sum(nil))
}
