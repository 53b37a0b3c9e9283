package check

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

var errCertificate = errors.New("the endpoint's certificate is refused")

// verifier decides whether to accept an endpoint's certificate, as Envoy's default
// validator does.
type verifier struct {
	roots     *x509.CertPool // nil: the chain is not verified
	revoked   *revocation    // nil: not required
	offers    []tls.CurveID
	anyTime   bool
	acceptAny bool // accept everything
	names     []nameMatcher
	digests   [][]byte // of the certificate
	keys      [][]byte // digests of the public key
}

func newVerifier(common *tlsv3.CommonTlsContext) (*verifier, error) {
	context, field := common.GetValidationContext(), "validation_context"
	if combined := common.GetCombinedValidationContext(); combined != nil {
		if err := allowOnly(combined, "default_validation_context"); err != nil {
			return nil, fmt.Errorf("combined_validation_context: %w", err)
		}
		context, field = combined.GetDefaultValidationContext(), "combined_validation_context"
	}
	v := &verifier{}
	if err := v.read(context); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return v, nil
}

func (v *verifier) read(c *tlsv3.CertificateValidationContext) error {
	// max_verify_depth and suppress_client_ca_list are for servers.
	err := allowOnly(c, "trusted_ca", "crl", "verify_certificate_spki", "verify_certificate_hash", "match_typed_subject_alt_names",
		"match_subject_alt_names", "allow_expired_certificate", "trust_chain_verification", "only_verify_leaf_cert_crl",
		"max_verify_depth", "suppress_client_ca_list")
	if err != nil {
		return err
	}
	v.anyTime = c.GetAllowExpiredCertificate()
	v.acceptAny = c.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	if err := v.readAuthorities(c); err != nil {
		return err
	}
	if v.names, err = nameMatchers(c); err != nil {
		return err
	}
	for _, text := range c.GetVerifyCertificateHash() {
		digest, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		if err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("verify_certificate_hash: %q is not a SHA-256 in hexadecimal", text)
		}
		v.digests = append(v.digests, digest)
	}
	for _, text := range c.GetVerifyCertificateSpki() {
		digest, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("verify_certificate_spki: %q is not a SHA-256 in base64", text)
		}
		v.keys = append(v.keys, digest)
	}
	return nil
}

func (v *verifier) readAuthorities(c *tlsv3.CertificateValidationContext) error {
	text, err := material(c.GetTrustedCa())
	if err != nil {
		return fmt.Errorf("trusted_ca: %w", err)
	}
	if c.GetTrustedCa() == nil {
		return nil
	}
	lists, err := material(c.GetCrl())
	if err != nil {
		return fmt.Errorf("crl: %w", err)
	}
	v.roots = x509.NewCertPool()
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("trusted_ca: %w", err)
		}
		v.roots.AddCert(v.timed(authority))
		found = true
	}
	if !found {
		return errors.New("trusted_ca: it holds no certificate in PEM")
	}
	// The authorities may include lists, too.
	if v.revoked, err = newRevocation(append(slices.Clip(text), lists...), c.GetOnlyVerifyLeafCertCrl()); err != nil {
		return fmt.Errorf("crl: %w", err)
	}
	return nil
}

// verify implements tls.Config.VerifyConnection.
func (v *verifier) verify(s tls.ConnectionState) error {
	leaf := s.PeerCertificates[0] // a server always has one
	if !usable(leaf, &s) || !v.offersCurve(leaf, &s) {
		return fmt.Errorf("%w: its key does not go with this handshake", errCertificate)
	}
	if v.acceptAny {
		return nil
	}
	if v.roots != nil {
		if err := v.verifyChain(s.PeerCertificates); err != nil {
			return err
		}
	}
	if len(v.names) > 0 && !matchesName(v.names, leaf) {
		return fmt.Errorf("%w: none of its names matches", errCertificate)
	}
	if len(v.digests)+len(v.keys) == 0 {
		return nil
	}
	digest, key := sha256.Sum256(leaf.Raw), sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	if !containsDigest(v.digests, digest[:]) && !containsDigest(v.keys, key[:]) {
		return fmt.Errorf("%w: it is none of those that are pinned", errCertificate)
	}
	return nil
}

func containsDigest(list [][]byte, digest []byte) bool {
	return slices.ContainsFunc(list, func(d []byte) bool { return string(d) == string(digest) })
}

// usable reports whether the key may be used as in the handshake.
func usable(leaf *x509.Certificate, s *tls.ConnectionState) bool {
	if leaf.KeyUsage == 0 {
		return true
	}
	switch leaf.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return leaf.KeyUsage&x509.KeyUsageDigitalSignature != 0
	}
	name := tls.CipherSuiteName(s.CipherSuite)
	if strings.HasPrefix(name, "TLS_RSA_") {
		return leaf.KeyUsage&x509.KeyUsageKeyEncipherment != 0
	}
	return leaf.KeyUsage&x509.KeyUsageDigitalSignature != 0
}

// offersCurve reports whether the key is on an offered curve, as TLS 1.2 requires.
func (v *verifier) offersCurve(leaf *x509.Certificate, s *tls.ConnectionState) bool {
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	return !ok || s.Version > tls.VersionTLS12 || slices.Contains(v.offers, curves[key.Params().Name])
}

// verifyChain requires a chain to an authority, for servers. Every trusted authority
// ends a chain, even if others signed it.
func (v *verifier) verifyChain(presented []*x509.Certificate) error {
	o := x509.VerifyOptions{Roots: v.roots, Intermediates: x509.NewCertPool()}
	for _, c := range presented[1:] {
		o.Intermediates.AddCert(v.timed(c))
	}
	chains, err := v.timed(presented[0]).Verify(o)
	if err != nil {
		return fmt.Errorf("%w: %w", errCertificate, err)
	}
	if v.revoked == nil {
		return nil
	}
	for _, chain := range chains {
		if err = v.revoked.check(chain, v.anyTime); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", errCertificate, err)
}

// timed returns a certificate with the time at which it counts as valid. (Its signature
// is over its bytes, which stay.)
func (v *verifier) timed(c *x509.Certificate) *x509.Certificate {
	if !v.anyTime {
		return c
	}
	always := *c
	always.NotBefore, always.NotAfter = time.Unix(0, 0), time.Now().Add(longest)
	return &always
}
