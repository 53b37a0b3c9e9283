package envoy

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/specifier"
)

// secretService gives the secrets that are named here, and no others.
type secretService struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
}

var labSecrets = map[string]*tlsv3.Secret{
	AuthoritySecret: {Name: AuthoritySecret, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(certificate)}}},
	PairSecret: {Name: PairSecret, Type: &tlsv3.Secret_TlsCertificate{
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

// combined takes the authority by SDS, and the rest from the source.
func combined(secret string, rest *tlsv3.CertificateValidationContext) *tlsv3.CommonTlsContext {
	return &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         rest,
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: secret, SdsConfig: SecretsFrom("hdsd")},
		},
	}}
}

// named demands a name of the endpoint's certificate.
func named(name string) *tlsv3.CertificateValidationContext {
	return &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
	}}}
}

// demanding is a cluster whose source demands a name of the endpoint's certificate, and takes the
// authority by SDS.
func (l *lab) demanding(cluster, name string, sds *corev3.ConfigSource, o specifier.Options) *specifier.Cluster {
	context := combined(AuthoritySecret, named(name))
	context.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().SdsConfig = sds
	socket := tlsSocket(&tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: context})
	return specifier.Translate(cluster, &clusterv3.Cluster{TransportSocket: socket}, &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: l.bench.Secure}}},
	}}}, []*corev3.HealthCheck{SoundCheck()}, o)
}

// TestNamesWithTheAuthorityBySDS sends clusters whose source says which names an
// endpoint's certificate may have, while the authority comes by SDS, and the same with sources
// of secrets that only data planes have: by ADS, or in a file. Releases that get this from hdsd
// test the names.
func TestNamesWithTheAuthorityBySDS(t *testing.T) {
	ads := &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	file := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/nowhere/secret.yaml"}}}
	for release, capable := range map[string]bool{"1.36.4": false, "1.38.3": true, "1.40.0": true} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s := l.subject(t, release)
			abilities, replaced := s.abilities(t, release), specifier.Options{SDSConfig: SecretsFrom("hdsd")}
			for _, pair := range [][2]*specifier.Cluster{
				{l.demanding("right", "lab.test", SecretsFrom("hdsd"), l.options()), l.demanding("wrong", "other.test", SecretsFrom("hdsd"), l.options())},
				{l.demanding("right-elsewhere", "lab.test", ads, replaced), l.demanding("wrong-elsewhere", "other.test", file, replaced)},
			} {
				for _, c := range pair {
					if len(c.Endpoints) != 1 || abilities.Has(c.Needs...) != capable {
						t.Fatalf("%s excludes %v and needs %v; the checker has %v", c.Name, c.Excluded, c.Needs, abilities)
					}
				}
				if capable {
					s.distinguishes(t, build(pair[0]).Message().GetClusterHealthChecks()[0], build(pair[1]).Message().GetClusterHealthChecks()[0])
				}
			}
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
	if status := s.entry(wrong.GetClusterName()); !s.Alive() || status != corev3.HealthStatus_UNHEALTHY {
		t.Errorf("alive: %v; an endpoint with the wrong name is %v", s.Alive(), status)
	}
}
