//go:build !race || soak

package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/encoding/protojson"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

func verdictOf(t *testing.T, text string) *configv1.Verdict {
	t.Helper()
	v := &configv1.Verdict{}
	if err := protojson.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestScoreByConfiguration covers an endpoint that two of three checkers see down: by score, it goes down
// some rounds later than by majority.
func TestScoreByConfiguration(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict = &configv1.Verdict{Rule: configv1.Rule_SCORE}
	const address = "10.0.0.1:80"
	l.serve(web("web", address))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	l.checkers["1a"].blind = map[string]health.Status{address: health.Unhealthy}
	l.checkers["2b"].blind = map[string]health.Status{address: health.Unhealthy}
	l.pass(report)
	l.wantPublished("web", address, health.Healthy)
	l.pass(3 * report)
	l.wantPublished("web", address, health.Unhealthy)
	if reason := l.verdict("web", address).Reason; !strings.Contains(reason, "and down takes 5") {
		t.Errorf("the reason is %q", reason)
	}
}

// TestFlappingEndpointIsHeldDown covers a reload that disables damping, which ends the hold.
func TestFlappingEndpointIsHeldDown(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict = &configv1.Verdict{Damping: &configv1.Damping{}}
	const flapper, other = "10.0.0.1:80", "10.0.0.2:80"
	l.serve(web("web", flapper, other))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	for range 3 {
		l.truth[flapper] = health.Unhealthy
		l.pass(5 * time.Second)
		l.wantPublished("web", flapper, health.Unhealthy)
		l.truth[flapper] = health.Healthy
		l.pass(5 * time.Second)
	}
	l.wantPublished("web", flapper, health.Unhealthy)
	if reason := l.verdict("web", flapper).Reason; !strings.Contains(reason, "it flaps, and is held down until") {
		t.Errorf("the reason is %q", reason)
	}
	if got := testutil.ToFloat64(l.core.metrics.votes.damped); got != 1 {
		t.Errorf("hdsd_endpoints_damped is %g, want 1", got)
	}
	l.reload(func(c *configv1.Config) { c.Verdict = &configv1.Verdict{} })
	l.pass(time.Second)
	l.wantPublished("web", flapper, health.Healthy)
	if got := testutil.ToFloat64(l.core.metrics.votes.damped); got != 0 {
		t.Errorf("hdsd_endpoints_damped is %g, want 0", got)
	}
}

// TestMassFailureWaits covers two of three zones that see a whole cluster down.
func TestMassFailureWaits(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict = &configv1.Verdict{
		MassFailure: &configv1.MassFailure{}, Doubt: &configv1.Doubt{Disagreements: 1000}, PathCut: &configv1.PathCut{Disagreements: 1000},
	}
	addresses := []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}
	l.serve(web("web", addresses...))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	l.cutOff(addresses, func(id string) bool { return id != "3c" })
	l.pass(7 * time.Second)
	for _, address := range addresses {
		l.wantPublished("web", address, health.Healthy)
	}
	if got := testutil.ToFloat64(l.core.metrics.votes.massFailures); got != 1 {
		t.Errorf("hdsd_mass_failures is %g, want 1", got)
	}
	l.pass(10 * time.Second)
	l.wantPublished("web", addresses[0], health.Timeout)
	l.reconnectAll()
	l.pass(5 * time.Second)
	l.wantPublished("web", addresses[0], health.Healthy)
	if now, seen := testutil.ToFloat64(l.core.metrics.votes.massFailures), testutil.ToFloat64(l.core.metrics.votes.massFailuresTotal); now != 0 || seen != 1 {
		t.Errorf("hdsd_mass_failures is %g, want 0; hdsd_mass_failures_total %g, want 1", now, seen)
	}
}

// TestDoubtedCheckersGetThirdChecker covers two checkers for each endpoint, of which one is doubted or
// distrusted: there is a third for as long.
func TestDoubtedCheckersGetThirdChecker(t *testing.T) {
	l := newLab(t)
	l.rules.Assignment.Redundancy = 2
	const address = "10.0.0.1:80"
	l.serve(web("web", address))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	who := l.checkersOf(address)
	if len(who) != 2 {
		t.Fatalf("checked by %v", who)
	}
	say := func(word bool) {
		trust := log.Trust{Level: storedTrust(word), Reason: "stuck", Author: "ann", Since: l.now}
		l.setTrust(who[0], &trust)
		l.pass(5 * time.Second)
	}
	say(false)
	if now := l.checkersOf(address); len(now) != 3 {
		t.Errorf("with %s distrusted it is checked by %v", who[0], now)
	}
	if got := testutil.ToFloat64(l.core.metrics.votes.distrusted); got != 1 {
		t.Errorf("hdsd_checkers_distrusted is %g, want 1", got)
	}
	if reason := l.verdict("web", address).Reason; !strings.Contains(reason, who[0]+" not believed: distrusted by an operator: stuck (ann)") {
		t.Errorf("the reason is %q", reason)
	}

	// It stays so over a restart.
	l.restart()
	l.serve(web("web", address))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	if reason := l.verdict("web", address).Reason; !strings.Contains(reason, who[0]+" not believed: distrusted by an operator: stuck (ann)") {
		t.Errorf("after the restart the reason is %q", reason)
	}
	if now := l.checkersOf(address); len(now) != 3 {
		t.Errorf("after the restart it is checked by %v", now)
	}
	say(true)
	if now := l.checkersOf(address); len(now) != 2 {
		t.Errorf("with %s trusted it is checked by %v", who[0], now)
	}
	say(false)
	l.clearTrust(who[0], "bob")
	l.pass(5 * time.Second)
	if now := l.checkersOf(address); len(now) != 2 || len(l.trust) != 0 {
		t.Errorf("without an order it is checked by %v; %v is stored", now, l.trust)
	}
}

// TestDegradedByStatusCode covers Envoy, which reports a degraded endpoint as UNHEALTHY.
func TestDegradedByStatusCode(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{{ClusterNameGlob: "web", Verdict: verdictOf(t, `{"degradedWhen":{"httpStatusCode":[429]}}`)}}
	const address = "10.0.0.1:80"
	l.serve(web("web", address))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	say := func(code uint16) {
		for _, id := range []string{"1a", "2b", "3c"} {
			k := l.checkers[id]
			l.step(machine.Reported{Checker: id, Votes: []health.Vote{{Endpoint: k.spec.Order[0], Status: health.Unhealthy, HTTPStatusCode: code}}})
			k.reported[k.spec.Order[0]] = health.Healthy // keeps it as it is
		}
	}
	say(429)
	l.wantPublished("web", address, health.Degraded)
	v := l.verdict("web", address)
	if v.Reason != "3 of 3 checkers say DEGRADED" || len(v.Zones) != 3 || v.Zones[0].Status != health.Degraded {
		t.Errorf("the reason is %q, zones see %v", v.Reason, v.Zones)
	}
	say(503)
	l.wantPublished("web", address, health.Unhealthy)
	l.reload(func(c *configv1.Config) {
		c.Policies[0].Verdict = verdictOf(t, `{"degradedWhen":{"httpStatusCode":[{"start":500,"end":600}]}}`)
	})
	l.step(machine.Tick{})
	l.wantPublished("web", address, health.Degraded)
}
