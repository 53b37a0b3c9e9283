package coordinator

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/api"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/publish"
)

// a3 comes while hdsd is frozen.
const a3 = "10.0.0.3:80"

var held = api.Freeze{Reason: "moving", Author: "alice", Hold: true}

// newHalfUpLab returns a lab with two endpoints. The first one is down.
func newHalfUpLab(t *testing.T) *lab {
	l := newLab(t)
	l.truth[a1] = down
	l.serve(web("web", a1, a2))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.wantTold("web", a1, down, down, "")
	l.wantTold("web", a2, up, up, "")
	return l
}

// restarted restarts hdsd with these clusters.
func (l *lab) restarted(clusters ...*sourceCluster) {
	l.restart()
	l.serve(clusters...)
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
}

func TestFreezePublishesSourceHealth(t *testing.T) {
	l := newHalfUpLab(t)
	l.freeze(api.Freeze{Reason: "moving", Author: "alice"})
	l.wantOwnChecks("web", true)
	l.truth[a1], l.truth[a2] = up, down
	l.pass(3 * report)
	l.wantTransitions(4)
	why := "frozen by alice: moving; the source says "
	l.wantTold("web", a1, up, never, why+"UNKNOWN")
	l.setClusters(saying(web("web", a1, a2), corev3.HealthStatus_DRAINING))
	l.wantTold("web", a1, up, health.Draining, why+"DRAINING")
	if l.describe("web").Mode != api.Frozen {
		t.Error("the mode is another")
	}

	l.restarted(web("web", a1, a2))
	l.wantOwnChecks("web", true)
	l.wantTold("web", a2, down, never, why+"UNKNOWN")
	l.unfreeze("bob")
	l.wantOwnChecks("web", false)
	l.wantTold("web", a1, up, up, "")
	l.wantTold("web", a2, down, down, "")
}

func TestFreezeHoldsHealth(t *testing.T) {
	l := newHalfUpLab(t)
	l.freeze(held)
	l.wantOwnChecks("web", false)
	stood := func() {
		t.Helper()
		l.wantTold("web", a1, up, down, "frozen by alice: moving; it was UNHEALTHY when that began")
		l.wantTold("web", a2, down, up, "frozen by alice: moving; it was HEALTHY when that began")
	}
	l.truth[a1], l.truth[a2], l.truth[a3] = up, down, down
	l.pass(3 * report)
	stood()
	l.setClusters(web("web", a1, a2, a3))
	l.pass(10 * report)
	stood()
	l.wantTold("web", a3, down, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantOwnChecks("web", false)

	l.restarted(web("web", a1, a2, a3), web("new", a3))
	stood()
	l.wantTold("web", a3, down, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantOwnChecks("new", true) // nobody else would check it
	l.reload(func(c *configv1.Config) { c.Verdict = &configv1.Verdict{InitialHealth: corev3.HealthStatus_UNHEALTHY} })
	stood()
	l.setClusters(web("web", a2)) // gone and back
	l.setClusters(web("web", a1, a2))
	l.pass(10 * report)
	stood()

	l.unfreeze("bob")
	l.wantTold("web", a1, up, up, "")
	l.wantTold("web", a2, down, down, "")
}

// TestNewEndpointHasInitialHealthWhileHeld covers an endpoint without a verdict that hdsd could hold.
func TestNewEndpointHasInitialHealthWhileHeld(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	l.serve(web("web", a1, a2))
	l.joinAll()
	l.pass(settle + 10*report)
	l.freeze(held)
	unchecked := unprobed(web("theirs", a3))
	alone := lone(web("alone", a3))
	alone.HealthChecks = web("alone", a3).HealthChecks
	l.setClusters(web("web", a1, a2, a3), web("new", a3), unchecked, alone)
	why := "frozen by alice: moving; it is new since then, and initial_health is UNHEALTHY"
	see := func() {
		t.Helper()
		l.wantPublished("web", a1, up)
		l.wantPublished("web", a3, down)
		l.wantPublished("alone", a3, never)
		l.wantOwnChecks("web", false)
		l.wantOwnChecks("new", true) // as it came in: nobody else would check it
		l.wantPublished("new", a3, never)
		l.wantPublished("theirs", a3, never)
	}
	see()
	l.pass(10 * report)
	see()
	l.wantTold("web", a3, up, down, why)
	l.wantTold("alone", a3, up, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantTold("new", a3, up, never, "frozen by alice: moving; the source says UNKNOWN")
	l.setClusters(saying(web("web", a1, a2, a3), corev3.HealthStatus_DRAINING), web("new", a3), unchecked, alone)
	l.wantTold("web", a3, up, down, why)
	l.setClusters(web("web", a1, a2, a3), web("new", a3), unchecked, alone)

	l.restarted(web("web", a1, a2, a3), web("new", a3), unchecked, alone)
	see()
	// Another initial health holds at once.
	l.reload(func(c *configv1.Config) { c.Verdict.InitialHealth = corev3.HealthStatus_UNKNOWN })
	l.wantTold("web", a3, up, never, "frozen by alice: moving; the source says UNKNOWN")
	l.reload(func(c *configv1.Config) { c.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY })
	see()
	l.reload(func(c *configv1.Config) {
		c.Sources = []*configv1.Source{{Name: "local", UpstreamHealth: configv1.UpstreamHealth_THEIRS}}
	})
	l.wantPublished("web", a3, never) // nothing but the source's word counts
	l.unfreeze("bob")
	l.wantPublished("web", a3, never)
}

func TestShadowModeStaysUnderFreeze(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{shadowing("pay", configv1.Mode_SHADOW)}
	l.serve(web("web", a1), web("pay", a2))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.freeze(held)
	l.wantTold("pay", a2, up, never, "shadow: the source says UNKNOWN")
	l.reload(func(c *configv1.Config) { c.Policies = nil }) // was not published when it was frozen
	l.wantTold("pay", a2, up, never, "frozen by alice: moving; the source says UNKNOWN")
	l.wantOwnChecks("pay", true)
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_SHADOW })
	l.wantTold("web", a1, up, never, "shadow: the source says UNKNOWN")
	l.unfreeze("bob")
	l.wantTold("web", a1, up, never, "shadow: the source says UNKNOWN")
	l.reload(func(c *configv1.Config) { c.Mode = configv1.Mode_PUBLISH })
	l.wantTold("web", a1, up, up, "")
	l.wantTold("pay", a2, up, up, "")
}

func TestFreezeAgain(t *testing.T) {
	l := newHalfUpLab(t)
	_, first := l.freeze(held)
	l.truth[a2] = down
	l.pass(3 * report)
	before, second := l.freeze(api.Freeze{Reason: "still moving", Author: "bob", Hold: true})
	if *before != first || second.Reason != "still moving" || second.Author != "bob" || !second.Since.Equal(first.Since) || !l.frozen.Since.Equal(second.Since) || l.frozen.Author != "bob" {
		t.Errorf("%+v is replaced by %+v; %+v is stored", before, second, l.frozen)
	}
	l.wantTold("web", a2, down, up, "frozen by bob: still moving; it was HEALTHY when that began")
	l.freeze(api.Freeze{Reason: "sources", Author: "bob"})
	l.wantTold("web", a2, down, never, "frozen by bob: sources; the source says UNKNOWN")
	l.freeze(held) // as it stands now
	l.truth[a2] = up
	l.pass(3 * report)
	l.wantTold("web", a2, up, down, "frozen by alice: moving; it was UNHEALTHY when that began")
	if l.unfreeze("bob") == nil || l.unfreeze("bob") != nil || l.frozen != nil {
		t.Errorf("unfreezing twice; %+v is stored", l.frozen)
	}
	l.wantTold("web", a2, up, up, "")
}

// spyServer is a resource server that checks the published health after each step.
type spyServer struct {
	*lab
	look func()
}

func (s spyServer) Update(u publish.Update) {
	s.lab.Update(u)
	s.look()
}

func (s spyServer) SetHealth(all []publish.Health) {
	s.lab.SetHealth(all)
	s.look()
}

// TestFreezeShowsNoHealthInBetween covers a verdict that differs from the held health. Data planes must not
// see it before they see the health of the source.
func TestFreezeShowsNoHealthInBetween(t *testing.T) {
	l := newHalfUpLab(t)
	l.freeze(held)
	l.truth[a2] = down
	l.pass(3 * report)
	var seen []string
	l.core.publisher.planes = spyServer{l, func() { seen = append(seen, l.published("web", a2).String()) }}
	steps := []struct {
		name string
		take func()
		want string
	}{
		{"held to sources", func() { l.freeze(api.Freeze{Reason: "x"}) }, "UNKNOWN UNKNOWN"},
		{"a verdict meanwhile", func() { l.truth[a2] = up; l.pass(3 * report) }, "UNKNOWN"},
		{"sources to held", func() { l.freeze(held) }, "UNKNOWN HEALTHY"},
		{"another reason", func() { l.freeze(held) }, ""},
		{"a verdict meanwhile", func() { l.truth[a2] = down; l.pass(3 * report) }, "HEALTHY"},
		{"held to verdicts", func() { l.unfreeze("x") }, "UNHEALTHY UNHEALTHY"},
		{"verdicts to sources", func() { l.freeze(api.Freeze{Reason: "x"}) }, "UNKNOWN UNKNOWN"},
		{"sources to verdicts", func() { l.unfreeze("x") }, "UNKNOWN UNHEALTHY"},
	}
	for _, step := range steps {
		seen = nil
		if step.take(); strings.Join(seen, " ") != step.want {
			t.Errorf("%s: subscribers see %v, want %s", step.name, seen, step.want)
		}
	}
}

// BenchmarkFreeze freezes and unfreezes 100,000 endpoints in 10,000 clusters.
func BenchmarkFreeze(b *testing.B) {
	l := newLab(b)
	l.core.publisher.planes = eds.NewServer(eds.Options{})
	var clusters []*sourceCluster
	for i := range 10_000 {
		var addresses []string
		for j := range 10 {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d:80", i>>8, i&255, j))
		}
		clusters = append(clusters, web(fmt.Sprintf("cluster-%d", i), addresses...))
	}
	l.serve(clusters...)
	for _, hold := range []bool{false, true} {
		b.Run(fmt.Sprintf("hold=%t", hold), func(b *testing.B) {
			for b.Loop() {
				l.freeze(api.Freeze{Reason: "x", Hold: hold})
				l.unfreeze("x")
			}
		})
	}
}
