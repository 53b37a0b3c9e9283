package check

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// allowOnly refuses a message with a set field that is not in names, the supported ones.
func allowOnly(m proto.Message, names ...string) error {
	var err error
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(names, string(fd.Name())) {
			err = fmt.Errorf("%s is not supported", fd.Name())
		}
		return err == nil
	})
	return err
}

// tlsClient returns the equivalent of Envoy's TLS socket. It has no session cache: each
// connection verifies the certificate.
func tlsClient(u *tlsv3.UpstreamTlsContext) (*tls.Config, error) {
	if err := allowOnly(u, "common_tls_context", "sni", "allow_renegotiation", "max_session_keys", "enforce_rsa_key_usage"); err != nil {
		return nil, err
	}
	common := u.GetCommonTlsContext()
	if err := allowOnly(common, "tls_params", "tls_certificates", "validation_context", "combined_validation_context", "alpn_protocols", "key_log"); err != nil {
		return nil, fmt.Errorf("common_tls_context: %w", err)
	}
	config := &tls.Config{
		ServerName: u.GetSni(), NextProtos: common.GetAlpnProtocols(),
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies as Envoy does, without a name
	}
	if u.GetAllowRenegotiation() {
		config.Renegotiation = tls.RenegotiateFreelyAsClient
	}
	if err := applyParameters(config, common.GetTlsParams()); err != nil {
		return nil, fmt.Errorf("tls_params: %w", err)
	}
	certificates, err := keyPairs(common.GetTlsCertificates())
	if err != nil {
		return nil, fmt.Errorf("tls_certificates: %w", err)
	}
	if len(certificates) > 0 {
		// As in Envoy, whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
	}
	v, err := newVerifier(common)
	if err != nil {
		return nil, err
	}
	v.offers = config.CurvePreferences
	config.VerifyConnection = v.verify
	return config, nil
}

var versions = map[tlsv3.TlsParameters_TlsProtocol]uint16{
	tlsv3.TlsParameters_TLS_AUTO: tls.VersionTLS12, // minimum and maximum for clients
	tlsv3.TlsParameters_TLSv1_0:  tls.VersionTLS10,
	tlsv3.TlsParameters_TLSv1_1:  tls.VersionTLS11,
	tlsv3.TlsParameters_TLSv1_2:  tls.VersionTLS12,
	tlsv3.TlsParameters_TLSv1_3:  tls.VersionTLS13,
}

var suites = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
}

// defaultSuites are the suites that Envoy's clients offer.
var defaultSuites = []string{
	"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
	"[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
	"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
}

var curves = map[string]tls.CurveID{
	"X25519": tls.X25519, "P-256": tls.CurveP256, "P-384": tls.CurveP384, "P-521": tls.CurveP521,
}

var defaultCurves = []string{"X25519", "P-256"}

func applyParameters(config *tls.Config, p *tlsv3.TlsParameters) error {
	err := allowOnly(p, "tls_minimum_protocol_version", "tls_maximum_protocol_version", "cipher_suites", "ecdh_curves")
	if err != nil {
		return err
	}
	config.MinVersion, config.MaxVersion = versions[p.GetTlsMinimumProtocolVersion()], versions[p.GetTlsMaximumProtocolVersion()]
	groups := p.GetCipherSuites()
	if len(groups) == 0 {
		groups = defaultSuites
	}
	for _, group := range groups {
		for name := range strings.SplitSeq(strings.Trim(group, "[]"), "|") {
			suite, ok := suites[name]
			if !ok {
				return fmt.Errorf("cipher suite %q is not supported", name)
			}
			config.CipherSuites = append(config.CipherSuites, suite)
		}
	}
	names := p.GetEcdhCurves()
	if len(names) == 0 {
		names = defaultCurves
	}
	for _, name := range names {
		curve, ok := curves[name]
		if !ok {
			return fmt.Errorf("curve %q is not supported", name)
		}
		config.CurvePreferences = append(config.CurvePreferences, curve)
	}
	return nil
}

func keyPairs(list []*tlsv3.TlsCertificate) ([]tls.Certificate, error) {
	if len(list) > 1 {
		return nil, fmt.Errorf("there are %d, and a client has one", len(list))
	}
	var pairs []tls.Certificate
	for _, c := range list {
		if err := allowOnly(c, "certificate_chain", "private_key", "ocsp_staple", "signed_certificate_timestamp"); err != nil {
			return nil, err
		}
		chain, err := material(c.GetCertificateChain())
		if err != nil {
			return nil, fmt.Errorf("certificate_chain: %w", err)
		}
		key, err := material(c.GetPrivateKey())
		if err != nil {
			return nil, fmt.Errorf("private_key: %w", err)
		}
		pair, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// maxMaterial is the size limit of a file of certificates.
const maxMaterial = 1 << 20

// material returns the content of a data source. A file is read once, when the
// specifier arrives.
func material(d *corev3.DataSource) ([]byte, error) {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes, nil
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString), nil
	case *corev3.DataSource_Filename:
		info, err := os.Stat(s.Filename)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxMaterial {
			return nil, fmt.Errorf("%s is no file of at most %d bytes", s.Filename, maxMaterial)
		}
		return os.ReadFile(s.Filename)
	case nil:
		return nil, nil
	default:
		return nil, fmt.Errorf("a source of type %T is not supported", s)
	}
}
