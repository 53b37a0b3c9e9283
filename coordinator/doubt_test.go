//go:build !race || soak

package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/aggregate"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// cutOff lets the picked checkers reach no address.
func (l *lab) cutOff(addresses []string, who func(id string) bool) {
	for id, k := range l.checkers {
		if !who(id) {
			continue
		}
		k.blind = map[string]health.Status{}
		for _, address := range addresses {
			k.blind[address] = health.Timeout
		}
	}
}

func (l *lab) reconnectAll() {
	for _, k := range l.checkers {
		k.blind = nil
	}
}

func (l *lab) wantDoubted(checkers, paths float64) {
	l.t.Helper()
	m := l.core.metrics
	if got := testutil.ToFloat64(m.votes.doubtedCheckers); got != checkers {
		l.t.Errorf("hdsd_checkers_doubted is %g, want %g", got, checkers)
	}
	if got := testutil.ToFloat64(m.votes.doubtedPaths); got != paths {
		l.t.Errorf("hdsd_paths_doubted is %g, want %g", got, paths)
	}
}

// TestCutOffCheckersTakeNothingDown covers two of five checkers that reach no endpoint, and outvote the third
// at many endpoints.
func TestCutOffCheckersTakeNothingDown(t *testing.T) {
	l, addresses := fleetOf(t, 5, 60)
	before := len(l.transitions)
	cut := []string{"c0a", "c1b"}
	outvoted := 0
	for _, address := range addresses {
		if who := l.checkersOf(address); slices.Contains(who, cut[0]) && slices.Contains(who, cut[1]) {
			outvoted++
		}
	}
	if outvoted == 0 {
		t.Fatal("nobody is outvoted")
	}
	l.cutOff(addresses, func(id string) bool { return slices.Contains(cut, id) })
	l.pass(30 * time.Second)
	l.wantTransitions(before)
	if l.core.Aggregator.DoubtReason(cut[0]) == "" || l.core.Aggregator.DoubtReason(cut[1]) == "" {
		t.Error("they are believed")
	}
	if got := testutil.ToFloat64(l.core.metrics.votes.doubtedCheckers); got != 2 {
		t.Errorf("hdsd_checkers_doubted is %g, want 2", got)
	}
	for _, address := range addresses {
		who := slices.DeleteFunc(l.checkersOf(address), func(id string) bool { return slices.Contains(cut, id) })
		if len(who) < 2 {
			t.Errorf("%s is checked by none but %v who are believed", address, who)
		}
	}
	l.reconnectAll()
	l.pass(10 * time.Second)
	l.wantTransitions(before)
	l.wantDoubted(0, 0)
}

// TestCutPathTakesNothingDown covers a zone that only its own checkers reach. Each endpoint gets a second
// checker of the zone.
func TestCutPathTakesNothingDown(t *testing.T) {
	l, addresses := fleetOf(t, 6, 60)
	before := len(l.transitions)
	l.cutOff(addresses, func(id string) bool { return !strings.HasSuffix(id, "a") })
	l.pass(30 * time.Second)
	l.wantTransitions(before)
	if testutil.ToFloat64(l.core.metrics.votes.doubtedPaths) == 0 {
		t.Error("no path is doubted")
	}
	if n := l.extraCheckers(3, addresses); n != len(addresses) {
		t.Errorf("%d second checkers, want one for each of %d endpoints", n, len(addresses))
	}
	for _, k := range l.checkers {
		if cuts := l.core.Aggregator.CutPaths(k.Locality); (len(cuts) > 0) == (k.Locality.Zone == "a") || len(cuts) > 0 && cuts[0].To != "eu/a" {
			t.Errorf("of %s these are cut: %+v", k.ID, cuts)
		}
	}
	wantPaths(t, l.core.Aggregator.Paths(), "eu/a")
	l.reconnectAll()
	l.pass(10 * time.Second)
	l.wantTransitions(before)
	l.wantDoubted(0, 0)
	wantPaths(t, l.core.Aggregator.Paths(), "none")
	if n := l.extraCheckers(3, addresses); n > 0 {
		t.Errorf("%d second checkers are left", n)
	}
}

// wantPaths holds that the votes over the paths to one zone are contradicted and not
// believed, and that all agree over the others.
func wantPaths(t *testing.T, paths []aggregate.Path, cut string) {
	t.Helper()
	if len(paths) == 0 {
		t.Error("no vote took a path between zones")
	}
	for _, p := range paths {
		if p.From == p.To || p.Votes == 0 {
			t.Errorf("no path: %+v", p)
		}
		if all := p.Contradicted == p.Votes && p.Downs == p.Votes && p.CutReason != ""; all != (p.To == cut) || p.To != cut && (p.Downs > 0 || p.CutReason != "") {
			t.Errorf("%+v, while the paths to %s are cut", p, cut)
		}
	}
}

// TestCutPathIsLoggedOnce covers clusters with separate verdicts: the log has each path once, and each
// checker has a zone once.
func TestCutPathIsLoggedOnce(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{{ClusterNameGlob: "other", Verdict: &configv1.Verdict{Staleness: durationpb.New(20 * time.Second)}}}
	var log strings.Builder
	l.core.eventLog.log = zerolog.New(&log)
	var addresses [2][]string
	for i := range 160 {
		addresses[i%2] = append(addresses[i%2], fmt.Sprintf("10.0.0.%d:80", 1+i))
	}
	l.serve(web("web", addresses[0]...), web("other", addresses[1]...))
	l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c")
	l.pass(settle + 10*time.Second)
	l.cutOff(slices.Concat(addresses[:]...), func(id string) bool { return !strings.HasSuffix(id, "a") })
	l.pass(30 * time.Second)
	l.wantDoubted(0, 3)
	for _, k := range l.checkers {
		cuts := l.core.Aggregator.CutPaths(k.Locality)
		if k.Locality.Zone == "a" {
			if len(cuts) > 0 {
				t.Errorf("of %s these are cut: %+v", k.ID, cuts)
			}
		} else if len(cuts) != 1 || cuts[0].To != "eu/a" || cuts[0].From != "eu/"+k.Locality.Zone {
			t.Errorf("of %s these are cut: %+v, want one, its own to eu/a", k.ID, cuts)
		}
	}
	l.reconnectAll()
	l.pass(10 * time.Second)
	l.wantDoubted(0, 0)
	for _, event := range []string{"path_doubted", "path_believed"} {
		for _, from := range []string{"eu/b", "eu/c", "elsewhere"} {
			if got := strings.Count(log.String(), `"event":"`+event+`","from":"`+from+`","to":"eu/a"`); got != 1 {
				t.Errorf("%s from %s was told %d times", event, from, got)
			}
		}
	}
}

// TestRulesByCluster covers two clusters with the same trouble. One has a rule of its own, which a reload
// removes.
func TestRulesByCluster(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{{ClusterNameGlob: "pay-*", Verdict: &configv1.Verdict{Rule: configv1.Rule_ANY}}}
	const pay, other = "10.0.0.1:80", "10.0.0.2:80"
	l.serve(web("pay-in", pay), web("web", other))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	l.checkers["2b"].blind = map[string]health.Status{pay: health.Unhealthy, other: health.Unhealthy}
	l.pass(10 * time.Second)
	l.wantPublished("pay-in", pay, health.Unhealthy)
	l.wantPublished("web", other, health.Healthy)
	if reason := l.verdict("pay-in", pay).Reason; !strings.Contains(reason, "1 of 3 checkers says UNHEALTHY; one down is enough") {
		t.Errorf("the reason is %q", reason)
	}
	l.reload(func(c *configv1.Config) { c.Policies = nil })
	l.pass(2 * time.Second)
	l.wantPublished("pay-in", pay, health.Healthy)
}

// TestHealthLapses covers endpoints without votes.
func TestHealthLapses(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{
		{ClusterNameGlob: "down", Verdict: &configv1.Verdict{WhenUnobserved: configv1.WhenUnobserved_UNHEALTHY}},
		{ClusterNameGlob: "unknown", Verdict: &configv1.Verdict{WhenUnobserved: configv1.WhenUnobserved_UNKNOWN}},
	}
	const held, down, unknown = "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"
	clusters := []*sourceCluster{web("held", held), web("down", down), web("unknown", unknown)}
	l.serve(clusters...)
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	for _, each := range []struct{ cluster, address string }{{"held", held}, {"down", down}, {"unknown", unknown}} {
		l.wantPublished(each.cluster, each.address, health.Healthy)
	}

	// hdsd restarts: nothing lapses before those who check it had time to come back.
	l.restart()
	l.serve(clusters...)
	l.pass(settle - time.Second)
	l.wantPublished("down", down, health.Healthy)
	l.join("1a", "2b", "3c")
	l.pass(10 * time.Second)
	l.wantPublished("down", down, health.Healthy)

	for _, id := range []string{"1a", "2b", "3c"} {
		l.lose(id)
	}
	l.pass(time.Minute)
	l.wantPublished("held", held, health.Healthy)
	l.wantPublished("down", down, health.Unhealthy)
	l.wantPublished("unknown", unknown, health.Unknown)
}
