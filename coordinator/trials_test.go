//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/health"
	"hdsd/machine"
	"hdsd/source/sample"
)

// restless is longer than the calm that a suspect waits for.
const restless = 2*grace + 2*report

// checkersWith returns the checkers with a text in their specifiers.
func (l *lab) checkersWith(text string) []string {
	var who []string
	for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
		if k := l.checkers[id]; k.spec != nil && strings.Contains(k.spec.Message().String(), text) {
			who = append(who, id)
		}
	}
	return who
}

// die replaces the process of a checker by another with its id.
func (l *lab) die(id string) {
	l.t.Helper()
	l.lose(id)
	l.pass(report)
	l.join(id)
}

// single returns the only checker of a list.
func (l *lab) single(who []string) string {
	l.t.Helper()
	if len(who) != 1 {
		l.t.Fatalf("%v have it, want one", who)
	}
	return who[0]
}

// canaryOf returns the canary of a cluster; empty without a trial.
func (l *lab) canaryOf(name string) string {
	_, id, _ := strings.Cut(l.core.Rollout.Reason(name), "first, now to ")
	return id
}

func (l *lab) verdict(cluster, address string) health.Verdict {
	l.t.Helper()
	return l.queryEndpoint(cluster, address).Verdict
}

func TestNewClusterGoesToCanaryFirst(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.setClusters(web("web", address1), withPath("db", "/db", address2))
	canary := l.single(l.checkersOf(address2))
	if reason := l.verdict("db", address2).Reason; !strings.Contains(reason, "goes to one checker first, now to "+canary) {
		t.Errorf("meanwhile the reason is %q", reason)
	}
	l.pass(10 * report)
	if who := l.checkersOf(address2); len(who) != 3 {
		t.Errorf("%v check it in the end, want three", who)
	}
	l.wantPublished("db", address2, health.Healthy)
	l.wantTransitions(2)
	if n := l.believed("db", address2); n != 3 {
		t.Errorf("%d votes count in the end, want 3", n)
	}
}

// TestTrialEndsWithSilence covers a canary that falls silent on an open stream after it accepted: another
// checker is the next canary. It covers newcomers too.
func TestTrialEndsWithSilence(t *testing.T) {
	for cluster, begin := range map[string]func(*lab){
		"db": func(l *lab) {
			l.setClusters(append(slices.Clone(l.sets[0].Clusters), withPath("db", "/db", address2))...)
		},
		"web0": func(l *lab) { // newcomers of another build
			for _, id := range []string{"n0a", "n1b"} {
				l.connect(health.Checker{
					ID: id, Version: "envoy/1.41.0", Locality: health.Locality{Region: "eu", Zone: "a"},
					Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}},
				})
			}
			l.step(machine.Tick{})
		},
	} {
		l, _ := newProbationLab(t)
		begin(l)
		canary := l.canaryOf(cluster)
		if canary == "" {
			t.Fatalf("nobody tries %s", cluster)
		}
		l.report(canary)
		l.checkers[canary].rejects = true // it says nothing any more
		l.pass(20 * report)
		if next := l.canaryOf(cluster); next == canary {
			t.Errorf("%s is still tried at %s, which is silent", cluster, canary)
		}
		l.pass(40 * report)
		if reason := l.core.Rollout.Reason(cluster); reason != "" {
			t.Errorf("%s is not proven in the end: %s", cluster, reason)
		}
	}
}

// TestLaggingCheckers covers checkers with an earlier version of a cluster, with a part of it and without it.
// A canary, and a checker with more than its share, lack nothing.
func TestLaggingCheckers(t *testing.T) {
	changes := map[string][]*sourceCluster{
		"new":     {web("web", address1), withPath("db", "/db", address2)},
		"changed": {withPath("web", "/other", address1)},
		"grown":   {web("web", address1, "[2001:db8::1]:80")},
	}
	for name, clusters := range changes {
		l := newSettledLab(t, web("web", address1))
		if who := l.laggingCheckers(); len(who) > 0 {
			t.Errorf("%s: %v are behind a plan that all have", name, who)
		}
		l.setClusters(clusters...)
		if who := l.laggingCheckers(); len(who) != 2 || slices.Contains(who, l.canaryOf(clusters[len(clusters)-1].Name)) {
			t.Errorf("%s: %v are behind, want all but the canary", name, who)
		}
		l.pass(10 * report)
		if who := l.laggingCheckers(); len(who) > 0 {
			t.Errorf("%s: %v are behind in the end", name, who)
		}
	}
}

// TestChangeGoesToCanaryFirst covers the other checkers: they keep the previous version, and their votes
// count.
func TestChangeGoesToCanaryFirst(t *testing.T) {
	l := newSettledLab(t, web("web", address1, address2))
	l.setClusters(withPath("web", "/other", address1, address2))
	l.single(l.checkersWith("/other"))
	if who := l.checkersWith("/healthz"); len(who) != 2 {
		t.Errorf("%v have what it was before, want two", who)
	}
	if n := l.believed("web", address1); n != 2 {
		t.Errorf("%d votes count meanwhile, want 2", n)
	}
	l.pass(10 * report)
	if who := l.checkersWith("/other"); len(who) != 3 {
		t.Errorf("%v have the change in the end", who)
	}
	if n := l.believed("web", address1); n != 3 {
		t.Errorf("%d votes count in the end, want 3", n)
	}
	l.wantTransitions(2)
}

func TestPlainEndpointsNeedNoTrial(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.setClusters(web("web", address1, address2, "[2001:db8::1]:80"))
	if who := l.checkersOf(address2); len(who) != 3 {
		t.Errorf("%v check another address at once, want three", who)
	}
	l.single(l.checkersOf("[2001:db8::1]:80")) // the first of its kind
}

// TestCanaryGetsEachShape covers checkers with a part of a cluster each, whose endpoints have several shapes.
func TestCanaryGetsEachShape(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 1
	addresses := make([]string, 1500)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1)
	}
	first := web("web", addresses...)
	odd := []string{addresses[10], addresses[1400]}
	l.serve(first)
	l.join("xa", "ya", "za") // all in the zone of the endpoints
	l.pass(settle + 20*report)
	second := remade(first)
	second.HealthChecks[0].GetHttpHealthCheck().Path = "/other"
	sample.Change(second, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[10].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Hostname: "www"}
	})
	onPort81(second, 1400)
	l.setClusters(second)
	canary := l.single(l.checkersWith("/other"))
	for _, address := range odd {
		if who := l.checkersOf(address); !slices.Contains(who, canary) {
			t.Errorf("%s is checked by %v, and not tried at %s", address, who, canary)
		}
	}
	l.pass(20 * report)
	for _, address := range odd {
		l.single(l.checkersOf(address))
		if n := l.believed("web", address); n != 1 {
			t.Errorf("%d votes on %s count in the end, want 1", n, address)
		}
	}
	if who := l.checkersWith("/other"); len(who) != 3 {
		t.Errorf("%v have the change in the end", who)
	}
	l.wantTransitions(len(addresses))
}

func TestTwoLossesBlockChange(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.join("da", "db")
	l.pass(10 * report)
	good := []*sourceCluster{withPath("good-1", "/good", "10.0.1.1:80"), withPath("good-2", "/good", "10.0.1.2:80")}
	start := l.now
	all := append(good, withPath("web", "/killer", address1), withPath("new", "/killer", address2))
	l.setClusters(all...)
	deaths := map[string]int{}
	for down := []string{}; l.now.Before(start.Add(200 * report)); {
		l.join(down...)
		l.pass(report / 2)
		down = l.checkersWith("/killer")
		for _, id := range down {
			for _, name := range []string{"web", "new", "good-1", "good-2"} {
				if l.canaryOf(name) == id {
					deaths[name]++
				}
			}
			l.lose(id)
		}
	}
	l.pass(10 * report)
	if deaths["web"]+deaths["new"] > 2 { // they have the same check
		t.Errorf("checkers lost: %v", deaths)
	}
	if who := l.checkersWith("/killer"); who != nil {
		t.Errorf("%v still have it", who)
	}
	for _, name := range []string{"good-1", "good-2"} {
		l.wantPublished(name, l.clusterAddress(name), health.Healthy)
		if n := l.believed(name, l.clusterAddress(name)); n != 3 {
			t.Errorf("%s: %d votes count, want 3", name, n)
		}
		if q := l.describe(name).Quarantined; len(q) > 0 {
			t.Errorf("%s is quarantined: %v", name, q)
		}
	}
	for _, name := range []string{"web", "new"} {
		q := l.describe(name).Quarantined
		if len(q) != 1 || !strings.Contains(q[0].Reason, "blocked: ") {
			t.Errorf("%s is quarantined: %v", name, q)
		}
	}
	if who := l.checkersWith("/healthz"); len(who) != 3 || l.believed("web", address1) != 3 {
		t.Errorf("%v go on with what it was before, and %d votes count", who, l.believed("web", address1))
	}
	if reason := l.verdict("new", address2).Reason; !strings.Contains(reason, "not checked yet: blocked") {
		t.Errorf("what was never sent to anyone says %q", reason)
	}
	if who := l.laggingCheckers(); len(who) > 0 {
		t.Errorf("%v are behind for what is blocked", who)
	}
	m := l.core.metrics
	if got := testutil.ToFloat64(m.rollout.blocked); got != 2 {
		t.Errorf("hdsd_canary_blocked is %g, want 2", got)
	}
	if got := testutil.ToFloat64(m.rollout.lost); got < 2 {
		t.Errorf("hdsd_canary_lost_total is %g, want 2 at least", got)
	}

	// A restart neither forgets that nor tries the good clusters again.
	l.restart()
	l.serve(all...)
	l.join("ca", "cb", "cc", "da", "db")
	if who := l.checkersWith("/good"); len(who) == 0 {
		t.Error("what was proven waits after a restart")
	}
	l.pass(settle + restless + 20*report)
	if who := l.checkersWith("/killer"); who != nil || len(l.describe("web").Quarantined) != 1 {
		t.Errorf("after a restart %v have it; quarantined: %v", who, l.describe("web").Quarantined)
	}

	// A cluster that is removed and added again is tried again.
	l.setClusters(good...)
	l.pass(report)
	l.setClusters(append(good, withPath("new", "/killer", address2))...)
	l.single(l.checkersWith("/killer"))
}

// clusterAddress is the only address of a cluster.
func (l *lab) clusterAddress(name string) string {
	return l.core.Rulings.Cluster(name).Endpoints[0].Address()
}

func TestRollingRestartBlocksNothing(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.setClusters(withPath("web", "/other", address1), web("db", address2))
	for _, id := range []string{"ca", "cb", "cc"} {
		l.die(id)
		l.pass(3 * report)
	}
	l.pass(restless + 20*report)
	if who := l.checkersWith("/other"); len(who) != 3 {
		t.Errorf("%v have the change in the end, want three", who)
	}
	if who := l.checkersOf(address2); len(who) != 3 {
		t.Errorf("%v check the new cluster, want three", who)
	}
	if got := testutil.ToFloat64(l.core.metrics.rollout.blocked); got != 0 {
		t.Errorf("%g are blocked", got)
	}
	l.wantTransitions(2)
}

func TestUnacceptedChangeIsTriedElsewhere(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.setClusters(withPath("web", "/rejected", address1))
	first := l.single(l.checkersWith("/rejected"))
	l.checkers[first].rejects = true
	l.pass(notTakenWithin)
	if k := l.checkers[first]; strings.Contains(k.spec.Message().String(), "/rejected") {
		t.Errorf("%s still has it", first)
	}
	l.checkers[first].rejects = false
	second := l.single(l.checkersWith("/rejected"))
	if second == first {
		t.Errorf("%s tries it again at once", first)
	}
	l.pass(10 * report)
	if who := l.checkersWith("/rejected"); len(who) != 3 {
		t.Errorf("%v have it once a checker has taken it, want three", who)
	}
	l.wantTransitions(1)
}

// notTakenWithin is when a trial ends that is not accepted.
const notTakenWithin = 6 * report

func TestNoTrialsWhileSettling(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	l.restart()
	l.serve(web("web", address1), web("db", address2))
	l.join("ca", "cb", "cc")
	l.replan()
	if who := l.checkersOf(address1); len(who) != 3 {
		t.Errorf("%v check what was proven before the restart, want three", who)
	}
	l.pass(settle - report)
	if who := l.checkersOf(address2); who != nil {
		t.Errorf("%v try what is new before hdsd has settled", who)
	}
	l.pass(10 * report)
	if who := l.checkersOf(address2); len(who) != 3 {
		t.Errorf("%v check the new one in the end, want three", who)
	}
}

// TestManyClustersCostFewSpecifiers covers many proven clusters, which cost a few specifiers.
func TestManyClustersCostFewSpecifiers(t *testing.T) {
	t.Run("with checks of their own", func(t *testing.T) {
		manyClusters(t, 1000, 12, func(i int) string { return fmt.Sprint("/", i) })
	})
	t.Run("with the same check", func(t *testing.T) {
		manyClusters(t, 1, 3, func(int) string { return "/healthz" })
	})
}

// manyClusters starts with 1,000 clusters, and wants a number of trials and at most a number of
// specifiers for each checker.
func manyClusters(t *testing.T, trials, specifiers int, path func(i int) string) {
	l := newLab(t)
	var clusters []*sourceCluster
	for i := range 1000 {
		clusters = append(clusters, withPath(fmt.Sprintf("cluster-%03d", i), path(i), fmt.Sprintf("10.1.%d.%d:80", i/250, i%250+1)))
	}
	l.serve(clusters...)
	l.join("ca", "cb", "cc")
	l.pass(settle + 30*report)
	for id, k := range l.checkers {
		if len(k.spec.Order) != 1000 {
			t.Errorf("%s checks %d clusters, want all", id, len(k.spec.Order))
		}
		if l.sent[id] > specifiers {
			t.Errorf("%s was sent %d specifiers, want at most %d", id, l.sent[id], specifiers)
		}
	}
	if got := testutil.ToFloat64(l.core.metrics.rollout.proven); got != float64(trials) {
		t.Errorf("hdsd_canary_proven_total is %g, want %d", got, trials)
	}
	if got := testutil.ToFloat64(l.core.metrics.rollout.trials); got != 0 {
		t.Errorf("hdsd_canary_trials is %g in the end", got)
	}
}

// TestSpecifiersWaitForFollowing changes the plan again and again: a checker that does not follow gets no
// more specifiers, except that it loses endpoints that it must not have at once.
func TestSpecifiersWaitForFollowing(t *testing.T) {
	l := newSettledLab(t, web("web", address1))
	slow := l.checkers["ca"]
	slow.rejects = true
	sent := l.sent["ca"]
	for i := range 6 {
		l.setClusters(web("web", address1, fmt.Sprintf("10.9.0.%d:80", i)))
		l.pass(report / 2)
	}
	if n := l.sent["ca"] - sent; n != 1 {
		t.Errorf("it was sent %d specifiers, want one", n)
	}
	if !slices.Contains(l.laggingCheckers(), "ca") {
		t.Error("it is not said to be behind")
	}
	slow.rejects = false
	l.pass(2 * report)
	if n := l.sent["ca"] - sent; n != 2 || !slices.Contains(slow.spec.Addresses, "10.9.0.5:80") || slices.Contains(slow.spec.Addresses, "10.9.0.4:80") {
		t.Errorf("it was sent %d specifiers, the last with %v; want two, and what is there now", n, slow.spec.Addresses)
	}
	if who := l.laggingCheckers(); len(who) > 0 {
		t.Errorf("%v are behind in the end", who)
	}
}

// TestBuildsAreTriedApart covers a version that one build survives and another does not.
func TestBuildsAreTriedApart(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	for i, version := range []string{"envoy/1.40.0", "envoy/1.40.0", "envoy/1.36.4"} {
		l.connect(health.Checker{
			ID: string(rune('a' + i)), Version: version, Locality: health.Locality{Zone: string(rune('a' + i))},
			Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}},
		})
	}
	l.pass(settle + 20*report)
	l.setClusters(withPath("web", "/other", address1))
	first := l.single(l.checkersWith("/other"))
	l.pass(20 * report)
	if who := l.checkersWith("/other"); len(who) != 3 {
		t.Errorf("%v have it in the end, want three", who)
	}
	proofs := 0
	for _, stored := range l.trials {
		proofs += len(stored.Proven)
	}
	if proofs != 4 {
		t.Errorf("%d proofs, want one for each of two builds and versions", proofs)
	}
	if got := testutil.ToFloat64(l.core.metrics.rollout.proven); got != 4 {
		t.Errorf("%g trials, %s first: want one for each of two builds and versions", got, first)
	}
}
