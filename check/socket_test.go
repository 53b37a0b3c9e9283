package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// secureSpecifier has an endpoint checked through a socket.
func secureSpecifier(u *tlsv3.UpstreamTlsContext) *healthv3.HealthCheckSpecifier {
	c := timing()
	secured(over1Check)(c)
	cluster := clusterOf("web", []*corev3.HealthCheck{c}, group("a", endpoint("127.0.0.1:80")))
	cluster.TransportSocketMatches = matches(u)
	return specifierOf(cluster)
}

func TestRejectsSockets(t *testing.T) {
	l := newTLSLab(t)
	fifo := filepath.Join(l.folder, "folder")
	if err := os.Mkdir(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(path string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
	}
	for name, test := range map[string]struct {
		edit func(*tlsv3.CommonTlsContext, *validation)
		want string
	}{
		"signature algorithms": {func(c *tlsv3.CommonTlsContext, _ *validation) {
			c.TlsParams = &tlsv3.TlsParameters{SignatureAlgorithms: []string{"ed25519"}}
		}, "signature_algorithms is not supported"},
		"unknown suite": {func(c *tlsv3.CommonTlsContext, _ *validation) {
			c.TlsParams = &tlsv3.TlsParameters{CipherSuites: []string{"NULL"}}
		}, `cipher suite "NULL"`},
		"unknown curve": {func(c *tlsv3.CommonTlsContext, _ *validation) {
			c.TlsParams = &tlsv3.TlsParameters{EcdhCurves: []string{"P-1"}}
		}, `curve "P-1"`},
		"secrets by SDS": {func(c *tlsv3.CommonTlsContext, _ *validation) {
			c.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: "x"}}
		}, "tls_certificate_sds_secret_configs"},
		"authorities by SDS": {func(c *tlsv3.CommonTlsContext, v *validation) {
			c.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext: v, ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "x"},
			}}
		}, "validation_context_sds_secret_config"},
		"no file":        {func(_ *tlsv3.CommonTlsContext, v *validation) { v.TrustedCa = file("/does/not/exist") }, "trusted_ca: stat /does/not/exist"},
		"a folder":       {func(_ *tlsv3.CommonTlsContext, v *validation) { v.TrustedCa = file(fifo) }, "is no file"},
		"no certificate": {func(_ *tlsv3.CommonTlsContext, v *validation) { v.TrustedCa = inlineText("x") }, "no certificate"},
		"hash":           {func(_ *tlsv3.CommonTlsContext, v *validation) { v.VerifyCertificateHash = []string{"x"} }, "verify_certificate_hash"},
		"key of another": {func(c *tlsv3.CommonTlsContext, _ *validation) {
			c.TlsCertificates = []*tlsv3.TlsCertificate{{CertificateChain: inlineText(l.root.pem()), PrivateKey: inlineText(keyPEM(t, l.client))}}
		}, "tls_certificates"},
		"validator": {func(_ *tlsv3.CommonTlsContext, v *validation) {
			v.CustomValidatorConfig = &corev3.TypedExtensionConfig{}
		}, "custom_validator_config"},
		"names": {func(_ *tlsv3.CommonTlsContext, v *validation) {
			v.MatchTypedSubjectAltNames = []*tlsv3.SubjectAltNameMatcher{{SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: &matcherv3.StringMatcher{}}}
		}, "match_typed_subject_alt_names[0]"},
	} {
		if _, err := parseSpecifier(secureSpecifier(l.context(test.edit))); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, test.want)
		}
	}
	u := l.context()
	u.AutoHostSni = true
	if _, err := parseSpecifier(secureSpecifier(u)); err == nil || !strings.Contains(err.Error(), "auto_host_sni") {
		t.Errorf("auto_host_sni: %v", err)
	}
	u = l.context()
	u.MaxSessionKeys = wrapperspb.UInt32(0)
	if _, err := parseSpecifier(secureSpecifier(u)); err != nil {
		t.Errorf("max_session_keys: %v", err)
	}
	m := secureSpecifier(l.context())
	m.ClusterHealthChecks[0].TransportSocketMatches[0].TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.quic"}
	if _, err := parseSpecifier(m); err == nil || !strings.Contains(err.Error(), "envoy.transport_sockets.quic") {
		t.Errorf("QUIC: %v", err)
	}
}

func TestMatchesDNS(t *testing.T) {
	for _, test := range []struct {
		name, pattern string
		want          bool
	}{
		{"a.example", "a.example", true}, {"A.example", "a.Example", true}, {"a.example", "b.example", false},
		{"a.example", "*.example", true}, {"a.b.example", "*.example", false}, {"example", "*", false},
		{"abc.example", "a*.example", true}, {"abc.example", "*c.example", true}, {"abc.example", "a*c.example", true},
		{"ac.example", "a*c.example", true}, {"a.example", "a*a.example", false}, {"abc.example", "a**.example", false},
		{"xn--a.example", "xn--*.example", false}, {"a.b.example", "a.*.example", false}, {"a.b", "*.*", false},
	} {
		if got := matchesDNS(test.name, test.pattern); got != test.want {
			t.Errorf("%s by %s: %t", test.name, test.pattern, got)
		}
	}
}
