package envoy

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// releases are those that are sent the samples.
var releases = []string{"1.36.4", "1.38.3", "1.40.0"}

// options say what the checkers of the lab have.
func (l *lab) options() specifier.Options {
	return specifier.Options{Files: map[string]bool{l.bench.File: true}, SDSSecrets: map[string]bool{AuthoritySecret: true, PairSecret: true}}
}

// translate makes of a sample what hdsd does.
func (l *lab) translate(name string, s *Sample) *specifier.Cluster {
	return specifier.Translate(name, s.Config, s.Assignment, []*corev3.HealthCheck{s.Check}, l.options())
}

// TestEnvoysLiveWithWhatIsAllowed sends what hdsd makes of all samples that are allowed: the
// Envoy takes it, lives, and goes on checking the good clusters.
func TestEnvoysLiveWithWhatIsAllowed(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			subject := l.subject(t, release)
			abilities := subject.abilities(t, release)
			var clusters []*specifier.Cluster
			for i, s := range Samples(t, l.bench) {
				if c := l.translate(fmt.Sprintf("sample-%d", i), &s); s.Outcome == Sent && abilities.Has(c.Needs...) {
					clusters = append(clusters, c)
				}
			}
			if len(clusters) < 50 {
				t.Fatalf("only %d samples are sent", len(clusters))
			}
			for chunk := range slices.Chunk(clusters, 60) {
				sent := build(chunk...).Message().GetClusterHealthChecks()
				if problem := subject.try(t, sent); problem != "" {
					t.Errorf("with %q to %q: %s", sent[0].GetClusterName(), sent[len(sent)-1].GetClusterName(), problem)
				}
			}
		})
	}
}

// abilities are those of the Envoy, which is of a release.
func (s *subject) abilities(t *testing.T, release string) health.Abilities {
	t.Helper()
	checker, err := specifier.CheckerFromNode(s.node, s.capability)
	if err != nil {
		t.Fatal(err)
	}
	if want := "envoy/" + release; checker.Version != want || !checker.Abilities.Has(health.HTTP, health.TCP, "envoy.transport_sockets.tls") {
		t.Fatalf("the checker says that it is %q with %v, want %q that knows HTTP, TCP and TLS", checker.Version, checker.Abilities, want)
	}
	return checker.Abilities
}

// TestEnvoysRejectInSilence sends, as it is, what is known to be rejected: the Envoy counts an
// error and says nothing. So hdsd has to test it.
func TestEnvoysRejectInSilence(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			subject := l.subject(t, release)
			for i, s := range Samples(t, l.bench) {
				if s.Outcome != Rejected {
					continue
				}
				if problem := subject.try(t, []*healthv3.ClusterHealthCheck{raw(fmt.Sprintf("sample-%d", i), &s)}); problem != rejects {
					t.Errorf("%s: %q", s.Text, problem)
				}
			}
		})
	}
}

// raw puts what a source says into a specifier as it stands.
func raw(name string, s *Sample) *healthv3.ClusterHealthCheck {
	c := &healthv3.ClusterHealthCheck{ClusterName: name, HealthChecks: []*corev3.HealthCheck{s.Check}}
	for _, locality := range s.Assignment.GetEndpoints() {
		group := &healthv3.LocalityEndpoints{Locality: locality.GetLocality()}
		for _, lb := range locality.GetLbEndpoints() {
			group.Endpoints = append(group.Endpoints, lb.GetEndpoint())
		}
		c.LocalityEndpoints = append(c.LocalityEndpoints, group)
	}
	return c
}
