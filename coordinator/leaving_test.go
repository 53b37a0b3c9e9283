package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/source"
)

// asEDS makes a cluster take its endpoints by EDS.
func asEDS(k *sourceCluster) *sourceCluster {
	again := *k
	again.Config = publish.TakeOver(k.Config, publish.ByADS())
	return &again
}

// bare is a cluster that takes its endpoints by EDS, and gets none.
func bare(k *sourceCluster) *sourceCluster {
	again := asEDS(k)
	again.Assignment = nil
	return again
}

// lone is the assignment of a cluster alone.
func lone(k *sourceCluster) *sourceCluster {
	again := *k
	again.Config, again.HealthChecks, again.Lone = nil, nil, true
	return &again
}

// locally is what a file says.
func locally(clusters ...*sourceCluster) *source.Set { return localSet(clusters) }

// between restarts a lab whose local source had db, and its upstream web, each
// with one endpoint that is down and another that is up. From then on, all is up.
func between(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.truth[one], l.truth[three] = health.Unhealthy, health.Unhealthy
	l.serveAll(from(locally(web("db", three, two)), said(web("web", one, two))))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantTransitions(4)
	l.truth[one], l.truth[three] = health.Healthy, health.Healthy
	l.restart()
	return l
}

// goOn serves what two sources say, and lets hdsd settle.
func (l *lab) goOn(sets []*source.Set) {
	l.t.Helper()
	l.serveAll(sets)
	l.joinAll()
	l.pass(settle + 10*time.Second)
}

// of are the transitions of an address of a cluster, as from and to.
func (l *lab) of(cluster, address string) (text string) {
	for _, t := range l.transitions {
		if t.Endpoint == keyOf(cluster, address) {
			text += t.From.String() + "-" + t.To.String() + " "
		}
	}
	return text
}

func (l *lab) wantHistory(cluster, address, want string) {
	l.t.Helper()
	if got := l.of(cluster, address); got != want {
		l.t.Errorf("recorded of %s in %s is %q, want %q", address, cluster, got, want)
	}
}

const (
	wasDown  = "UNKNOWN-UNHEALTHY "
	recovers = "UNHEALTHY-HEALTHY "
	leaves   = "HEALTHY-UNKNOWN "
	begins   = "UNKNOWN-HEALTHY "
)

// TestEndpointStartsAnewBesideUnreadSource covers that nothing remains of the health from before the start.
func TestEndpointStartsAnewBesideUnreadSource(t *testing.T) {
	l := between(t)
	l.goOn(from(locally(web("db", three, two)), notRead()))
	l.wantHistory("db", three, wasDown+recovers)
	l.intake.hear(locally(web("db", two)))
	l.wantHistory("db", three, wasDown+recovers+leaves)
	l.pass(report)
	l.intake.hear(locally(web("db", three, two)))
	l.wantPublished("db", three, health.Unknown)
	l.pass(10 * time.Second)
	l.wantPublished("db", three, health.Healthy)
	l.wantHistory("db", three, wasDown+recovers+leaves+begins)

	// The other source is heard: what it had stands.
	l.intake.hear(said(web("web", one, two)))
	l.wantPublished("web", one, health.Unhealthy)
	l.pass(10 * time.Second)
	l.wantHistory("web", one, wasDown+recovers)
	l.wantOneChain()
	if len(l.kept()) > 0 {
		t.Errorf("kept are %v", l.kept())
	}
}

// TestLackingEndpointStartsAnew adds an endpoint that its source did not have at the end of the time to
// settle. Another source is unread, so the endpoint was not recorded as gone.
func TestLackingEndpointStartsAnew(t *testing.T) {
	for name, again := range map[string]*sourceCluster{
		"checked": web("db", three, two), "set aside": aside(web("db", three, two)), "by EDS": asEDS(web("db", three, two)),
	} {
		t.Run(name, func(t *testing.T) {
			l := between(t)
			l.goOn(from(locally(web("db", two)), notRead()))
			l.wantHistory("db", three, wasDown)
			l.intake.hear(locally(again))
			l.wantPublished("db", three, health.Unknown)
			l.wantHistory("db", three, wasDown+"UNHEALTHY-UNKNOWN ")
			l.intake.hear(locally(web("db", three, two)))
			l.pass(10 * time.Second)
			l.wantHistory("db", three, wasDown+"UNHEALTHY-UNKNOWN "+begins)
			l.wantOneChain()
		})
	}
}

// TestLackingEndpointKeepsOverride covers that hdsd forgets the votes only.
func TestLackingEndpointKeepsOverride(t *testing.T) {
	l := newLab(t)
	l.truth[three] = health.Unhealthy
	l.serveAll(from(locally(web("db", three, two)), said()))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.drain(keyOf("db", three))
	l.restart()
	l.goOn(from(locally(web("db", two)), notRead()))
	l.wantHistory("db", three, wasDown+"UNHEALTHY-DRAINING ")
	l.truth[three] = health.Unknown // nobody says anything
	l.intake.hear(locally(web("db", three, two)))
	l.wantHistory("db", three, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN UNKNOWN-DRAINING ")
	l.wantPublished("db", three, drained)
	l.wantOneChain()
	l.restart()
	l.goOn(from(locally(web("db", three, two)), said()))
	l.wantPublished("db", three, drained)
	l.cleared(keyOf("db", three))
	l.wantPublished("db", three, health.Unknown)
	l.wantHistory("db", three, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN UNKNOWN-DRAINING DRAINING-UNKNOWN ")
}

// TestLackingEndpointForgetsVotesUnderOverride ends the override before the endpoint returns.
func TestLackingEndpointForgetsVotesUnderOverride(t *testing.T) {
	l := newLab(t)
	l.truth[three] = health.Unhealthy
	l.serveAll(from(locally(web("db", three, two)), said()))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.drain(keyOf("db", three))
	l.restart()
	l.goOn(from(locally(web("db", two)), notRead()))
	l.cleared(keyOf("db", three))
	l.truth[three] = health.Unknown
	l.intake.hear(locally(web("db", three, two)))
	l.wantHistory("db", three, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN ")
	l.restart()
	l.goOn(from(locally(web("db", three, two)), said()))
	l.wantPublished("db", three, health.Unknown)
	if len(l.voted) > 0 {
		t.Errorf("of the votes is still stored %v", l.voted)
	}
}

// TestLateSourceContinuesHealth covers a source that may have had the endpoint all the time: the health from
// before the start continues.
func TestLateSourceContinuesHealth(t *testing.T) {
	db, mesh := web("db", three, two), web("web", one, two)
	for name, c := range map[string]struct {
		first, then []*source.Set
		cluster     string
		address     string
	}{
		"a source that is heard late":              {from(locally(db), notRead()), from(locally(db), said(mesh)), "web", one},
		"a mistake that ends":                      {from(locally(hiding(db)), notRead()), from(locally(db), notRead()), "db", three},
		"endpoints of a source that is heard late": {from(locally(bare(db)), notRead()), from(locally(bare(db)), said(lone(db))), "db", three},
		"a cluster of a source that is heard late": {from(locally(lone(db)), notRead()), from(locally(lone(db)), said(asEDS(bare(db)))), "db", three},
	} {
		t.Run(name, func(t *testing.T) {
			l := between(t)
			l.goOn(c.first)
			l.intake.hear(c.then[0])
			l.intake.hear(c.then[1])
			l.wantPublished(c.cluster, c.address, health.Unhealthy)
			l.pass(10 * time.Second)
			l.wantHistory(c.cluster, c.address, wasDown+recovers)
			l.wantOneChain()
		})
	}
}

// TestEndpointContinuesWhileSettling covers an endpoint that its source lacks at first.
func TestEndpointContinuesWhileSettling(t *testing.T) {
	l := between(t)
	l.serveAll(from(locally(web("db", two)), notRead()))
	l.intake.hear(locally(web("db", three, two)))
	l.wantPublished("db", three, health.Unhealthy)
	l.intake.hear(locally(web("db", two)))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantHistory("db", three, wasDown) // it may be the other's
	l.intake.hear(said(web("web", one, two)))
	l.wantHistory("db", three, wasDown+"UNHEALTHY-UNKNOWN ")
	l.intake.hear(locally(web("db", three, two)))
	l.wantPublished("db", three, health.Unknown)
	l.wantOneChain()
}

// TestAssignmentGoneDuringRestart covers that its endpoints are gone as soon as each source has answered.
func TestAssignmentGoneDuringRestart(t *testing.T) {
	mesh := web("web", one, two)
	for name, c := range map[string]struct {
		before, after []*source.Set
	}{
		"a file's":              {from(locally(asEDS(mesh)), said()), from(locally(bare(mesh)), said())},
		"a management server's": {from(locally(), said(asEDS(mesh))), from(locally(), said(bare(mesh)))},
		"that of another":       {from(locally(bare(mesh)), said(lone(mesh))), from(locally(bare(mesh)), said())},
		"with its cluster":      {from(locally(), said(asEDS(mesh))), from(locally(), said())},
		"the cluster alone":     {from(locally(bare(mesh)), said(lone(mesh))), from(locally(), said(lone(mesh)))},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.truth[one] = health.Unhealthy
			l.goOn(c.before)
			l.wantHistory("web", one, wasDown)
			l.restart()
			l.serveAll(c.after)
			l.joinAll()
			l.pass(settle - report)
			l.wantHistory("web", one, wasDown)
			l.pass(2 * report)
			l.wantHistory("web", one, wasDown+"UNHEALTHY-UNKNOWN ")
			l.wantHistory("web", two, begins+leaves)
			if len(l.kept()) > 0 {
				t.Errorf("kept are %v", l.kept())
			}
			// It begins anew, also after another restart.
			l.restart()
			l.goOn(c.after)
			l.truth[one] = health.Healthy
			l.intake.hear(c.before[0])
			l.intake.hear(c.before[1])
			l.wantPublished("web", one, health.Unknown)
			l.pass(10 * time.Second)
			l.wantHistory("web", one, wasDown+"UNHEALTHY-UNKNOWN "+begins)
			l.wantOneChain()
		})
	}
}

// TestAwaitedAssignmentIsNotGone covers a source that has not answered for the assignment yet.
func TestAwaitedAssignmentIsNotGone(t *testing.T) {
	mesh := web("web", one, two)
	l := newLab(t)
	l.truth[one] = health.Unhealthy
	l.goOn(from(locally(bare(mesh)), said(lone(mesh))))
	l.restart()
	waits := true
	l.pending = func(name string) bool { return waits && name == "upstream" }
	l.goOn(from(locally(bare(mesh)), said()))
	l.wantHistory("web", one, wasDown)
	waits = false
	l.intake.hear(said())
	l.wantHistory("web", one, wasDown+"UNHEALTHY-UNKNOWN ")
}

// TestRejectedAssignmentIsNotGone covers the mistake in either source.
func TestRejectedAssignmentIsNotGone(t *testing.T) {
	mesh := web("web", one, two)
	l := newLab(t)
	l.truth[one] = health.Unhealthy
	l.goOn(from(locally(bare(mesh)), said(lone(mesh))))
	l.intake.hear(said(hiding(lone(mesh))))
	l.wantPublished("web", one, health.Unhealthy)
	l.restart()
	l.goOn(from(locally(bare(mesh)), said(hiding(lone(mesh)))))
	l.wantHistory("web", one, wasDown)
	l.intake.hear(said(lone(mesh)))
	l.wantPublished("web", one, health.Unhealthy)
	l.pass(10 * time.Second)
	l.wantHistory("web", one, wasDown)
}

// TestHistoryIsChainAcrossSources is TestHistoryIsChain with a second source that is often unread. An
// endpoint that is new to complete sources starts anew.
func TestHistoryIsChainAcrossSources(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l, random := newLab(t), rand.New(rand.NewPCG(seed, 4))
			l.serveAll(from(anyForms(random), anySaid(random)))
			l.joinAll()
			for range 60 {
				core, settled, before := l.core, !l.core.Fleet.Settling(), l.known()
				did := l.doAcrossSources(random)
				if l.wantOneChain(); l.core == core && settled {
					l.wantNothingStale(before)
				}
				if t.Failed() {
					t.Fatal(did)
				}
			}
		})
	}
}

// wantNothingStale looks at what came with one change of the sources.
func (l *lab) wantNothingStale(before known) {
	l.t.Helper()
	for key, status := range l.present() {
		if _, was := before.present[key]; was || status == health.Unknown || l.asked(key.Cluster, key.Address).Override != nil {
			continue
		}
		from := l.core.Rulings.Cluster(key.Cluster).Source
		if before.heard[from.Source] && before.heard[from.EndpointSource()] && !before.hidden[from.Name] {
			l.t.Errorf("%v comes as %v, though its sources were heard without it", key, status)
		}
	}
}

// anyForms are clusters in any of the ways in which they come with their
// endpoints, or apart from them.
func anyForms(random *rand.Rand) *source.Set {
	all := someClusters(random)
	for i, k := range all {
		switch random.IntN(6) {
		case 0:
			all[i] = asEDS(k)
		case 1:
			all[i] = bare(k)
		case 2:
			all[i] = lone(k)
		}
	}
	return localSet(all)
}

func anySaid(random *rand.Rand) *source.Set { return said(anyForms(random).Clusters...) }

// anyUpstream is what an upstream has at a start, or when it takes the place of
// another: nothing yet, what it said before, or an answer.
func anyUpstream(random *rand.Rand) *source.Set {
	set := anySaid(random)
	switch random.IntN(4) {
	case 0, 1:
		set.Clusters, set.Awaited = nil, true
	case 2:
		set.Awaited = true
	}
	return set
}

func (l *lab) doAcrossSources(random *rand.Rand) string {
	switch random.IntN(12) {
	case 0, 1, 2:
		l.intake.hear(anyForms(random))
		l.step(machine.Tick{})
		return "the file changes"
	case 3:
		l.intake.hear(anySaid(random))
		l.step(machine.Tick{})
		return "the upstream answers"
	case 4, 5:
		l.killed(random)
		l.serveAll(from(anyForms(random), anyUpstream(random)))
		l.joinAll()
		return "restart"
	case 6:
		l.intake.restart(from(anyForms(random), anyUpstream(random)), catalog.NewRules(l.rules))
		l.step(machine.Tick{})
		return "reload"
	default:
		return l.doSomethingElse(random)
	}
}
