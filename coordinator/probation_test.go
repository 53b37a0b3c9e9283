//go:build !race || soak

package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/health"
)

// newProbationLab is a lab with probation, and 6 honest checkers in three zones that check 600
// endpoints.
func newProbationLab(t testing.TB) (*lab, []string) {
	t.Helper()
	l := newLab(t)
	l.rules.Checkers.Probation = durationpb.New(30 * time.Second)
	addresses := addressList(600)
	var all []*sourceCluster
	for i := range 6 {
		all = append(all, web(fmt.Sprint("web", i), addresses[100*i:100*i+100]...))
	}
	l.serve(all...)
	l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c")
	l.pass(settle + 10*report)
	if n := l.figures().Probation; n > 0 {
		t.Fatalf("%d of a fleet that starts together are on probation", n)
	}
	return l, addresses
}

// reportDown makes checkers report all endpoints down.
func (l *lab) reportDown(addresses []string, ids ...string) {
	for _, id := range ids {
		l.checkers[id].blind = map[string]health.Status{}
		for _, address := range addresses {
			l.checkers[id].blind[address] = health.Unhealthy
		}
	}
}

// countDown returns the number of endpoints that are down.
func (l *lab) countDown(addresses []string) (n int) {
	for i, address := range addresses {
		if l.published(fmt.Sprint("web", i/100), address).Down() {
			n++
		}
	}
	return n
}

// TestNewcomersTakeNothingDown covers three checkers that return under new ids with a weight of a million,
// and fifty that stay. They report all of their endpoints down.
func TestNewcomersTakeNothingDown(t *testing.T) {
	for name, test := range map[string]struct {
		count  int
		weight float64
		every  int // rounds, after which they come under other ids
		honest int // rounds, in which they say what is true
		build  string
		able   health.Abilities
	}{
		"three under ever new ids":             {count: 3, weight: 1e6, every: 1},
		"three that are honest at first":       {count: 3, weight: 1e6, every: 25, honest: 10},
		"fifty":                                {count: 50, every: 100},
		"fifty that are honest at first":       {count: 50, every: 25, honest: 10},
		"a hundred that are honest for longer": {count: 100, every: 100, honest: 20},
		"fifty of another version":             {count: 50, every: 100, build: "envoy/1.41.0"},
		"fifty of another version, honest":     {count: 50, every: 100, honest: 20, build: "envoy/1.41.0"},
		"fifty of ever new versions":           {count: 50, every: 10, build: "envoy/%d"},
		"fifty with other abilities":           {count: 50, every: 100, able: health.Abilities{health.HTTP: {}}},
		"fifty with more abilities":            {count: 50, every: 100, able: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}, "fly": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			l, addresses := newProbationLab(t)
			before, digest := len(l.transitions), l.digest()
			var present []string
			for round := range 40 {
				if round%test.every == 0 {
					for _, id := range present {
						l.lose(id)
					}
					present = nil
					for i := range test.count {
						id := fmt.Sprintf("x%d-%d%c", round, i, 'a'+rune(i%3))
						k := health.Checker{
							ID: id, Version: "envoy/1.40.0", Weight: test.weight, Locality: health.Locality{Region: "eu", Zone: id[len(id)-1:]},
							Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}}, // the build of the others
						}
						if test.able != nil {
							k.Abilities = test.able
						}
						if k.Version = cmp.Or(test.build, k.Version); strings.Contains(k.Version, "%") {
							k.Version = fmt.Sprintf(k.Version, round)
						}
						l.connect(k)
						present = append(present, id)
					}
				}
				if round%test.every == test.honest {
					l.reportDown(addresses, present...)
				}
				l.pass(report)
			}
			l.wantTransitions(before)
			if n := l.countDown(addresses); n > 0 {
				t.Errorf("%d of 600 healthy endpoints are down", n)
			}
			for i := range addresses {
				for _, o := range l.queryEndpoint(fmt.Sprint("web", i/100), addresses[i]).Verdict.Observations {
					if strings.HasPrefix(o.Checker, "x") && o.Disbelieved != "on probation" {
						t.Fatalf("the vote of %s counts: %+v", o.Checker, o)
					}
				}
			}
			if l.digest() != digest {
				t.Error("newcomers have changed the plan")
			}
			if n := l.figures().Probation; n != test.count {
				t.Errorf("%d are on probation, want %d", n, test.count)
			}
			if got := l.checkers[present[0]].spec; got == nil || len(got.Order) == 0 || len(got.Order) > 300 {
				t.Errorf("a newcomer probes %v endpoints", got)
			}
		})
	}
}

// TestAgreeingNewcomerIsEstablished covers all builds: the newcomer gets seats, and its votes count.
func TestAgreeingNewcomerIsEstablished(t *testing.T) {
	for _, version := range []string{"envoy/1.40.0", "envoy/1.41.0"} {
		t.Run(version, func(t *testing.T) { agreeing(t, version) })
	}
}

func agreeing(t *testing.T, version string) {
	l, addresses := newProbationLab(t)
	before := len(l.transitions)
	for _, id := range []string{"n0a", "n1b", "n2c"} {
		l.connect(health.Checker{
			ID: id, Version: version, Locality: health.Locality{Region: "eu", Zone: id[len(id)-1:]},
			Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}},
		})
	}
	began := l.now
	l.pass(10 * report)
	if n := l.figures().Probation; n != 3 || len(l.plan["n0a"]) > 0 {
		t.Errorf("%d are on probation after 10 s, and n0a has %d seats", n, len(l.plan["n0a"]))
	}
	shown := 0
	for i := range addresses {
		for _, o := range l.queryEndpoint(fmt.Sprint("web", i/100), addresses[i]).Verdict.Observations {
			if strings.HasPrefix(o.Checker, "n") && o.Disbelieved == "on probation" {
				shown++
			}
		}
	}
	if shown < 300 {
		t.Errorf("%d votes of newcomers are shown", shown)
	}
	for l.figures().Probation > 0 && l.now.Sub(began) < time.Minute {
		l.pass(report / 2)
	}
	if took := l.now.Sub(began); took < 30*time.Second || took > 33*time.Second {
		t.Errorf("they are established after %v", took)
	}
	l.pass(10 * report)
	for _, id := range []string{"n0a", "n1b", "n2c"} {
		if n := l.load(id); n < 150 || n > 300 {
			t.Errorf("%s has %d endpoints", id, n)
		}
	}
	l.wantTransitions(before)
	l.truth[addresses[0]] = health.Unhealthy
	l.pass(10 * report)
	l.wantPublished("web0", addresses[0], health.Unhealthy)
}

// TestRestartKeepsEstablished covers that the store has the established checkers with their certificates.
func TestRestartKeepsEstablished(t *testing.T) {
	l, addresses := newProbationLab(t)
	clusters := slices.Clone(l.sets[0].Clusters)
	digest := l.digest()
	l.restart()
	l.serve(clusters...)
	l.join("x0a", "x1b", "x2c") // the first to come are strangers
	l.reportDown(addresses, "x0a", "x1b", "x2c")
	l.pass(report)
	l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c")
	l.pass(settle + 3*report)
	if n := l.figures().Probation; n != 3 {
		t.Errorf("%d are on probation after a restart, want 3", n)
	}
	if n := l.countDown(addresses); n > 0 || l.digest() != digest {
		t.Errorf("%d are down", n)
	}
	known := l.established["c0a"]
	if len(l.established) != 6 || known.Identity != "" || known.Seen.IsZero() {
		t.Errorf("stored are %v", l.established)
	}
}

// TestOtherCertificateIsNewcomer covers the same id and another one.
func TestOtherCertificateIsNewcomer(t *testing.T) {
	l, _ := newProbationLab(t)
	honest := l.checkers["c0a"].Checker
	l.lose("c0a")
	l.pass(report)
	honest.Identity = "spiffe://prod/thief"
	l.connect(honest)
	l.pass(report)
	if !l.core.Fleet.OnProbation("c0a") {
		t.Error("it is established under the id of another")
	}
	l.lose("c0a")
	honest.Identity = ""
	l.connect(honest)
	l.pass(report)
	if l.core.Fleet.OnProbation("c0a") {
		t.Error("the owner has to wait when it comes back")
	}
}

// TestReplacedFleet covers the loss of all established checkers: the newcomers decide as fast.
func TestReplacedFleet(t *testing.T) {
	l, addresses := newProbationLab(t)
	l.join("n0a", "n1b", "n2c", "n3a", "n4b", "n5c")
	l.pass(5 * report)
	for id := range maps.Clone(l.checkers) {
		if id[0] == 'c' {
			l.lose(id)
		}
	}
	for _, address := range addresses[:10] {
		l.truth[address] = health.Unhealthy
	}
	l.pass(10 * report)
	for _, address := range addresses[:10] {
		l.wantPublished("web0", address, health.Unhealthy)
	}
	if n := l.countDown(addresses); n != 10 {
		t.Errorf("%d are down, want 10", n)
	}
	l.pass(grace + 5*report)
	if n := l.figures().Probation; n > 0 {
		t.Errorf("%d are on probation", n)
	}
}

// TestNewcomersCheckAlone covers endpoints that only newcomers are able to check: their votes count there.
func TestNewcomersCheckAlone(t *testing.T) {
	l, addresses := newProbationLab(t)
	l.rules.Policies = policiesOf("far", 2, "d")
	l.reconfigure()
	l.setClusters(append(slices.Clone(l.sets[0].Clusters), web("far", "10.9.0.1:80"))...)
	l.join("n0d", "n1d")
	l.pass(10 * report)
	l.wantPublished("far", "10.9.0.1:80", health.Healthy)
	if n := l.figures().Stranded; n != 0 {
		t.Errorf("%d are stranded", n)
	}
	l.truth["10.9.0.1:80"] = health.Unhealthy
	l.pass(10 * report)
	l.wantPublished("far", "10.9.0.1:80", health.Unhealthy)
	l.truth["10.9.0.1:80"] = health.Healthy
	l.pass(40 * report)
	if n := l.figures().Probation; n > 0 || len(l.plan["n0d"]) == 0 {
		t.Errorf("%d are on probation", n)
	}
	l.wantPublished("far", "10.9.0.1:80", health.Healthy)
	if n := l.countDown(addresses); n > 0 {
		t.Errorf("%d are down", n)
	}
}

// TestSilentEstablishedCheckerBlocksNobody covers the only established checker, which is connected and
// rejects its specifier.
func TestSilentEstablishedCheckerBlocksNobody(t *testing.T) {
	l := newLab(t)
	l.rules.Checkers.Probation = durationpb.New(30 * time.Second)
	addresses := addressList(20)
	l.serve(web("web0", addresses...))
	l.join("c0a")
	l.pass(settle + 40*report)
	l.checkers["c0a"].rejects = true
	l.pass(20 * report)
	l.join("n0a", "n1a")
	l.truth[addresses[0]] = health.Unhealthy
	l.pass(20 * report)
	l.wantPublished("web0", addresses[0], health.Unhealthy)
	if n := l.figures().Probation; n > 0 {
		t.Errorf("%d wait for a checker that reports nothing", n)
	}
}
