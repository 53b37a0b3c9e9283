package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/peer"
)

// Forward says which identity of a client the control plane gets.
type Forward uint8

// The ways to forward.
const (
	Nothing           Forward = iota
	ClientCertificate         // the verified certificate
	Authorization             // the authorization header of the client
)

// forwarded returns the metadata with the identity of a client for the control plane.
func (s *Server) forwarded(client context.Context) metadata.MD {
	switch s.options.Forward {
	case ClientCertificate:
		if text := certificate(peer.FromContext(client)); text != "" {
			return metadata.Pairs("x-forwarded-client-cert", text)
		}
	case Authorization:
		if values := metadata.ValueFromIncomingContext(client, "authorization"); strings.TrimSpace(strings.Join(values, "")) != "" {
			return metadata.MD{"authorization": values}
		}
	case Nothing:
	}
	return nil
}

// checkForwarded refuses a client without the identity to forward: the control plane would take hdsd for
// the client.
func (s *Server) checkForwarded(client context.Context) error {
	if s.options.Forward == Nothing || len(s.forwarded(client)) > 0 {
		return nil
	}
	if s.options.Forward == ClientCertificate {
		return status.Error(codes.Unauthenticated,
			"relay.forward is CLIENT_CERTIFICATE, and this client has shown no certificate: give it one that grpc.tls.client_ca_file has signed")
	}
	return status.Error(codes.Unauthenticated,
		"relay.forward is AUTHORIZATION, and this client has shown no authorization header: give it a token for the control plane, as initial_metadata or call_credentials of its grpc_services")
}

// identity returns a text for the identity that forwarded returns. A renewed certificate has the same identity.
func (s *Server) identity(client context.Context) string {
	if s.options.Forward == ClientCertificate {
		return peer.FromContext(client).Fingerprint()
	}
	return strings.Join(s.forwarded(client)["authorization"], "\n")
}

// certificate writes a verified certificate as Envoy writes x-forwarded-client-cert.
func certificate(c peer.Caller) string {
	if c.Leaf == nil {
		return ""
	}
	hash := sha256.Sum256(c.Leaf.Raw)
	parts := []string{
		"Hash=" + hex.EncodeToString(hash[:]),
		`Cert="` + url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw}))) + `"`,
		`Subject="` + quoted(c.Leaf.Subject.String()) + `"`,
	}
	for _, uri := range c.Leaf.URIs {
		parts = append(parts, "URI="+plain(uri.String()))
	}
	for _, name := range c.Leaf.DNSNames {
		parts = append(parts, "DNS="+plain(name))
	}
	return strings.Join(parts, ";")
}

// quoted escapes a value for quotation marks, and replaces characters that a header cannot have.
func quoted(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(printable(text), `\`, `\\`), `"`, `\"`)
}

// plain quotes a value if it has a separator.
func plain(text string) string {
	if strings.ContainsAny(text, `,;="`) {
		return `"` + quoted(text) + `"`
	}
	return printable(text)
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
