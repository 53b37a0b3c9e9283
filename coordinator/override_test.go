package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/ruling"
)

// drained is what drain publishes.
const drained = health.Draining

// wantReason is for the reason in /v1/endpoints, which the last transition of the
// endpoint has, too.
func (l *lab) wantReason(cluster, address, want string) {
	l.t.Helper()
	if got := l.queryEndpoint(cluster, address).Verdict.Reason; !strings.HasPrefix(got, want) {
		l.t.Errorf("%s %s: the reason is %q, want %q", cluster, address, got, want)
	}
	l.wantRecorded(cluster, address, want)
}

// wantRecorded is for the reason of the last transition of an endpoint, which
// must follow on the one before.
func (l *lab) wantRecorded(cluster, address, want string) {
	l.t.Helper()
	var last health.Transition
	for _, t := range l.transitions {
		if t.Endpoint != keyOf(cluster, address) {
			continue
		}
		if t.From != last.To {
			l.t.Errorf("%+v follows on %+v", t, last)
		}
		last = t
	}
	if !strings.HasPrefix(last.Reason, want) {
		l.t.Errorf("%s %s: recorded is %q, want %q", cluster, address, last.Reason, want)
	}
	if shown := l.queryEndpoint(cluster, address).Verdict; shown.Status != last.To || !shown.Since.Equal(last.Time) {
		l.t.Errorf("%s %s is shown as %v since %v, recorded is %v since %v", cluster, address, shown.Status, shown.Since, last.To, last.Time)
	}
}

func TestOverrideReplacesVerdict(t *testing.T) {
	l := newHalfUpLab(t)
	l.drain(keyOf("web", a2))
	l.wantTold("web", a2, drained, drained, "")
	l.wantTold("web", a1, down, down, "")
	l.wantReason("web", a2, "drained by ann: kernel")
	l.truth[a2] = down
	l.pass(3 * report)
	l.wantTold("web", a2, drained, drained, "")
	l.wantTransitions(3)
	shown := l.queryEndpoint("web", a2)
	if shown.Override == nil || shown.Override.Author != "ann" || shown.Override.Endpoints != 1 || shown.Voted.Status != down ||
		!strings.HasPrefix(shown.Voted.Reason, "3 of 3") || len(shown.Verdict.Observations) != 3 || shown.Verdict.Observations[0].Status != down {
		t.Errorf("shown is %+v", shown)
	}
	if got := l.describe("web"); got.Overridden != 1 || got.Unhealthy != 1 {
		t.Errorf("of the cluster is told %+v", got)
	}
	if a, b, c := l.counted(drained), l.counted(down), l.counted(up); a != 1 || b != 1 || c != 0 {
		t.Errorf("counted are %d drained, %d down, %d up", a, b, c)
	}

	l.now = l.now.Add(time.Minute)
	l.clearScope(keyOf("web", a2))
	l.wantTold("web", a2, down, down, "")
	l.wantRecorded("web", a2, "no longer drained (cleared by bob): 3 of 3 checkers say UNHEALTHY")
	if shown := l.queryEndpoint("web", a2); shown.Override != nil || shown.Voted != nil {
		t.Errorf("shown is %+v", shown)
	}
	l.truth[a2] = up
	l.pass(3 * report)
	l.wantRecorded("web", a2, "2 of 2 believed checkers say HEALTHY")
	if len(l.overrides)+len(l.voted) > 0 {
		t.Errorf("stored are %v, %v", l.overrides, l.voted)
	}
}

// TestOverrideToSameHealthIsRecorded covers the history of an endpoint that did not go down because of an
// override.
func TestOverrideToSameHealthIsRecorded(t *testing.T) {
	l := newHalfUpLab(t)
	l.setOverride(keyOf("web", a2), up, 0)
	l.wantReason("web", a2, "forced healthy by ann: kernel")
	l.truth[a2] = down
	l.pass(3 * report)
	l.wantTold("web", a2, up, up, "")
	l.setOverride(keyOf("web", a2), down, 0)
	l.wantTold("web", a2, down, down, "")
	l.wantReason("web", a2, "forced unhealthy by ann: kernel")
	l.clearScope(keyOf("web", a2))
	l.wantTold("web", a2, down, down, "")
	l.wantRecorded("web", a2, "no longer forced unhealthy (cleared by bob): 3 of 3")
	l.wantTransitions(5)
}

func TestMostSpecificOverrideDecides(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", a1, a2), web("pay", a1))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	key, other := keyOf("web", a1), keyOf("pay", a1)
	wider := []struct {
		scope health.Endpoint
		to    health.Status
		why   string
	}{
		{health.Endpoint{Locality: health.Locality{Region: "eu"}}, down, "forced unhealthy with its locality by ann"},
		{health.Endpoint{Locality: health.Locality{Region: "eu", Zone: "a"}}, drained, "drained with its locality by ann"},
		{health.Endpoint{Cluster: "web"}, up, "forced healthy with its cluster by ann"},
		{health.Endpoint{Cluster: "web", Locality: key.Locality}, drained, "drained with its locality in the cluster by ann"},
		{health.Endpoint{Cluster: "web", Address: a1}, down, "forced unhealthy by ann"},
		{key, drained, "drained by ann"},
	}
	for i, w := range wider { // each is above the one before
		l.setOverride(w.scope, w.to, 0)
		l.wantTold("web", a1, w.to, w.to, "")
		l.wantReason("web", a1, w.why)
		if i < 2 {
			l.wantTold("pay", a1, w.to, w.to, "")
		}
	}
	l.wantTold("pay", a1, drained, drained, "")
	l.wantTold("web", a2, drained, drained, "")
	l.wantReason("web", a2, wider[3].why)
	for i := len(wider) - 1; i > 0; i-- { // and gives way to it
		l.clearScope(wider[i].scope)
		l.wantReason("web", a1, wider[i-1].why)
		l.wantTold("web", a1, wider[i-1].to, wider[i-1].to, "")
	}
	l.wantReason("pay", a1, wider[0].why)
	for range 2 { // in whatever order they come
		for _, w := range slices.Backward(wider) {
			l.setOverride(w.scope, w.to, 0)
		}
		l.wantReason("web", a1, wider[5].why)
		l.wantReason("pay", a1, wider[1].why)
	}
	gone, err := l.clear(health.Endpoint{Cluster: "web"}, true)
	if err != nil || len(gone) != 4 {
		t.Errorf("%d end, %v", len(gone), err)
	}
	l.wantReason("web", a1, wider[1].why)
	if gone, err := l.clear(health.Endpoint{}, true); err != nil || len(gone) != 2 || len(l.overrides) > 0 {
		t.Errorf("%d end, %v; %v are stored", len(gone), err, l.overrides)
	}
	l.wantTold("web", a1, up, up, "")
	l.wantTold("pay", other.Address, up, up, "")
}

func TestOverrideReplacesSameScope(t *testing.T) {
	l := newHalfUpLab(t)
	scope := keyOf("web", a2)
	l.setOverride(scope, drained, time.Minute)
	replaced, err := l.override(log.Override{Scope: scope, Status: drained, Reason: "disk", Author: "carl"})
	if err != nil || replaced.Author != "ann" || replaced.Endpoints != 0 || l.inForce(scope).Endpoints != 1 || len(l.overrides) != 1 {
		t.Errorf("%+v is replaced, %v; stored are %v", replaced, err, l.overrides)
	}
	l.wantReason("web", a2, "drained by carl: disk")
	l.pass(2 * time.Minute) // beyond the end of the first
	l.wantTold("web", a2, drained, drained, "")
	for _, all := range []bool{false, true} {
		gone, err := l.clear(health.Endpoint{Cluster: "web"}, all)
		if (status.Code(err) == codes.NotFound) == all || (len(gone) == 1) != all {
			t.Errorf("all %t: %v, %v", all, gone, err)
		}
	}
}

func TestOverridesExpire(t *testing.T) {
	l := newHalfUpLab(t)
	l.setOverride(keyOf("web", a2), drained, 90*time.Second)
	l.setOverride(health.Endpoint{Cluster: "web"}, down, 60*time.Second)
	l.setOverride(keyOf("web", a1), up, 30*time.Second)
	until := l.now.Add(90 * time.Second).Format(time.RFC3339)
	l.wantReason("web", a2, "drained by ann: kernel (until "+until+")")
	l.pass(29 * time.Second)
	l.wantTold("web", a1, up, up, "")
	if l.step(machine.Tick{}); l.core.Wait() > time.Second {
		t.Errorf("it sleeps %v before the end of an override", l.core.Wait())
	}
	l.pass(time.Second)
	l.wantReason("web", a1, "forced unhealthy with its cluster by ann")
	l.pass(30 * time.Second)
	l.wantTold("web", a1, down, down, "")
	l.wantRecorded("web", a1, "no longer forced unhealthy (expired): 3 of 3 checkers say UNHEALTHY")
	l.wantTold("web", a2, drained, drained, "")
	l.pass(30 * time.Second)
	l.wantTold("web", a2, up, up, "")
	if len(l.overrides)+len(l.voted) > 0 {
		t.Errorf("stored are %v, %v", l.overrides, l.voted)
	}
}

func TestOverridesSurviveRestart(t *testing.T) {
	l := newHalfUpLab(t)
	l.drain(keyOf("web", a2))
	l.setOverride(keyOf("web", a1), up, time.Minute)
	since := l.queryEndpoint("web", a2).Verdict.Since
	l.truth[a2] = down
	l.pass(3 * report)
	recorded := len(l.transitions)
	l.restart()
	l.serve(web("web", a1, a2))
	l.wantTransitions(recorded)
	l.wantTold("web", a2, drained, drained, "")
	l.wantTold("web", a1, up, up, "")
	if shown := l.queryEndpoint("web", a2); !shown.Verdict.Since.Equal(since) || shown.Voted.Status != down || shown.Override.Endpoints != 1 {
		t.Errorf("after the restart: %+v", shown)
	}
	l.clearScope(keyOf("web", a2)) // before any checker is back
	l.wantTold("web", a2, down, down, "")
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.wantTransitions(recorded + 1)

	// It ends while hdsd is down.
	l.now = l.now.Add(time.Hour)
	l.restart()
	l.serve(web("web", a1, a2))
	l.wantTold("web", a1, down, down, "")
	l.wantRecorded("web", a1, "no longer forced healthy (expired): ")
	l.pass(settle + 10*report)
	l.wantTransitions(recorded + 2)
	if len(l.overrides)+len(l.voted) > 0 {
		t.Errorf("stored are %v, %v", l.overrides, l.voted)
	}
}

// TestOverridesAfterKill covers an override on disk whose effects are not.
func TestOverridesAfterKill(t *testing.T) {
	cases := map[string]struct {
		act    func(l *lab)
		want   health.Status
		reason string
	}{
		"set, and nothing recorded": {func(l *lab) {
			before := l.transitions
			l.drain(keyOf("web", a2))
			l.transitions = before
		}, drained, "drained by ann"},
		"cleared, and nothing recorded": {func(l *lab) {
			l.drain(keyOf("web", a2))
			before, voted := l.transitions, l.voted[keyOf("web", a2).Hash()]
			l.clearScope(keyOf("web", a2))
			l.transitions, l.voted[keyOf("web", a2).Hash()] = before, voted
		}, up, "no longer overridden: "},
		"what the votes came to is damaged": {func(l *lab) {
			l.drain(keyOf("web", a2))
			clear(l.voted)
			clear(l.overrides)
		}, never, "no longer overridden: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newHalfUpLab(t)
			c.act(l)
			l.restart()
			l.serve(web("web", a1, a2))
			l.wantTold("web", a2, c.want, c.want, "")
			l.wantRecorded("web", a2, c.reason)
			l.join("checker-a", "checker-b", "checker-c")
			l.pass(settle + 10*report)
			if c.want != drained {
				l.wantTold("web", a2, up, up, "")
			}
		})
	}
}

func TestOverrideAppliesToLaterEndpoints(t *testing.T) {
	l := newHalfUpLab(t)
	l.drain(health.Endpoint{Cluster: "web"})
	l.setClusters(web("web", a1, a2, a3))
	l.wantTold("web", a3, drained, drained, "")
	l.wantReason("web", a3, "drained with its cluster by ann")
	l.setClusters(web("web", a1, a3)) // a2 goes, and comes back
	if got := l.inForce(health.Endpoint{Cluster: "web"}).Endpoints; got != 2 {
		t.Errorf("it decides %d endpoints", got)
	}
	l.setClusters(web("web", a1, a2, a3))
	l.wantTold("web", a2, drained, drained, "")
	l.pass(10 * report)
	l.setClusters(web("other", a1)) // the cluster goes
	l.clearScope(health.Endpoint{Cluster: "web"})
	l.setClusters(web("web", a1, a2, a3))
	l.pass(10 * report)
	l.wantTold("web", a2, up, up, "")
}

// TestStoredVotesOfGoneEndpoints covers that hdsd forgets them at the end of the time to settle.
func TestStoredVotesOfGoneEndpoints(t *testing.T) {
	l := newHalfUpLab(t)
	l.drain(health.Endpoint{Cluster: "web"})
	l.restart()
	l.serve(web("web", a1))
	l.pass(settle + report)
	if len(l.voted) != 1 {
		t.Errorf("stored are %v", l.voted)
	}
}

func TestOverridesInShadowModeAndFreeze(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{shadowing("pay", configv1.Mode_SHADOW)}
	l.serve(web("web", a1, a2), web("pay", a1))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.drain(keyOf("pay", a1))
	l.wantTold("pay", a1, drained, never, "shadow: the source says UNKNOWN")
	l.reload(func(c *configv1.Config) { c.Policies = nil })
	l.wantTold("pay", a1, drained, drained, "")

	l.drain(keyOf("web", a1))
	l.freeze(held)
	l.wantTold("web", a1, drained, drained, "")
	l.drain(keyOf("web", a2))
	l.clearScope(keyOf("web", a1))
	l.truth[a1] = down
	l.pass(3 * report)
	l.wantTold("web", a1, down, up, "frozen by alice: moving; it was HEALTHY when that began")
	l.wantTold("web", a2, drained, drained, "")
	l.wantOwnChecks("web", false)
	l.freeze(api.Freeze{Reason: "moving", Author: "alice"})
	l.wantTold("web", a1, down, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantTold("web", a2, drained, drained, "")
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_SHADOW })
	l.wantPublished("web", a2, never)
	l.unfreeze("bob")
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_PUBLISH })
	l.wantTold("web", a1, down, down, "")
	l.wantTold("web", a2, drained, drained, "")
}

// TestOverridesUnderFreeze covers a freeze to the health of the sources: while an override is in force, data
// planes take the endpoints of the cluster from hdsd, and check them with the health checks of the cluster.
func TestOverridesUnderFreeze(t *testing.T) {
	l := newHalfUpLab(t)
	l.drain(keyOf("web", a2))
	l.freeze(api.Freeze{Reason: "moving", Author: "alice"})
	wantInForce := func() {
		t.Helper()
		l.wantTold("web", a2, drained, drained, "")
		l.wantTold("web", a1, down, never, "frozen by alice: moving; the source says UNKNOWN")
		l.wantProbed("web", true)
	}
	wantInForce()
	l.setClusters(web("web", a1, a2, a3))
	wantInForce()
	l.restarted(web("web", a1, a2))
	wantInForce()
	l.clearScope(keyOf("web", a2))
	l.wantTold("web", a2, up, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantOwnChecks("web", true)

	l.setOverride(keyOf("web", a1), up, 0)
	l.wantTold("web", a1, up, up, "")
	l.wantProbed("web", true)
	l.drain(health.Endpoint{Cluster: "web"})
	l.wantTold("web", a1, up, up, "")
	l.wantTold("web", a2, drained, drained, "")
	l.setClusters(web("web", a1, a2, a3))
	l.wantPublished("web", a3, drained) // a new endpoint is drained as well
	if _, err := l.clear(health.Endpoint{}, true); err != nil {
		t.Fatal(err)
	}
	l.wantOwnChecks("web", true)
	l.unfreeze("bob")
	l.wantTold("web", a1, down, down, "")
	l.wantTold("web", a2, up, up, "")
	l.wantOwnChecks("web", false)
}

// TestOverridesDoNotExpireUnderFreeze covers an override whose time ends during the freeze: it ends with the
// freeze.
func TestOverridesDoNotExpireUnderFreeze(t *testing.T) {
	for _, frozen := range []api.Freeze{held, {Reason: "moving", Author: "alice"}} {
		l := newHalfUpLab(t)
		l.setOverride(keyOf("web", a2), drained, time.Hour)
		l.pass(30 * time.Minute)
		l.freeze(frozen)
		l.truth[a2] = down // its machine is off by now
		l.pass(2 * time.Hour)
		l.wantTold("web", a2, drained, drained, "")
		l.restarted(web("web", a1, a2))
		l.wantTold("web", a2, drained, drained, "")
		if l.inForce(keyOf("web", a2)) == nil {
			t.Error("the override has expired")
		}
		l.unfreeze("bob")
		l.pass(report)
		l.wantTold("web", a2, down, down, "")
		if l.inForce(keyOf("web", a2)) != nil {
			t.Error("the override has not expired")
		}
	}
}

// TestOverridesOfUncheckedEndpoints drains a cluster with checked and unchecked endpoints.
func TestOverridesOfUncheckedEndpoints(t *testing.T) {
	const bad = "127.0.0.1:0" // a port that nobody can connect to
	l := newLab(t)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	spared := func(k *sourceCluster) *sourceCluster {
		unchecked(k, 1)
		return k
	}
	l.serve(spared(web("web", a1, a2, bad)))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.drain(health.Endpoint{Cluster: "web"})
	for _, address := range []string{a1, a2, bad} {
		l.wantTold("web", address, drained, drained, "")
		l.wantReason("web", address, "drained with its cluster by ann")
	}
	l.restart()
	l.serve(spared(web("web", a1, a2, bad)))
	for _, address := range []string{a1, a2, bad} {
		l.wantTold("web", address, drained, drained, "")
	}
	l.pass(settle + report)
	l.clearScope(health.Endpoint{Cluster: "web"})
	l.wantTold("web", a1, up, up, "")
	for _, address := range []string{a2, bad} {
		l.wantTold("web", address, never, never, "")
	}
	if len(l.present()) != 1 || l.counted(drained) != 0 {
		t.Errorf("left are %v, %d drained", l.present(), l.counted(drained))
	}

	// What is checked now, and spared then, stays drained.
	l.setClusters(web("web", a1, a2))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.drain(keyOf("web", a2))
	l.setClusters(spared(web("web", a1, a2)))
	l.wantTold("web", a2, drained, drained, "")
	l.setClusters(web("web", a1, a2))
	l.pass(10 * report)
	l.wantTold("web", a2, drained, drained, "")
	l.clearScope(keyOf("web", a2))
	l.wantTold("web", a2, up, up, "")
	l.pass(time.Minute)                       // sooner, that would alternate
	l.setClusters(spared(web("web", a1, a2))) // under no override, nothing of it is held
	l.wantTold("web", a2, never, never, "")
	l.setClusters(web("web", a1, a3))
	l.drain(keyOf("web", a3)) // before it has a verdict
	l.setClusters(spared(web("web", a1, a3)))
	l.wantTold("web", a3, drained, drained, "")
}

func TestOverridesWithoutEffectAreRefused(t *testing.T) {
	l := newLab(t)
	plain := web("plain", a1)
	plain.HealthChecks, plain.Config.HealthChecks = nil, nil
	l.serve(web("web", a1), plain)
	for name, c := range map[string]struct {
		scope health.Endpoint
		want  codes.Code
	}{
		"a cluster":                {health.Endpoint{Cluster: "nowhere"}, codes.NotFound},
		"an address":               {health.Endpoint{Cluster: "web", Address: a2}, codes.NotFound},
		"a locality":               {health.Endpoint{Cluster: "web", Locality: health.Locality{Zone: "z"}}, codes.NotFound},
		"a locality everywhere":    {health.Endpoint{Locality: health.Locality{Zone: "z"}}, codes.NotFound},
		"a cluster not checked":    {health.Endpoint{Cluster: "plain"}, codes.FailedPrecondition},
		"an endpoint not checked":  {keyOf("plain", a1), codes.FailedPrecondition},
		"a locality with a choice": {health.Endpoint{Locality: health.Locality{Zone: "a"}}, codes.OK},
	} {
		_, err := l.override(log.Override{Scope: c.scope, Status: drained})
		if status.Code(err) != c.want || (len(l.overrides) == 0) != (c.want != codes.OK) {
			t.Errorf("%s: %v; stored are %v", name, err, l.overrides)
		}
		_, _ = l.clear(health.Endpoint{}, true)
	}
	for i := range ruling.MaxOverrides {
		scope := health.Endpoint{Cluster: "web", Address: fmt.Sprint(i)}
		l.overrides[scope] = log.Override{Scope: scope, Status: drained}
	}
	l.restart()
	l.serve(web("web", a1))
	if _, err := l.override(log.Override{Scope: keyOf("web", a1), Status: drained}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("one too many: %v", err)
	}
}

// BenchmarkOverride drains a cluster of 10,000 endpoints among 100,000, and clears the override.
func BenchmarkOverride(b *testing.B) {
	for _, clusters := range []int{1, 10} {
		b.Run(fmt.Sprintf("endpoints=%d", clusters*10_000), func(b *testing.B) {
			l := newLab(b)
			l.core.publisher.planes = eds.NewServer(eds.Options{})
			var all []*sourceCluster
			for i := range clusters {
				var addresses []string
				for j := range 10_000 {
					addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d:80", i, j>>8, j&255))
				}
				all = append(all, web(fmt.Sprintf("cluster-%d", i), addresses...))
			}
			l.serve(all...)
			for b.Loop() {
				l.drain(health.Endpoint{Cluster: "cluster-0"})
				l.clearScope(health.Endpoint{Cluster: "cluster-0"})
				l.transitions = nil
			}
		})
	}
}
