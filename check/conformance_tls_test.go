package check

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// over1 answers 200 by HTTP/1.
func over1(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// behind follows a script behind TLS.
func behind(config *tls.Config, inner script) script {
	return func(c net.Conn) {
		secure := tls.Server(c, config)
		if secure.Handshake() == nil {
			inner(secure)
		}
	}
}

// tlsLab is who signs for the cases with TLS.
type tlsLab struct {
	t             testing.TB
	folder        string
	root, another *authority
	middle        *authority
	client        tls.Certificate
}

func newTLSLab(t testing.TB) *tlsLab {
	l := &tlsLab{t: t, folder: t.TempDir(), root: newAuthority(t, "root"), another: newAuthority(t, "another")}
	l.middle = l.root.subordinate("middle")
	l.client = l.root.issue(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	return l
}

// with returns a server's configuration.
func with(c tls.Certificate, edit ...func(*tls.Config)) *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS10}
	for _, e := range edit {
		e(config)
	}
	return config
}

func (l *tlsLab) good(edit ...func(*x509.Certificate)) tls.Certificate { return l.root.issue(edit...) }

func (l *tlsLab) file(name, text string) *corev3.DataSource {
	path := filepath.Join(l.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}

func inlineText(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

type validation = tlsv3.CertificateValidationContext

// context is a client's, which trusts the root and wants good.example.
func (l *tlsLab) context(edit ...func(*tlsv3.CommonTlsContext, *validation)) *tlsv3.UpstreamTlsContext {
	v := &validation{
		TrustedCa: inlineText(l.root.pem()),
		MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
			SanType: tlsv3.SubjectAltNameMatcher_DNS,
			Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "good.example"}},
		}},
	}
	common := &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: v}}
	for _, e := range edit {
		e(common, v)
	}
	return &tlsv3.UpstreamTlsContext{Sni: "good.example", CommonTlsContext: common}
}

const wireCriterion = "use"

// matches is how hdsd sends a socket.
func matches(u *tlsv3.UpstreamTlsContext) []*clusterv3.Cluster_TransportSocketMatch {
	packed, _ := anypb.New(u)
	return []*clusterv3.Cluster_TransportSocketMatch{{
		Name: "tls", Match: tlsCriteria(),
		TransportSocket: &corev3.TransportSocket{Name: tlsName, ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}},
	}}
}

func tlsCriteria() *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{wireCriterion: structpb.NewStringValue("0")}}
}

// secured makes a check use the cluster's socket.
func secured(check func(*base), alpn ...string) func(*base) {
	return func(c *base) {
		check(c)
		c.TransportSocketMatchCriteria = tlsCriteria()
		if len(alpn) > 0 {
			c.TlsOptions = &corev3.HealthCheck_TlsOptions{AlpnProtocols: alpn}
		}
	}
}

func over1Check(c *base) {
	c.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &httpProbe{Path: "/healthy"}}
}

func overTCPCheck(c *base) {
	c.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &tcpProbe{}}
}

func names(list ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = list }
}

func valid(from, to time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
}

func speaks(protocols ...string) func(*tls.Config) {
	return func(c *tls.Config) { c.NextProtos = protocols }
}

func versionsOf(least, most uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = least, most }
}

const (
	fails    = "U0 U0 H0"
	passes   = "H200 H200 H200"
	passes0  = "H0 H0 H0"
	timesOut = "T0 T0 H0"
)

func (l *tlsLab) certificateCases() []wireCase {
	demands := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, l.root.pool() }
	named := l.good()
	forSNI := &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName != "good.example" {
			return nil, io.EOF
		}
		return &named, nil
	}}
	chained := l.middle.issue()
	whole := chained
	whole.Certificate = append(whole.Certificate[:1:1], l.middle.cert.Raw)
	list := []wireCase{
		{name: "asked for by its name", script: behind(forSNI, over1), want: passes},
		{name: "plaintext", script: over1, want: fails},
		{name: "hangs in the handshake", script: writes(""), want: timesOut},
		{name: "closes in the handshake", script: closesAfterSome, want: fails},
		{name: "garbage", script: afterSome("\x00\x01garbage\r\n\xff\xfe\r\n\r\n"), want: fails},
		{name: "closes after the handshake", script: behind(with(l.good()), func(net.Conn) {}), want: fails},
		{name: "hangs after the handshake", script: behind(with(l.good()), writes("")), want: timesOut},
	}
	for _, c := range []struct {
		name   string
		config *tls.Config
		want   string
	}{
		{"another name", with(l.good(names("bad.example"))), fails},
		{"one of its names", with(l.good(names("bad.example", "GOOD.example"))), passes},
		{"a wildcard", with(l.good(names("*.example"))), passes},
		{"part of a wildcard", with(l.good(names("go*.example"))), passes},
		{"a wildcard amid the name", with(l.good(names("*.good.example"))), fails},
		{"no names but the common one", with(l.good(names())), fails},
		{"an address", with(l.good(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)} })), fails},
		{"expired", with(l.good(valid(-2*time.Hour, -time.Hour))), fails},
		{"not valid yet", with(l.good(valid(time.Hour, 2*time.Hour))), fails},
		{"signed by another", with(l.another.issue()), fails},
		{"signed by itself", with((&authority{t: l.t}).issue()), fails},
		{"through another authority", with(whole), passes},
		{"through another authority, which is missing", with(chained), fails},
		{"for clients only", with(l.good(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })), fails},
		{"for anything", with(l.good(func(c *x509.Certificate) { c.ExtKeyUsage = nil })), passes},
		{"key for nothing", with(l.good(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment })), fails},
		{"key usage not told", with(l.good(func(c *x509.Certificate) { c.KeyUsage = 0 })), passes},
		{"is an authority", with(l.good(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })), passes},
		{"demands a certificate", with(l.good(), demands), fails},
		{"TLS 1.2", with(l.good(), versionsOf(tls.VersionTLS12, tls.VersionTLS12)), passes},
		{"TLS 1.3 only", with(l.good(), versionsOf(tls.VersionTLS13, tls.VersionTLS13)), fails},
		{"TLS 1.1 only", with(l.good(), versionsOf(tls.VersionTLS10, tls.VersionTLS11)), fails},
		{"a protocol that nobody offered", with(l.good(), speaks("h2")), passes},
	} {
		list = append(list, wireCase{name: c.name, script: behind(c.config, over1), want: c.want})
	}
	return list
}

// trustCases give each client's configuration the servers that tell it from
// others.
func (l *tlsLab) groups() []wireGroup {
	good, other := l.good(), l.good()
	expired := l.good(valid(-2*time.Hour, -time.Hour))
	plain := behind(with(good), over1)
	one := func(name string, script script, want string) wireCase {
		return wireCase{name: name, script: script, want: want}
	}
	group := func(name string, u *tlsv3.UpstreamTlsContext, check func(*base), good script, cases ...wireCase) wireGroup {
		return wireGroup{name: name, check: check, good: good, cases: cases, sockets: matches(u)}
	}
	everywhere := func(name string, check func(*base), good script, cases ...wireCase) wireGroup { // a socket without labels
		g := group(name, l.context(), check, good, cases...)
		g.sockets[0].Match = nil
		return g
	}
	patiently := func(check func(*base)) func(*base) {
		return func(c *base) { check(c); c.Timeout = durationpb.New(3 * time.Second) }
	}
	trust := func(edit func(*validation)) *tlsv3.UpstreamTlsContext {
		return l.context(func(_ *tlsv3.CommonTlsContext, v *validation) { edit(v) })
	}
	params := func(p *tlsv3.TlsParameters) *tlsv3.UpstreamTlsContext {
		return l.context(func(c *tlsv3.CommonTlsContext, _ *validation) { c.TlsParams = p })
	}
	alpn := func(names ...string) *tlsv3.UpstreamTlsContext {
		return l.context(func(c *tlsv3.CommonTlsContext, _ *validation) { c.AlpnProtocols = names })
	}
	san := func(kind tlsv3.SubjectAltNameMatcher_SanType, m *matcherv3.StringMatcher) *tlsv3.UpstreamTlsContext {
		return trust(func(v *validation) {
			v.MatchTypedSubjectAltNames = []*tlsv3.SubjectAltNameMatcher{{SanType: kind, Matcher: m}}
		})
	}
	mutual := l.context(func(c *tlsv3.CommonTlsContext, _ *validation) {
		c.TlsCertificates = []*tlsv3.TlsCertificate{{
			CertificateChain: l.file("client.pem", certificatePEM(l.client.Leaf)), PrivateKey: l.file("client.key", keyPEM(l.t, l.client)),
		}}
	})
	demands := func(a *authority) func(*tls.Config) {
		return func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.pool() }
	}
	digest, key := sha256.Sum256(good.Leaf.Raw), sha256.Sum256(good.Leaf.RawSubjectPublicKeyInfo)
	http2ALPN := with(good, speaks("h2"))
	onlyTLS13 := versionsOf(tls.VersionTLS13, tls.VersionTLS13)
	address := func(c *x509.Certificate) {
		c.DNSNames, c.IPAddresses = nil, []net.IP{netip.MustParseAddr("::1").AsSlice()}
	}
	serves := behind(http2ALPN, overGRPC(serving, "grpc-status", "0"))
	return []wireGroup{
		group("tls", l.context(), secured(over1Check), plain, l.certificateCases()...),
		group("tls-tcp", l.context(), secured(overTCPCheck), plain,
			one("another name", behind(with(l.good(names("bad.example"))), over1), fails),
			one("closes after the handshake", behind(with(good), func(net.Conn) {}), passes0),
			one("hangs in the handshake", writes(""), timesOut)),
		group("tls-alpn", alpn("http/1.1"), secured(over1Check), plain,
			one("agrees", behind(with(good, speaks("http/1.1")), over1), passes),
			one("wants another", behind(with(good, speaks("other")), over1), fails),
			one("does not care", plain, passes)),
		group("tls-alpn-check", alpn("other"), secured(over1Check, "http/1.1"), plain,
			one("agrees with the check", behind(with(good, speaks("http/1.1")), over1), passes),
			one("agrees with the socket", behind(with(good, speaks("other")), over1), fails)),
		group("tls-http2", l.context(), secured(over2Check, "h2"), behind(http2ALPN, over2(ok2)),
			one("does not care", behind(with(good), over2(ok2)), passes),
			one("wants HTTP/1", behind(with(good, speaks("http/1.1")), over1), fails),
			one("speaks HTTP/1 all the same", behind(with(good), over1), fails),
			one("503", behind(http2ALPN, alone(":status", "503")), "U503 U503 U503"),
			one("another name", behind(with(l.good(names("bad.example")), speaks("h2")), over2(ok2)), fails)),
		group("tls-http2-without-alpn", l.context(), secured(over2Check), behind(http2ALPN, over2(ok2)),
			one("does not care", behind(with(good), over2(ok2)), passes)),
		group("tls-grpc", l.context(), secured(grpcCheckOf, "h2"), serves,
			one("NOT_SERVING", behind(http2ALPN, overGRPC(messageOf(2), "grpc-status", "0")), "U0 U0 U0"),
			one("hangs", behind(http2ALPN, over2(func(*peer2, uint32) {})), timesOut),
			one("expired", behind(with(expired, speaks("h2")), overGRPC(serving, "grpc-status", "0")), fails)),
		group("tls-grpc-slow", l.context(), secured(grpcCheckOf, "h2"), serves, wireCase{
			name: "handshake slower than the timeout", want: timesOut, envoy: "H0 T0 H0",
			why: "a connection that is not made when a check times out is given up, and made anew",
			script: func(c net.Conn) {
				time.Sleep(2500 * time.Millisecond)
				serves(c)
			},
		}),
		everywhere("tls-redis-all", secured(redisCheckOf("")), behind(with(good), replies("+PONG\r\n")),
			one("an error", behind(with(good), replies("-ERR\r\n")), "U0 U0 U0"),
			one("plaintext", replies("+PONG\r\n"), fails),
			one("expired", behind(with(expired), replies("+PONG\r\n")), fails)),
		everywhere("tls-redis-slow", patiently(secured(redisCheckOf(""))), behind(with(good), replies("+PONG\r\n")),
			one("hangs in the handshake", writes(""), fails)), // Envoy gives up the connection before the check times out
		// Envoy's Redis check knows no criteria: it goes in plaintext.
		group("tls-redis", l.context(), secured(redisCheckOf("")), replies("+PONG\r\n"),
			one("TLS", behind(with(good), replies("+PONG\r\n")), fails)),
		group("tls-scheme", l.context(), secured(over2Check, "h2"), behind(http2ALPN, asks("", ok2, ":scheme", "http")),
			one("another name", behind(with(l.good(names("bad.example")), speaks("h2")), over2(ok2)), fails)),
		everywhere("tls-scheme-all", secured(over2Check, "h2"), behind(http2ALPN, asks("", ok2, ":scheme", "https")),
			one("another name", behind(with(l.good(names("bad.example")), speaks("h2")), over2(ok2)), fails)),
		group("tls-mutual", mutual, secured(over1Check), plain,
			one("demands it", behind(with(good, demands(l.root)), over1), passes),
			one("demands another's", behind(with(good, demands(l.another)), over1), fails)),
		group("tls-1.3", params(&tlsv3.TlsParameters{TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3}), secured(over1Check), plain,
			one("TLS 1.3 only", behind(with(good, onlyTLS13), over1), passes),
			one("demands a certificate", behind(with(good, onlyTLS13, demands(l.root)), over1), fails),
			one("another name", behind(with(l.good(names("bad.example")), onlyTLS13), over1), fails)),
		group("tls-1.3-only", params(&tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		}), secured(over1Check), plain,
			one("TLS 1.2 only", behind(with(good, versionsOf(tls.VersionTLS12, tls.VersionTLS12)), over1), fails)),
		group("tls-old", params(&tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_0, CipherSuites: []string{"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-GCM-SHA256"},
		}), secured(over1Check), plain,
			one("TLS 1.1 only", behind(with(good, versionsOf(tls.VersionTLS10, tls.VersionTLS11)), over1), passes)),
		group("tls-suite", params(&tlsv3.TlsParameters{CipherSuites: []string{"ECDHE-ECDSA-AES256-GCM-SHA384"}}), secured(over1Check), plain,
			one("another suite", behind(with(good, func(c *tls.Config) {
				c.CipherSuites, c.MaxVersion = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, tls.VersionTLS12
			}), over1), fails)),
		group("tls-curve", params(&tlsv3.TlsParameters{EcdhCurves: []string{"P-256"}}), secured(over1Check), plain,
			one("another curve", behind(with(good, func(c *tls.Config) {
				c.CurvePreferences, c.MaxVersion = []tls.CurveID{tls.CurveP521}, tls.VersionTLS12
			}), over1), fails)),
		group("tls-unverified", &tlsv3.UpstreamTlsContext{}, secured(over1Check), plain,
			one("expired", behind(with(expired), over1), passes),
			one("signed by another", behind(with(l.another.issue(names("bad.example"))), over1), passes)),
		group("tls-accepts-untrusted", trust(func(v *validation) { v.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED }), secured(over1Check), plain,
			one("signed by another", behind(with(l.another.issue()), over1), passes),
			one("another name", behind(with(l.good(names("bad.example"))), over1), passes)),
		group("tls-accepts-expired", trust(func(v *validation) { v.AllowExpiredCertificate = true }), secured(over1Check), plain,
			one("expired", behind(with(expired), over1), passes),
			one("not valid yet", behind(with(l.good(valid(time.Hour, 2*time.Hour))), over1), passes),
			one("signed by another", behind(with(l.another.issue()), over1), fails)),
		group("tls-hash", &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: &validation{VerifyCertificateHash: []string{hex.EncodeToString(digest[:])}},
		}}}, secured(over1Check), plain,
			one("another certificate", behind(with(other), over1), fails)),
		group("tls-spki", trust(func(v *validation) { v.VerifyCertificateSpki = []string{base64.StdEncoding.EncodeToString(key[:])} }), secured(over1Check), plain,
			one("another key", behind(with(other), over1), fails)),
		group("tls-revoked", trust(func(v *validation) { v.Crl = inlineText(l.root.revokes(other)) }), secured(over1Check), plain,
			one("revoked", behind(with(other), over1), fails),
			one("not in the list", behind(with(l.good()), over1), passes)),
		group("tls-depth", trust(func(v *validation) { v.MaxVerifyDepth = wrapped(0) }), secured(over1Check), plain,
			one("through another authority", behind(with(l.chained()), over1), passes)),
		group("tls-middle", trust(func(v *validation) { v.TrustedCa = inlineText(l.middle.pem()) }), secured(over1Check), behind(with(l.middle.issue()), over1),
			one("signed by the root", plain, fails)),
		group("tls-address", san(tlsv3.SubjectAltNameMatcher_IP_ADDRESS, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "::1"}}), secured(over1Check),
			behind(with(l.good(address)), over1), one("a name", plain, fails)),
		group("tls-prefix", san(tlsv3.SubjectAltNameMatcher_DNS, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "good."}}), secured(over1Check), plain,
			one("a wildcard", behind(with(l.good(names("*.example"))), over1), fails),
			one("in capitals", behind(with(l.good(names("GOOD.example"))), over1), fails)),
		group("tls-deprecated-names", trust(func(v *validation) {
			v.MatchTypedSubjectAltNames = nil
			v.MatchSubjectAltNames = []*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "good.example"}}, {MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "::1"}}}
		}), secured(over1Check), plain,
			one("an address", behind(with(l.good(address)), over1), passes),
			one("another name", behind(with(l.good(names("bad.example"))), over1), fails)),
	}
}

func (l *tlsLab) chained() tls.Certificate {
	c := l.middle.issue()
	c.Certificate = append(c.Certificate, l.middle.cert.Raw)
	return c
}
