package envoy

import (
	"slices"
	"testing"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/hds/specifier"
	"hdsd/health"
)

// TestRaw sends hostile values to a real Envoy as they are, to know which end
// or silence it: those known to do harm one by one (with -short, one of each field), the others together. With -full
// nothing is taken as known.
func TestRaw(t *testing.T) {
	l := newLab(t)
	trials := l.trials(t)
	checkNames(t, trials)
	raw := func(c *trial) []*healthv3.ClusterHealthCheck { return []*healthv3.ClusterHealthCheck{c.source.raw()} }
	if *full {
		writeEffects(t, trials, l.learn(t, "", nil, slices.Collect(slices.Chunk(trials, 24)), raw))
		return
	}
	known := readEffects(t)
	var groups [][]*trial
	var harmless []*trial
	seen := map[string]bool{}
	for _, c := range trials {
		if harm := known[c.name()]; testing.Short() && harm != fine {
			if seen[c.root+c.field] {
				continue
			}
			seen[c.root+c.field] = harm == killed
		}
		switch known[c.name()] {
		case killed, silenced, blinded:
			groups = append(groups, []*trial{c})
		case fine:
			harmless = append(harmless, c)
		default:
			t.Errorf("%s was never measured; run with -full", c.name())
		}
	}
	groups = slices.AppendSeq(groups, slices.Chunk(harmless, 150))
	for c, e := range l.learn(t, "", known, groups, raw) {
		if e != known[c.name()] {
			t.Errorf("%s: %s, and was %s when it was last measured; run with -full", c.name(), e, known[c.name()])
		}
	}
}

// TestSafe sends what hdsd makes of the same values to the same Envoy, which
// lives and goes on checking the good clusters.
func TestSafe(t *testing.T) {
	releases := []string{Version}
	if *full {
		releases = append(releases, "1.39.3", "1.38.3", "1.37.0", "1.36.4")
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			l := newLab(t)
			sent := l.sent(t, release, l.trials(t))
			for c, e := range l.learn(t, release, nil, slices.Collect(slices.Chunk(sent, 60)), func(c *trial) []*healthv3.ClusterHealthCheck { return c.translate().clusters }) {
				if e != fine {
					t.Errorf("%s through hdsd: the Envoy is %s", c.name(), e)
				}
			}
			t.Logf("%d of the values are sent to Envoy %s", len(sent), release)
		})
	}
}

// sent selects what hdsd would send to the checkers of a release.
func (l *lab) sent(t *testing.T, release string, trials []*trial) []*trial {
	t.Helper()
	subject := l.subject(t, release)
	checker, err := specifier.CheckerFromNode(subject.node, subject.capability)
	if err != nil {
		t.Fatal(err)
	}
	if want := "envoy/" + release; checker.Version != want || !checker.Abilities.Has(health.HTTP, health.TCP, "envoy.transport_sockets.tls") {
		t.Fatalf("the checker says that it is %q with %v, want %q that knows HTTP, TCP and TLS", checker.Version, checker.Abilities, want)
	}
	var sent []*trial
	for _, c := range trials {
		if out := c.translate(); len(out.clusters) > 0 && checker.Abilities.Has(out.needs...) {
			sent = append(sent, c)
		}
	}
	return sent
}
