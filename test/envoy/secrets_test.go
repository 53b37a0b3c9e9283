package envoy

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/hds/specifier"
)

// secretService gives the secrets that are named here, and no others.
type secretService struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
}

const (
	authoritySecret = "secret" // who signs the lab's certificate
	emptySecret     = "empty"  // a validation context without an authority
	pairSecret      = "pair"   // a certificate with its key
)

var labSecrets = map[string]*tlsv3.Secret{
	authoritySecret: {Name: authoritySecret, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(certificate)}}},
	emptySecret:     {Name: emptySecret, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{}}},
	pairSecret: {Name: pairSecret, Type: &tlsv3.Secret_TlsCertificate{
		TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(certificate), PrivateKey: inline(privateKey)},
	}},
}

// StreamSecrets answers the first request for each set of names.
func (secretService) StreamSecrets(stream secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	var asked []string
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		if slices.Equal(asked, request.GetResourceNames()) {
			continue
		}
		asked = request.GetResourceNames()
		var resources []*anypb.Any
		for _, name := range asked {
			if secret := labSecrets[name]; secret != nil {
				resources = append(resources, anyOf(secret))
			}
		}
		if len(resources) == 0 {
			continue
		}
		if err := stream.Send(&discoveryv3.DiscoveryResponse{VersionInfo: "1", Nonce: "1", TypeUrl: request.GetTypeUrl(), Resources: resources}); err != nil {
			return err
		}
	}
}

// secrets are in files, or come by SDS.
func (c *composer) secrets() {
	add := func(field, value string, o specifier.Options, context *tlsv3.CommonTlsContext) {
		c.add("UpstreamTlsContext", field, value, func(s *source) {
			c.secure(s, &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: context})
		}).options = o
	}
	file := c.lab.file
	validation := func(d *corev3.DataSource) *tlsv3.CommonTlsContext {
		return &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: d}}}
	}
	inFile := &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: file}}
	const ca = "common_tls_context.validation_context.trusted_ca.filename"
	add(ca, "a file that checkers have, as configured", specifier.Options{Files: map[string]bool{file: true}}, validation(inFile))
	add(ca, "a file that checkers have, not configured", specifier.Options{}, validation(inFile))
	secret := func(name string, source *corev3.ConfigSource) *tlsv3.CommonTlsContext {
		return &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: name, SdsConfig: source},
		}}
	}
	known := specifier.Options{SDSSecrets: map[string]bool{authoritySecret: true}}
	const sds = "common_tls_context.validation_context_sds_secret_config"
	add(sds, "from a cluster that checkers have, as configured", known, secret(authoritySecret, sdsFrom("hdsd")))
	add(sds, "from a cluster that checkers have, not configured", specifier.Options{}, secret(authoritySecret, sdsFrom("hdsd")))
	add(sds, "one that never comes (not configured)", specifier.Options{}, secret("never", sdsFrom("hdsd")))
	add(sds, "from a cluster that checkers do not have (not configured)", specifier.Options{}, secret(authoritySecret, sdsFrom("no-such-cluster")))
	add(sds, "over ADS", known, secret(authoritySecret, &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}))
	const rest = "common_tls_context.combined_validation_context.default_validation_context"
	for _, beside := range []struct {
		value   string
		context *tlsv3.CertificateValidationContext
	}{
		{"nothing", &tlsv3.CertificateValidationContext{}},
		{"names", named("lab.test")},
		{"names in the old way", &tlsv3.CertificateValidationContext{MatchSubjectAltNames: []*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "lab.test"}}}}},
		{"a revocation list", &tlsv3.CertificateValidationContext{Crl: inline(revocations)}},
		{"expired certificates", &tlsv3.CertificateValidationContext{AllowExpiredCertificate: true}},
		{"revocation of leaves only", &tlsv3.CertificateValidationContext{OnlyVerifyLeafCertCrl: true}},
	} {
		add(rest, beside.value+" with the authority by SDS", known, combined(authoritySecret, beside.context))
	}
	add(rest, "names with the authority by SDS (not configured)", specifier.Options{}, combined(authoritySecret, named("lab.test")))
}

func sdsFrom(cluster string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster}}}},
	}}}
}

// combined takes the authority by SDS, and the rest from the source.
func combined(secret string, rest *tlsv3.CertificateValidationContext) *tlsv3.CommonTlsContext {
	return &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         rest,
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: secret, SdsConfig: sdsFrom("hdsd")},
		},
	}}
}

// named demands a name of the endpoint's certificate.
func named(name string) *tlsv3.CertificateValidationContext {
	return &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
	}}}
}

// TestNamesWithTheAuthorityBySDS sends clusters whose source says which names an
// endpoint's certificate may have, while the authority comes by SDS. Releases
// that get this from hdsd test the names, and the others end when it is sent raw.
func TestNamesWithTheAuthorityBySDS(t *testing.T) {
	for release, capable := range map[string]bool{"1.36.4": false, "1.38.3": true, "1.40.0": true} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			c := &composer{lab: l}
			trialOf := func(name string) *trial {
				trial := c.add("UpstreamTlsContext", "combined_validation_context", name, func(s *source) {
					c.secure(s, &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: combined(authoritySecret, named(name))})
				})
				trial.options = specifier.Options{SDSSecrets: map[string]bool{authoritySecret: true}}
				return trial
			}
			right, wrong := trialOf("lab.test"), trialOf("other.test")
			if sent := len(l.sent(t, release, []*trial{right, wrong})); sent != map[bool]int{true: 2}[capable] {
				t.Fatalf("hdsd sends %d of the two clusters: %+v", sent, right.translate())
			}
			s := l.subject(t, release)
			if !capable {
				if e := s.try(t, []*healthv3.ClusterHealthCheck{right.source.raw()}); e != killed {
					t.Errorf("sent raw, the Envoy is %s; allow it for this release", e)
				}
				return
			}
			s.distinguishes(t, right.source.raw(), wrong.source.raw())
			right.source.name, wrong.source.name = "right", "wrong" // clusters that it has not had
			s.distinguishes(t, right.translate().clusters[0], wrong.translate().clusters[0])
		})
	}
}

// TestSecretsFromElsewhere sends clusters whose source has the authority by ADS, which
// the Envoy lacks, or in a file that it lacks: hdsd sends the checkers' own source.
func TestSecretsFromElsewhere(t *testing.T) {
	for _, release := range []string{"1.38.3", "1.40.0"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			c := &composer{lab: l}
			trialOf := func(name string, by *corev3.ConfigSource) *trial {
				context := combined(authoritySecret, named(name))
				context.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().SdsConfig = by
				trial := c.add("UpstreamTlsContext", "combined_validation_context", name, func(s *source) {
					c.secure(s, &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: context})
				})
				trial.options = specifier.Options{SDSConfig: sdsFrom("hdsd")}
				return trial
			}
			right := trialOf("lab.test", &corev3.ConfigSource{
				ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			})
			wrong := trialOf("other.test", &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/nowhere/secret.yaml"}},
			})
			if sent := len(l.sent(t, release, []*trial{right, wrong})); sent != 2 {
				t.Fatalf("hdsd sends %d of the two clusters: %+v", sent, right.translate())
			}
			s := l.subject(t, release)
			right.source.name, wrong.source.name = "right", "wrong"
			s.distinguishes(t, right.translate().clusters[0], wrong.translate().clusters[0])
		})
	}
}

// distinguishes sends two clusters, of which an Envoy finds the first HEALTHY,
// and the second UNHEALTHY since the endpoint's certificate has another name.
func (s *subject) distinguishes(t *testing.T, right, wrong *healthv3.ClusterHealthCheck) {
	t.Helper()
	refusals := func() uint64 {
		return s.Stats(t, "fail_verify_san$")["cluster."+wrong.GetClusterName()+".ssl.fail_verify_san"]
	}
	s.out <- &healthv3.HealthCheckSpecifier{Interval: durationpb.New(20e6), ClusterHealthChecks: []*healthv3.ClusterHealthCheck{right, wrong}}
	before := refusals()
	Eventually(t, patience, "an end, or the right name to be healthy and the wrong one refused", func() bool {
		return !s.Alive() || s.healthy(right.GetClusterName()) && refusals() > before+2
	})
	if status, _ := s.entry(wrong.GetClusterName()); !s.Alive() || status != corev3.HealthStatus_UNHEALTHY {
		t.Errorf("alive: %v; an endpoint with the wrong name is %v", s.Alive(), status)
	}
}

// TestNamesWithoutAnAuthority demands names where the secret holds no authority
// and the Envoy has that secret already. This is why hdsd sends only secrets that
// the configuration names.
func TestNamesWithoutAnAuthority(t *testing.T) {
	for _, release := range []string{"1.38.3", "1.40.0"} {
		for _, secret := range []string{emptySecret, pairSecret} {
			t.Run(release+"/"+secret, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				c := &composer{lab: l}
				trialOf := func(name string, rest *tlsv3.CertificateValidationContext) *trial {
					return c.add("UpstreamTlsContext", "combined_validation_context", name, func(s *source) {
						s.name = name
						c.secure(s, &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: combined(secret, rest)})
					})
				}
				first, names := trialOf("first", &tlsv3.CertificateValidationContext{}), trialOf("names", named("lab.test"))
				if sent := names.translate(); len(sent.clusters) > 0 {
					t.Errorf("a secret that is not configured is sent: %+v", sent)
				}
				s := l.subject(t, release)
				s.out <- &healthv3.HealthCheckSpecifier{Interval: durationpb.New(20e6), ClusterHealthChecks: []*healthv3.ClusterHealthCheck{first.source.raw()}}
				Eventually(t, patience, "the secret to be there", func() bool { return s.healthy("first") })
				s.out <- &healthv3.HealthCheckSpecifier{Interval: durationpb.New(20e6), ClusterHealthChecks: []*healthv3.ClusterHealthCheck{names.source.raw()}}
				Eventually(t, patience, "the Envoy to end", func() bool { return !s.Alive() })
			})
		}
	}
}
