package specifier

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const maxMaterial = 1 << 20 // bytes of one certificate bundle

var tlsMessages = map[protoreflect.FullName]messageRule{
	"envoy.extensions.transport_sockets.tls.v3.TlsParameters":                rule(ruleTLSParameters),
	"envoy.extensions.transport_sockets.tls.v3.TlsCertificate":               rule(ruleTLSCertificate),
	"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext": rule(ruleValidation),
	"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext":             rule(ruleCommonTLS),
	"envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher":        rule(ruleSAN),
	"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig":              rule(ruleSecret),
	"envoy.config.core.v3.DataSource":                                        rule(ruleDataSource),
	"envoy.config.core.v3.ConfigSource":                                      rule(ruleConfigSource),
	"envoy.config.core.v3.ApiConfigSource":                                   rule(ruleAPIConfigSource),
	"envoy.config.core.v3.GrpcService":                                       rule(ruleGRPCService),
}

func ruleTLSParameters(r *review, path string, p *tlsv3.TlsParameters) {
	minimum, maximum := p.GetTlsMinimumProtocolVersion(), p.GetTlsMaximumProtocolVersion()
	if maximum != tlsv3.TlsParameters_TLS_AUTO && minimum > maximum {
		r.problem(join(path, "tls_maximum_protocol_version"), "%v is below the minimum %v", maximum, minimum)
	}
	ruleUnique(r, join(path, "ecdh_curves"), p.GetEcdhCurves())
	ruleUnique(r, join(path, "signature_algorithms"), p.GetSignatureAlgorithms())
	if len(p.GetSignatureAlgorithms()) > 0 {
		r.need(signatureAlgorithms)
	}
}

func ruleUnique(r *review, path string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			r.problem(path, "%q is there twice; give it once", name)
		}
	}
}

func ruleCommonTLS(r *review, path string, c *tlsv3.CommonTlsContext) {
	if n := len(c.GetTlsCertificates()) + len(c.GetTlsCertificateSdsSecretConfigs()); n > 1 {
		r.problem(path, "holds %d certificates of the client; give one", n)
	}
	var names int
	for _, p := range c.GetAlpnProtocols() {
		names += 1 + len(p)
	}
	if names > 65535 {
		r.problem(join(path, "alpn_protocols"), "are too long together")
	}
	ruleAuthority(r, join(path, "validation_context"), c.GetValidationContext())
	if combined := c.GetCombinedValidationContext(); combined.GetValidationContextSdsSecretConfig() == nil { // else trusted_ca is in the secret
		ruleAuthority(r, join(path, "combined_validation_context.default_validation_context"), combined.GetDefaultValidationContext())
	}
}

func ruleTLSCertificate(r *review, path string, c *tlsv3.TlsCertificate) {
	chain, key := inline(c.GetCertificateChain()), inline(c.GetPrivateKey())
	switch {
	case c.GetCertificateChain() == nil || c.GetPrivateKey() == nil:
		r.problem(path, "needs both certificate_chain and private_key")
	case c.GetPassword() != nil:
		r.problem(join(path, "password"), "hdsd cannot test an encrypted key; give the key without a password")
	case chain != nil && key != nil:
		if _, err := tls.X509KeyPair(chain, key); err != nil {
			r.problem(path, "certificate_chain and private_key do not go together: %v", err)
		}
	case chain != nil || key != nil:
		r.problem(path, "is half inline and half in files, which hdsd cannot test; use one of the two")
	}
	if chain != nil {
		rulePEM(r, join(path, "certificate_chain"), chain)
	}
}

func ruleValidation(r *review, path string, v *tlsv3.CertificateValidationContext) {
	if ca := inline(v.GetTrustedCa()); ca != nil {
		rulePEM(r, join(path, "trusted_ca"), ca)
	}
	if crl := inline(v.GetCrl()); crl != nil {
		ruleCRL(r, join(path, "crl"), crl)
	}
}

// ruleAuthority refuses tests of a certificate for which a context needs trusted_ca.
func ruleAuthority(r *review, path string, v *tlsv3.CertificateValidationContext) {
	if v.GetTrustedCa() == nil && (v.GetCrl() != nil || v.GetAllowExpiredCertificate() ||
		len(v.GetMatchTypedSubjectAltNames())+len(v.GetMatchSubjectAltNames()) > 0) { //nolint:staticcheck // deprecated, still in use
		r.problem(path, "tests certificates without trusted_ca; give trusted_ca")
	}
}

// inline returns the inline content of a data source, or nil.
func inline(d *corev3.DataSource) []byte {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineBytes:
		return append([]byte{}, s.InlineBytes...)
	case *corev3.DataSource_InlineString:
		return append([]byte{}, s.InlineString...)
	}
	return nil
}

func rulePEM(r *review, path string, material []byte) {
	blocks := 0
	for block, rest := pem.Decode(material); ; block, rest = pem.Decode(rest) {
		if block == nil {
			if blocks == 0 || len(strings.TrimSpace(string(rest))) > 0 {
				r.problem(path, "is not a chain of certificates in PEM, and nothing else")
			}
			return
		}
		blocks++
		if block.Type != "CERTIFICATE" {
			r.problem(path, "holds a %q, where only certificates may be", clip(block.Type))
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			r.problem(path, "certificate %d cannot be parsed: %v", blocks, err)
			return
		}
	}
}

func ruleCRL(r *review, path string, material []byte) {
	block, rest := pem.Decode(material)
	if block == nil || block.Type != "X509 CRL" || len(strings.TrimSpace(string(rest))) > 0 {
		r.problem(path, "is not one revocation list in PEM")
		return
	}
	if _, err := x509.ParseRevocationList(block.Bytes); err != nil {
		r.problem(path, "cannot be parsed: %v", err)
	}
}

func ruleSAN(r *review, path string, m *tlsv3.SubjectAltNameMatcher) {
	switch m.GetSanType() {
	case tlsv3.SubjectAltNameMatcher_EMAIL, tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI, tlsv3.SubjectAltNameMatcher_IP_ADDRESS:
		if m.GetOid() != "" {
			r.problem(join(path, "oid"), "is for OTHER_NAME only; take it out")
		}
	case tlsv3.SubjectAltNameMatcher_OTHER_NAME:
		if m.GetOid() == "" {
			r.problem(join(path, "oid"), "is missing")
		}
	default:
		r.problem(join(path, "san_type"), "is missing; give DNS, URI, EMAIL, IP_ADDRESS or OTHER_NAME")
	}
	if m.GetMatcher() == nil {
		r.problem(join(path, "matcher"), "is missing")
	}
}

func ruleDataSource(r *review, path string, d *corev3.DataSource) {
	switch s := d.GetSpecifier().(type) {
	case nil:
		r.problem(path, "is empty")
	case *corev3.DataSource_Filename:
		if !r.options.Files[s.Filename] {
			r.problem(join(path, "filename"), "the configuration does not say that checkers have the file %q, and they must; add it to checkers.files, or use inline_string", clip(s.Filename))
		}
	case *corev3.DataSource_InlineString:
		if len(s.InlineString) > maxMaterial {
			r.problem(join(path, "inline_string"), "has %d bytes; at most %d are sent", len(s.InlineString), maxMaterial)
		}
	}
}

func ruleConfigSource(r *review, path string, c *corev3.ConfigSource) {
	if c.GetApiConfigSource() == nil {
		r.problem(join(path, "api_config_source"), "is missing, and no other way to a secret works on every checker")
	}
	if c.GetResourceApiVersion() != corev3.ApiVersion_V3 {
		r.problem(join(path, "resource_api_version"), "must be V3")
	}
}

func ruleAPIConfigSource(r *review, path string, a *corev3.ApiConfigSource) {
	if t := a.GetApiType(); t != corev3.ApiConfigSource_GRPC && t != corev3.ApiConfigSource_DELTA_GRPC {
		r.problem(join(path, "api_type"), "%v gives no secrets; use GRPC or DELTA_GRPC", t)
	}
	if a.GetTransportApiVersion() != corev3.ApiVersion_V3 {
		r.problem(join(path, "transport_api_version"), "must be V3")
	}
	if len(a.GetGrpcServices()) != 1 {
		r.problem(join(path, "grpc_services"), "must be one")
	}
}

func ruleGRPCService(r *review, path string, s *corev3.GrpcService) {
	if s.GetEnvoyGrpc().GetClusterName() == "" {
		r.problem(join(path, "envoy_grpc.cluster_name"), "is missing; name a cluster of the checkers' bootstrap")
	}
}

func serverName(v protoreflect.Value) string {
	if len(v.String()) > 255 {
		return "is longer than 255 bytes"
	}
	return shortText(v)
}

func spki(v protoreflect.Value) string {
	if raw, err := base64.StdEncoding.DecodeString(v.String()); err != nil || len(raw) != 32 {
		return fmt.Sprintf("%q is not the base64 of a SHA-256", clip(v.String()))
	}
	return ""
}

func fingerprint(v protoreflect.Value) string {
	if !digest.MatchString(v.String()) {
		return fmt.Sprintf("%q is not the hexadecimal of a SHA-256", clip(v.String()))
	}
	return ""
}

var (
	digest = regexp.MustCompile(`^([0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31})$`)
	dotted = regexp.MustCompile(`^([01]\.(0|[1-9]|[12][0-9]|3[0-9])|2\.(0|[1-9][0-9]{0,8}))(\.(0|[1-9][0-9]{0,8})){0,20}$`)
)

func objectIdentifier(v protoreflect.Value) string {
	if !dotted.MatchString(v.String()) {
		return fmt.Sprintf("%q is no object identifier (as 1.3.6.1.4)", clip(v.String()))
	}
	return ""
}

// The parts of BoringSSL that every release has.
var (
	cipherSuites = names("ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 " +
		"ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA " +
		"AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA AES256-SHA")
	curves     = names("X25519 P-256 P-384 P-521")
	signatures = names("rsa_pkcs1_sha256 rsa_pkcs1_sha384 rsa_pkcs1_sha512 ecdsa_secp256r1_sha256 ecdsa_secp384r1_sha384 ecdsa_secp521r1_sha512 " +
		"rsa_pss_rsae_sha256 rsa_pss_rsae_sha384 rsa_pss_rsae_sha512 ed25519")
)

func names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// cipherSuite accepts a suite, or a group of equals such as [A|B].
func cipherSuite(v protoreflect.Value) string {
	group := v.String()
	if strings.HasPrefix(group, "[") && strings.HasSuffix(group, "]") {
		group = group[1 : len(group)-1]
	}
	for suite := range strings.SplitSeq(group, "|") {
		if !cipherSuites[suite] {
			return fmt.Sprintf("%q is no cipher suite that every checker knows", clip(suite))
		}
	}
	return ""
}

func curve(v protoreflect.Value) string {
	if !curves[v.String()] {
		return fmt.Sprintf("%q is no curve that every checker knows; use X25519, P-256, P-384 or P-521", clip(v.String()))
	}
	return ""
}

func signatureAlgorithm(v protoreflect.Value) string {
	if !signatures[v.String()] {
		return fmt.Sprintf("%q is no signature algorithm that every checker knows", clip(v.String()))
	}
	return ""
}
