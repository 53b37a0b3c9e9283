package peer

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
)

// Caller is the other end of a call.
type Caller struct {
	// Identity is the verified name: the first URI, else DNS name, else e-mail or IP address of
	// the certificate, else its subject, else the hash of its key. It is empty if nothing is
	// verified.
	Identity string

	// Names are all alternative names of the verified certificate: URIs, DNS names,
	// e-mail and IP addresses, in this order.
	Names []string

	// Address is the connection's other end, ip:port.
	Address string

	// Leaf is the verified certificate; nil without one.
	Leaf *x509.Certificate
}

// Key returns the key to count the caller under: its identity or, without one, its connection.
func (c Caller) Key() string {
	if c.Identity != "" {
		return c.Identity
	}
	return "connection " + c.Address
}

// Host returns the address without its port.
func (c Caller) Host() string {
	if host, _, err := net.SplitHostPort(c.Address); err == nil {
		return host
	}
	return c.Address
}

// Fingerprint hashes the verified facts of the caller: its identity, and every name in its
// certificate. A renewed certificate has the same. It is empty if nothing is verified.
func (c Caller) Fingerprint() string {
	if c.Identity == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", c.Identity, c.Names)
	if c.Leaf != nil {
		fmt.Fprintf(h, " %x", c.Leaf.RawSubject)
	}
	return string(h.Sum(nil))
}

// Is reports whether two calls are from one caller: by the verified facts or, without any, by
// host. A caller without identity may use several connections.
func (c Caller) Is(other Caller) bool {
	names := c.Fingerprint()
	return names == other.Fingerprint() && (names != "" || c.Host() == other.Host())
}

type inContext struct{}

// With puts a caller into a context.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, inContext{}, c)
}

// FromContext returns the caller that With put into the context, else that of the gRPC
// connection, else the zero Caller.
func FromContext(ctx context.Context) Caller {
	if c, ok := ctx.Value(inContext{}).(Caller); ok {
		return c
	}
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return Caller{}
	}
	var c Caller
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		c = verified(&info.State)
	}
	if p.Addr != nil {
		c.Address = p.Addr.String()
	}
	return c
}

// OfRequest returns the caller of an HTTP request: the one that With put into its context, else
// that of its connection.
func OfRequest(r *http.Request) Caller {
	if c, ok := r.Context().Value(inContext{}).(Caller); ok {
		return c
	}
	c := verified(r.TLS)
	c.Address = r.RemoteAddr
	return c
}

// verified returns the caller of a verified client certificate.
func verified(state *tls.ConnectionState) Caller {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return Caller{}
	}
	leaf := state.VerifiedChains[0][0]
	names := namesIn(leaf)
	return Caller{Identity: identity(leaf, names), Names: names, Leaf: leaf}
}

// Named returns the identity in a certificate.
func Named(leaf *x509.Certificate) string { return identity(leaf, namesIn(leaf)) }

func namesIn(leaf *x509.Certificate) []string {
	names := make([]string, 0, len(leaf.URIs)+len(leaf.DNSNames)+len(leaf.EmailAddresses)+len(leaf.IPAddresses))
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	names = append(names, leaf.DNSNames...)
	names = append(names, leaf.EmailAddresses...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func identity(leaf *x509.Certificate, names []string) string {
	if len(names) > 0 {
		return names[0]
	}
	if subject := leaf.Subject.String(); subject != "" {
		return subject
	}
	key := sha256.Sum256(leaf.RawSubjectPublicKeyInfo) // it stands for the key's holder
	return "key sha256:" + hex.EncodeToString(key[:])
}
