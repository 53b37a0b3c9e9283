package coordinator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/api"
	"hdsd/health"
	"hdsd/ruling"
	"hdsd/source/sample"
)

// notCheckedAnyMore is why an endpoint has no health that is still there.
const notCheckedAnyMore = "not checked any more"

// unprobed is a cluster that nothing checks.
func unprobed(c *sourceCluster) *sourceCluster {
	again := remade(c)
	again.HealthChecks, again.Config.HealthChecks = nil, nil
	return again
}

// sparing is a cluster whose first endpoint is not to be checked.
func sparing(c *sourceCluster) *sourceCluster {
	again := remade(c)
	unchecked(again, 0)
	return again
}

// unchecked disables the check of an endpoint.
func unchecked(c *sourceCluster, index int) {
	sample.Change(c, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[index].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
	})
}

// hiding is a cluster of which a mistake leaves no endpoint to be read.
func hiding(c *sourceCluster) *sourceCluster {
	again := unreadable(c)
	again.Assignment = nil
	return again
}

// wantLast is for the last transition of an endpoint of web.
func (l *lab) wantLast(address string, from, to health.Status, reason string) {
	l.t.Helper()
	var last health.Transition
	for _, t := range l.transitions {
		if t.Endpoint == keyOf("web", address) {
			last = t
		}
	}
	if last.From != from || last.To != to || !strings.HasPrefix(last.Reason, reason) {
		l.t.Errorf("recorded last of %s is %+v, want %v to %v: %s", address, last, from, to, reason)
	}
}

// newHalfDownLab returns a lab with one endpoint down and one up.
func newHalfDownLab(t *testing.T) *lab {
	l := newLab(t)
	l.truth[address1] = health.Unhealthy
	l.serve(web("web", address1, address2))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantLast(address1, health.Unknown, health.Unhealthy, "")
	return l
}

func (l *lab) joinAll() { l.join("ca", "cb", "cc") }

func TestGoneEndpointHasNoHealth(t *testing.T) {
	both := web("web", address1, address2)
	for name, c := range map[string]struct {
		before func(*lab)
		say    []*sourceCluster
		from   health.Status
		reason string
	}{
		"an endpoint":               {nil, []*sourceCluster{web("web", address2)}, health.Unhealthy, ruling.InNoSource},
		"a cluster":                 {nil, nil, health.Unhealthy, ruling.InNoSource},
		"its check":                 {nil, []*sourceCluster{sparing(both)}, health.Unhealthy, notCheckedAnyMore},
		"the checks of its cluster": {nil, []*sourceCluster{unprobed(both)}, health.Unhealthy, notCheckedAnyMore},
		"held":                      {func(l *lab) { l.setClusters(aside(both)) }, []*sourceCluster{web("web", address2)}, health.Unhealthy, ruling.InNoSource},
		"frozen":                    {func(l *lab) { l.freeze(api.Freeze{Hold: true}) }, []*sourceCluster{web("web", address2)}, health.Unhealthy, ruling.InNoSource},
		"drained":                   {func(l *lab) { l.drain(keyOf("web", address1)) }, []*sourceCluster{web("web", address2)}, drained, ruling.InNoSource},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHalfDownLab(t)
			if c.before != nil {
				c.before(l)
			}
			l.setClusters(c.say...)
			l.wantLast(address1, c.from, health.Unknown, c.reason)
			if len(l.voted) > 0 {
				t.Errorf("of the votes is still stored %v", l.voted)
			}
			recorded := len(l.transitions)
			l.pass(10 * time.Second)
			l.wantTransitions(recorded)

			// It begins anew, also after a restart.
			l.restart()
			l.serve(c.say...)
			l.joinAll()
			l.pass(settle + 10*time.Second)
			l.wantTransitions(recorded)
			l.setClusters(both)
			if len(l.overrides) == 0 && l.queryEndpoint("web", address1).Verdict.Status != health.Unknown {
				t.Error("it comes back with the health that it had")
			}
			l.pass(10 * time.Second)
			to := health.Unhealthy
			if len(l.overrides) > 0 {
				to = drained
			}
			l.wantLast(address1, health.Unknown, to, "")
		})
	}
}

// TestReturningEndpointStartsAnewAfterRestart covers the initial health too.
func TestReturningEndpointStartsAnewAfterRestart(t *testing.T) {
	l := newHalfDownLab(t)
	l.setClusters(web("web", address2))
	l.restart()
	l.rules.Verdict.InitialHealth = 2 // UNHEALTHY
	l.truth[address1] = health.Healthy
	l.serve(web("web", address1, address2))
	l.wantTold("web", address1, health.Unknown, health.Unhealthy, "there is no verdict yet, and initial_health is UNHEALTHY")
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantLast(address1, health.Unknown, health.Healthy, "")
}

func TestEndpointGoneDuringRestart(t *testing.T) {
	both := web("web", address1, address2)
	for name, c := range map[string]struct {
		say    []*sourceCluster
		reason string // empty: it stays
	}{
		"nothing":                   {[]*sourceCluster{both}, ""},
		"an endpoint":               {[]*sourceCluster{web("web", address2)}, ruling.InNoSource},
		"a cluster":                 {nil, ruling.InNoSource},
		"the checks of its cluster": {[]*sourceCluster{unprobed(both)}, notCheckedAnyMore},
		"the sight of it":           {[]*sourceCluster{unreadable(both)}, ""},
		"the sight of its cluster":  {[]*sourceCluster{hiding(both)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHalfDownLab(t)
			recorded := len(l.transitions)
			l.restart()
			l.serve(c.say...)
			l.joinAll()
			l.pass(settle - report)
			l.wantTransitions(recorded) // not before it has settled
			l.pass(2 * report)
			if c.reason != "" {
				l.wantLast(address1, health.Unhealthy, health.Unknown, c.reason)
				recorded = len(l.transitions)
			}
			l.pass(10 * time.Second)
			l.wantTransitions(recorded)
		})
	}
}

// TestEndpointReturnsWhileSettling covers a source that is read again, without a flap.
func TestEndpointReturnsWhileSettling(t *testing.T) {
	l := newHalfDownLab(t)
	l.drain(keyOf("web", address2))
	recorded := len(l.transitions)
	l.restart()
	l.serve(web("web", address1, address2))
	l.joinAll()
	l.setClusters()
	l.pass(report)
	l.setClusters(web("web", address1, address2))
	l.wantTold("web", address1, health.Unhealthy, health.Unhealthy, "")
	l.wantTold("web", address2, drained, drained, "")
	l.setClusters(web("web", address2))
	l.pass(settle)
	l.wantLast(address1, health.Unhealthy, health.Unknown, ruling.InNoSource)
	l.clearScope(keyOf("web", address2))
	l.wantLast(address2, drained, health.Healthy, "no longer drained")
	l.wantTransitions(recorded + 2)
}

// TestHiddenClusterReturns covers that the health from before the mistake returns.
func TestHiddenClusterReturns(t *testing.T) {
	l := newHalfDownLab(t)
	l.drain(keyOf("web", address2))
	recorded := len(l.transitions)
	l.restart()
	l.serve(hiding(web("web", address1, address2)))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantTransitions(recorded)
	l.setClusters(web("web", address2))
	l.wantLast(address1, health.Unhealthy, health.Unknown, ruling.InNoSource)
	if voted := l.queryEndpoint("web", address2).Voted; voted == nil || voted.Status != health.Healthy {
		t.Errorf("of the votes under the override is known %+v", voted)
	}
	l.pass(10 * time.Second)
	l.clearScope(keyOf("web", address2))
	l.wantLast(address2, drained, health.Healthy, "no longer drained")
	l.wantTransitions(recorded + 2)
	if len(l.keptEndpoints())+len(l.voted) > 0 {
		t.Errorf("kept are %v, stored %v", l.keptEndpoints(), l.voted)
	}
}

// TestHistoryIsChain does random things in random order. Each transition starts with the health at the end of
// the previous one, and the last one ends with the present health.
func TestHistoryIsChain(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLab(t)
			l.serve(web("web", address1, address2, address3), web("db", address2))
			l.joinAll()
			random := rand.New(rand.NewPCG(seed, 0))
			for range 50 {
				did := l.doRandom(random)
				if l.wantOneChain(); t.Failed() {
					t.Fatal(did)
				}
			}
		})
	}
}

// doRandom does a random thing, and returns its name.
func (l *lab) doRandom(random *rand.Rand) string {
	switch random.IntN(12) {
	case 0, 1, 2, 3:
		l.setClusters(someClusters(random)...)
		return "the sources change"
	case 4:
		l.killed(random)
		l.serve(someClusters(random)...)
		l.joinAll()
		return "restart"
	default:
		return l.doRandomOrder(random)
	}
}

// killed restarts hdsd after a kill, which may lose the latest transitions.
func (l *lab) killed(random *rand.Rand) {
	l.transitions = l.transitions[:max(0, len(l.transitions)-random.IntN(3))]
	l.restart()
}

// doRandomOrder does a random thing without a change of the sources.
func (l *lab) doRandomOrder(random *rand.Rand) string {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	switch random.IntN(7) {
	case 0:
		scope := keyOf(pick("web", "db"), pick(address1, address2, address3))
		if random.IntN(3) == 0 {
			scope = health.Endpoint{Cluster: scope.Cluster}
		}
		if l.overridable(scope) {
			l.setOverride(scope, []health.Status{drained, health.Healthy, health.Unhealthy}[random.IntN(3)], time.Duration(random.IntN(2))*5*time.Second)
		}
		return "override"
	case 1:
		_, _ = l.clear(health.Endpoint{}, true) // there may be none
		return "clear"
	case 2:
		l.freeze(api.Freeze{Reason: "moving", Author: "ann", Hold: random.IntN(2) == 0})
		return "freeze"
	case 3:
		l.truth[pick(address1, address2, address3)] = []health.Status{health.Healthy, health.Unhealthy, health.Timeout}[random.IntN(3)]
		return "the truth changes"
	default:
		l.pass(time.Duration(1+random.IntN(8)) * report)
		return "time passes"
	}
}

// someClusters returns random clusters, some of them with mistakes.
func someClusters(random *rand.Rand) (all []*sourceCluster) {
	for _, name := range []string{"web", "db"} {
		var addresses []string
		for _, address := range []string{address1, address2, address3} {
			if random.IntN(3) > 0 {
				addresses = append(addresses, address)
			}
		}
		c := web(name, addresses...)
		switch random.IntN(8) {
		case 0:
			continue
		case 1:
			c = aside(c)
		case 2:
			c = unreadable(c)
		case 3:
			c = unprobed(c)
		case 4:
			c = hiding(c)
		case 5:
			if len(addresses) > 0 {
				c = sparing(c)
			}
		}
		all = append(all, c)
	}
	return all
}

func (l *lab) wantOneChain() {
	l.t.Helper()
	last := map[health.Endpoint]health.Transition{}
	for _, t := range l.transitions {
		if before := last[t.Endpoint]; t.From != before.To {
			l.t.Errorf("%+v follows on %+v", t, before)
		}
		last[t.Endpoint] = t
	}
	present, kept := l.present(), l.keptEndpoints()
	for key, status := range present {
		if status != last[key].To {
			l.t.Errorf("%v is %v, recorded was %+v", key, status, last[key])
		}
	}
	for key, t := range last {
		_, there := present[key]
		if _, waits := kept[key.Hash()]; !there && !waits && t.To != health.Unknown {
			l.t.Errorf("%v is gone, recorded was %+v", key, t)
		}
	}
	for _, key := range kept {
		if l.canBeGone(key) {
			l.t.Errorf("%v is kept, and can be told to be gone", key)
		}
	}
}
