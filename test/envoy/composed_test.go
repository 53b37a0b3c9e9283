package envoy

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// composer gathers trials that are more than one value in one field.
type composer struct {
	lab    *lab
	offset int
	all    []*trial
}

func (c *composer) add(root, field, value string, change func(s *source)) *trial {
	s := c.lab.plain(fmt.Sprintf("case-%d", c.offset+len(c.all)))
	change(s)
	t := &trial{root: root, field: field, value: value, source: s}
	c.all = append(c.all, t)
	return t
}

// composed enumerates them.
func (l *lab) composed(offset int) []*trial {
	c := &composer{lab: l, offset: offset}
	c.clusters()
	c.bodies()
	c.regexes()
	c.tls()
	c.secrets()
	return c.all
}

func (c *composer) clusters() {
	const root = "ClusterHealthCheck"
	for _, value := range scalarValues((&healthv3.ClusterHealthCheck{}).ProtoReflect().Descriptor().Fields().ByName("cluster_name")) {
		c.add(root, "cluster_name", quote(value.String()), func(s *source) { s.name = value.String() })
	}
	endpoints := func(value string, change func(s *source)) { c.add(root, "locality_endpoints", value, change) }
	endpoints("none", func(s *source) { s.assignment.Endpoints = nil })
	endpoints("empty locality", func(s *source) { s.assignment.Endpoints[0].LbEndpoints = nil })
	endpoints("same locality twice", func(s *source) {
		s.assignment.Endpoints = append(s.assignment.Endpoints, s.assignment.Endpoints[0])
	})
	endpoints("same endpoint twice", func(s *source) {
		s.assignment.Endpoints[0].LbEndpoints = append(s.assignment.Endpoints[0].LbEndpoints, s.assignment.Endpoints[0].LbEndpoints[0])
	})
	endpoints("endpoint without anything", func(s *source) {
		s.assignment.Endpoints[0].LbEndpoints[0].HostIdentifier = &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{}}
	})
	checks := func(value string, change func(s *source)) { c.add(root, "health_checks", value, change) }
	checks("none", func(s *source) { s.checks = nil })
	checks("the same twice", func(s *source) { s.checks = append(s.checks, s.checks[0]) })
	checks("40 times the same", func(s *source) {
		for range 40 {
			s.checks = append(s.checks, s.checks[0])
		}
	})
	checks("HTTP and TCP", func(s *source) {
		s.checks = append(s.checks, sane(&corev3.HealthCheck{HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}}))
	})
}

// bodies go with methods, and answers with the size of the buffer.
func (c *composer) bodies() {
	payload := func(bytes int) *corev3.HealthCheck_Payload {
		return &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: strings.Repeat("00", bytes)}}
	}
	for number := range int32(len(corev3.RequestMethod_name)) {
		method := corev3.RequestMethod(number)
		c.add("HealthCheck", "http_health_check.send with method", method.String(), func(s *source) {
			h := s.checks[0].GetHttpHealthCheck()
			h.Method, h.Send = method, payload(1)
		})
	}
	for _, sizes := range [][2]int{{0, 5000}, {1, 1}, {1, 2}, {1024, 1024}, {1024, 1025}, {2000, 2000}, {1000, 400}} {
		c.add("HealthCheck", "http_health_check.receive with response_buffer_size", fmt.Sprintf("%d of %d bytes", sizes[1], sizes[0]), func(s *source) {
			h := s.checks[0].GetHttpHealthCheck()
			h.ResponseBufferSize = wrapperspb.UInt64(uint64(sizes[0]))
			h.Receive = []*corev3.HealthCheck_Payload{payload(sizes[1])}
		})
	}
	c.add("HealthCheck", "http_health_check.receive", "3 of 400 bytes", func(s *source) {
		s.checks[0].GetHttpHealthCheck().Receive = []*corev3.HealthCheck_Payload{payload(400), payload(400), payload(400)}
	})
}

// regexes are as complex as Envoy takes them, and beyond.
func (c *composer) regexes() {
	for _, regex := range []string{
		`spiffe://cluster\.local/ns/[a-z0-9-]+/sa/.*`, `^(foo|bar|baz)-v[0-9]+\.(svc|pod)$`, strings.Repeat("x", 60), strings.Repeat("x", 78),
		strings.Repeat(".", 5), "^.*a.*b$", "(?i)abcdefghijklmnopqrstuvwxyz", `\w+\d+\s*`, `[^a]`, `[^/]+/[^/]+`, `\pL`, `[α-ω]`, "a{20}", "(ab|cd){10}", "(?i)straße", ".*.*.*.*",
	} {
		c.add("HealthCheck", "http_health_check.service_name_matcher.safe_regex.regex", fmt.Sprintf("%q", regex), func(s *source) {
			s.checks[0].GetHttpHealthCheck().ServiceNameMatcher = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: regex}}}
		})
	}
}

// secure turns a source into one of a TLS cluster.
func (c *composer) secure(s *source, context *tlsv3.UpstreamTlsContext) {
	s.assignment.Endpoints[0].LbEndpoints[0].HostIdentifier = &endpointv3.LbEndpoint_Endpoint{Endpoint: c.lab.secure}
	s.config.TransportSocket = tlsSocket(context)
}

func tlsSocket(context *tlsv3.UpstreamTlsContext) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(context)}}
}

const suites = "ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 " +
	"ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA " +
	"AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA AES256-SHA TLS_AES_128_GCM_SHA256 DES-CBC3-SHA ECDHE-PSK-AES128-CBC-SHA " +
	"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305] [AES128-SHA AES128-SHA] !AES128-SHA ALL"

func (c *composer) tls() {
	const root = "UpstreamTlsContext"
	parameter := func(field, value string, set func(p *tlsv3.TlsParameters)) {
		c.add(root, "common_tls_context.tls_params."+field, fmt.Sprintf("%q", value), func(s *source) {
			context := secureContext()
			context.CommonTlsContext.TlsParams = &tlsv3.TlsParameters{}
			set(context.CommonTlsContext.TlsParams)
			c.secure(s, context)
		})
	}
	for suite := range strings.FieldsSeq(suites) {
		parameter("cipher_suites", suite, func(p *tlsv3.TlsParameters) { p.CipherSuites = []string{suite} })
	}
	parameter("cipher_suites", strings.Fields(suites)[0]+" twice", func(p *tlsv3.TlsParameters) {
		p.CipherSuites = []string{strings.Fields(suites)[0], strings.Fields(suites)[0]}
	})
	for curve := range strings.FieldsSeq("X25519 P-256 P-384 P-521 P-224 X25519MLKEM768") {
		parameter("ecdh_curves", curve, func(p *tlsv3.TlsParameters) { p.EcdhCurves = []string{curve} })
		parameter("ecdh_curves", curve+" twice", func(p *tlsv3.TlsParameters) { p.EcdhCurves = []string{curve, curve} })
	}
	for algorithm := range strings.FieldsSeq("rsa_pkcs1_sha256 rsa_pkcs1_sha384 rsa_pkcs1_sha512 ecdsa_secp256r1_sha256 ecdsa_secp384r1_sha384 ecdsa_secp521r1_sha512 " +
		"rsa_pss_rsae_sha256 rsa_pss_rsae_sha384 rsa_pss_rsae_sha512 ed25519 rsa_pkcs1_sha1") {
		parameter("signature_algorithms", algorithm, func(p *tlsv3.TlsParameters) { p.SignatureAlgorithms = []string{algorithm} })
		parameter("signature_algorithms", algorithm+" twice", func(p *tlsv3.TlsParameters) { p.SignatureAlgorithms = []string{algorithm, algorithm} })
	}
	parameter("tls_maximum_protocol_version", "below the minimum", func(p *tlsv3.TlsParameters) {
		p.TlsMinimumProtocolVersion, p.TlsMaximumProtocolVersion = tlsv3.TlsParameters_TLSv1_3, tlsv3.TlsParameters_TLSv1_2
	})
	for _, value := range scalarValues((&corev3.HealthCheck_TlsOptions{}).ProtoReflect().Descriptor().Fields().ByName("alpn_protocols")) {
		c.add("HealthCheck", "tls_options.alpn_protocols with TLS", quote(value.String()), func(s *source) {
			c.secure(s, secureContext())
			s.checks[0].TlsOptions = &corev3.HealthCheck_TlsOptions{AlpnProtocols: []string{value.String()}}
		})
	}
	for _, alpn := range []bool{false, true} {
		c.add("HealthCheck", "http_health_check.use_alpn_protocol with TLS", fmt.Sprintf("context has ALPN: %v", alpn), func(s *source) {
			context := secureContext()
			if alpn {
				context.CommonTlsContext.AlpnProtocols = []string{"h2", "http/1.1"}
			}
			c.secure(s, context)
			s.checks[0].GetHttpHealthCheck().UseAlpnProtocol = true
		})
	}
	c.validations()
}

func (c *composer) validations() {
	validation := func(field, value string, set func(v *tlsv3.CertificateValidationContext)) {
		c.add("UpstreamTlsContext", "common_tls_context.validation_context."+field, value, func(s *source) {
			context := secureContext()
			set(context.CommonTlsContext.GetValidationContext())
			c.secure(s, context)
		})
	}
	validation("crl", "a list", func(v *tlsv3.CertificateValidationContext) { v.Crl = inline(revocations) })
	validation("crl", "two lists", func(v *tlsv3.CertificateValidationContext) { v.Crl = inline(revocations + revocations) })
	validation("crl", "a list, without trusted_ca", func(v *tlsv3.CertificateValidationContext) { v.Crl, v.TrustedCa = inline(revocations), nil })
	validation("trusted_ca", "the same twice", func(v *tlsv3.CertificateValidationContext) { v.TrustedCa = inline(certificate + certificate) })
	validation("trusted_ca", "with text around", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa = inline("# a comment\n" + certificate + "\n")
	})
	validation("trusted_ca", "a key", func(v *tlsv3.CertificateValidationContext) { v.TrustedCa = inline(privateKey) })
	validation("trusted_ca", "cut off", func(v *tlsv3.CertificateValidationContext) { v.TrustedCa = inline(certificate[:len(certificate)/2]) })
	validation("trusted_ca", "a good and a cut off one", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa = inline(certificate + certificate[:len(certificate)/2])
	})
	validation("match_typed_subject_alt_names", "without trusted_ca", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa = nil
		v.MatchTypedSubjectAltNames = []*tlsv3.SubjectAltNameMatcher{saneMessages["envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher"].(*tlsv3.SubjectAltNameMatcher)}
	})
	validation("match_subject_alt_names", "without trusted_ca", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa = nil
		v.MatchSubjectAltNames = []*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "x"}}}
	})
	validation("allow_expired_certificate", "true without trusted_ca", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa, v.AllowExpiredCertificate = nil, true
	})
	validation("only_verify_leaf_cert_crl", "true without trusted_ca", func(v *tlsv3.CertificateValidationContext) {
		v.TrustedCa, v.OnlyVerifyLeafCertCrl = nil, true
	})
	for _, oid := range []string{"1.3.6.1.4", "1.2", "9.9", "1.99.1", "2.999999999.1", "1.", strings.Repeat("1.", 50) + "1"} {
		validation("match_typed_subject_alt_names.oid", fmt.Sprintf("%q", oid), func(v *tlsv3.CertificateValidationContext) {
			v.MatchTypedSubjectAltNames = []*tlsv3.SubjectAltNameMatcher{{SanType: tlsv3.SubjectAltNameMatcher_OTHER_NAME, Oid: oid, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "x"}}}}
		})
	}
	validation("verify_certificate_hash", "a SHA-256", func(v *tlsv3.CertificateValidationContext) {
		v.VerifyCertificateHash = []string{strings.Repeat("ab", 32)}
	})
	validation("verify_certificate_hash", "a SHA-256 with colons", func(v *tlsv3.CertificateValidationContext) {
		v.VerifyCertificateHash = []string{strings.Repeat("AB:", 31) + "AB"}
	})
	validation("verify_certificate_hash", "a SHA-256 with odd colons", func(v *tlsv3.CertificateValidationContext) {
		v.VerifyCertificateHash = []string{"a:b" + strings.Repeat("ab", 31)}
	})
	validation("verify_certificate_spki", "a SHA-256", func(v *tlsv3.CertificateValidationContext) {
		v.VerifyCertificateSpki = []string{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
	})
}
