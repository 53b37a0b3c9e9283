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

// newSourcesLab restarts a lab whose local source had db, and its upstream web, each
// with one endpoint that is down and another that is up. From then on, all is up.
func newSourcesLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.truth[address1], l.truth[address3] = health.Unhealthy, health.Unhealthy
	l.serveAll(sourceSets(locally(web("db", address3, address2)), answeredSet(web("web", address1, address2))))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantTransitions(4)
	l.truth[address1], l.truth[address3] = health.Healthy, health.Healthy
	l.restart()
	return l
}

// serveSettled serves the sets of two sources, and lets hdsd settle.
func (l *lab) serveSettled(sets []*source.Set) {
	l.t.Helper()
	l.serveAll(sets)
	l.joinAll()
	l.pass(settle + 10*time.Second)
}

// transitionsOf returns the transitions of an address as text.
func (l *lab) transitionsOf(cluster, address string) (text string) {
	for _, t := range l.transitions {
		if t.Endpoint == keyOf(cluster, address) {
			text += t.From.String() + "-" + t.To.String() + " "
		}
	}
	return text
}

func (l *lab) wantHistory(cluster, address, want string) {
	l.t.Helper()
	if got := l.transitionsOf(cluster, address); got != want {
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
	l := newSourcesLab(t)
	l.serveSettled(sourceSets(locally(web("db", address3, address2)), unreadSet()))
	l.wantHistory("db", address3, wasDown+recovers)
	l.intake.take(locally(web("db", address2)))
	l.wantHistory("db", address3, wasDown+recovers+leaves)
	l.pass(report)
	l.intake.take(locally(web("db", address3, address2)))
	l.wantPublished("db", address3, health.Unknown)
	l.pass(10 * time.Second)
	l.wantPublished("db", address3, health.Healthy)
	l.wantHistory("db", address3, wasDown+recovers+leaves+begins)

	// The other source is heard: what it had stands.
	l.intake.take(answeredSet(web("web", address1, address2)))
	l.wantPublished("web", address1, health.Unhealthy)
	l.pass(10 * time.Second)
	l.wantHistory("web", address1, wasDown+recovers)
	l.wantOneChain()
	if len(l.keptEndpoints()) > 0 {
		t.Errorf("kept are %v", l.keptEndpoints())
	}
}

// TestLackingEndpointStartsAnew adds an endpoint that its source did not have at the end of the time to
// settle. Another source is unread, so the endpoint was not recorded as gone.
func TestLackingEndpointStartsAnew(t *testing.T) {
	for name, again := range map[string]*sourceCluster{
		"checked": web("db", address3, address2), "set aside": aside(web("db", address3, address2)), "by EDS": asEDS(web("db", address3, address2)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newSourcesLab(t)
			l.serveSettled(sourceSets(locally(web("db", address2)), unreadSet()))
			l.wantHistory("db", address3, wasDown)
			l.intake.take(locally(again))
			l.wantPublished("db", address3, health.Unknown)
			l.wantHistory("db", address3, wasDown+"UNHEALTHY-UNKNOWN ")
			l.intake.take(locally(web("db", address3, address2)))
			l.pass(10 * time.Second)
			l.wantHistory("db", address3, wasDown+"UNHEALTHY-UNKNOWN "+begins)
			l.wantOneChain()
		})
	}
}

// TestLackingEndpointKeepsOverride covers that hdsd forgets the votes only.
func TestLackingEndpointKeepsOverride(t *testing.T) {
	l := newLab(t)
	l.truth[address3] = health.Unhealthy
	l.serveAll(sourceSets(locally(web("db", address3, address2)), answeredSet()))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.drain(keyOf("db", address3))
	l.restart()
	l.serveSettled(sourceSets(locally(web("db", address2)), unreadSet()))
	l.wantHistory("db", address3, wasDown+"UNHEALTHY-DRAINING ")
	l.truth[address3] = health.Unknown // nobody says anything
	l.intake.take(locally(web("db", address3, address2)))
	l.wantHistory("db", address3, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN UNKNOWN-DRAINING ")
	l.wantPublished("db", address3, drained)
	l.wantOneChain()
	l.restart()
	l.serveSettled(sourceSets(locally(web("db", address3, address2)), answeredSet()))
	l.wantPublished("db", address3, drained)
	l.clearScope(keyOf("db", address3))
	l.wantPublished("db", address3, health.Unknown)
	l.wantHistory("db", address3, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN UNKNOWN-DRAINING DRAINING-UNKNOWN ")
}

// TestLackingEndpointForgetsVotesUnderOverride ends the override before the endpoint returns.
func TestLackingEndpointForgetsVotesUnderOverride(t *testing.T) {
	l := newLab(t)
	l.truth[address3] = health.Unhealthy
	l.serveAll(sourceSets(locally(web("db", address3, address2)), answeredSet()))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.drain(keyOf("db", address3))
	l.restart()
	l.serveSettled(sourceSets(locally(web("db", address2)), unreadSet()))
	l.clearScope(keyOf("db", address3))
	l.truth[address3] = health.Unknown
	l.intake.take(locally(web("db", address3, address2)))
	l.wantHistory("db", address3, wasDown+"UNHEALTHY-DRAINING DRAINING-UNKNOWN ")
	l.restart()
	l.serveSettled(sourceSets(locally(web("db", address3, address2)), answeredSet()))
	l.wantPublished("db", address3, health.Unknown)
	if len(l.voted) > 0 {
		t.Errorf("of the votes is still stored %v", l.voted)
	}
}

// TestLateSourceContinuesHealth covers a source that may have had the endpoint all the time: the health from
// before the start continues.
func TestLateSourceContinuesHealth(t *testing.T) {
	db, mesh := web("db", address3, address2), web("web", address1, address2)
	for name, c := range map[string]struct {
		first, then []*source.Set
		cluster     string
		address     string
	}{
		"a source that is heard late":              {sourceSets(locally(db), unreadSet()), sourceSets(locally(db), answeredSet(mesh)), "web", address1},
		"a mistake that ends":                      {sourceSets(locally(hiding(db)), unreadSet()), sourceSets(locally(db), unreadSet()), "db", address3},
		"endpoints of a source that is heard late": {sourceSets(locally(bare(db)), unreadSet()), sourceSets(locally(bare(db)), answeredSet(lone(db))), "db", address3},
		"a cluster of a source that is heard late": {sourceSets(locally(lone(db)), unreadSet()), sourceSets(locally(lone(db)), answeredSet(asEDS(bare(db)))), "db", address3},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSourcesLab(t)
			l.serveSettled(c.first)
			l.intake.take(c.then[0])
			l.intake.take(c.then[1])
			l.wantPublished(c.cluster, c.address, health.Unhealthy)
			l.pass(10 * time.Second)
			l.wantHistory(c.cluster, c.address, wasDown+recovers)
			l.wantOneChain()
		})
	}
}

// TestEndpointContinuesWhileSettling covers an endpoint that its source lacks at first.
func TestEndpointContinuesWhileSettling(t *testing.T) {
	l := newSourcesLab(t)
	l.serveAll(sourceSets(locally(web("db", address2)), unreadSet()))
	l.intake.take(locally(web("db", address3, address2)))
	l.wantPublished("db", address3, health.Unhealthy)
	l.intake.take(locally(web("db", address2)))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantHistory("db", address3, wasDown) // it may be the other's
	l.intake.take(answeredSet(web("web", address1, address2)))
	l.wantHistory("db", address3, wasDown+"UNHEALTHY-UNKNOWN ")
	l.intake.take(locally(web("db", address3, address2)))
	l.wantPublished("db", address3, health.Unknown)
	l.wantOneChain()
}

// TestAssignmentGoneDuringRestart covers that its endpoints are gone as soon as each source has answered.
func TestAssignmentGoneDuringRestart(t *testing.T) {
	mesh := web("web", address1, address2)
	for name, c := range map[string]struct {
		before, after []*source.Set
	}{
		"a file's":              {sourceSets(locally(asEDS(mesh)), answeredSet()), sourceSets(locally(bare(mesh)), answeredSet())},
		"a management server's": {sourceSets(locally(), answeredSet(asEDS(mesh))), sourceSets(locally(), answeredSet(bare(mesh)))},
		"that of another":       {sourceSets(locally(bare(mesh)), answeredSet(lone(mesh))), sourceSets(locally(bare(mesh)), answeredSet())},
		"with its cluster":      {sourceSets(locally(), answeredSet(asEDS(mesh))), sourceSets(locally(), answeredSet())},
		"the cluster alone":     {sourceSets(locally(bare(mesh)), answeredSet(lone(mesh))), sourceSets(locally(), answeredSet(lone(mesh)))},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.truth[address1] = health.Unhealthy
			l.serveSettled(c.before)
			l.wantHistory("web", address1, wasDown)
			l.restart()
			l.serveAll(c.after)
			l.joinAll()
			l.pass(settle - report)
			l.wantHistory("web", address1, wasDown)
			l.pass(2 * report)
			l.wantHistory("web", address1, wasDown+"UNHEALTHY-UNKNOWN ")
			l.wantHistory("web", address2, begins+leaves)
			if len(l.keptEndpoints()) > 0 {
				t.Errorf("kept are %v", l.keptEndpoints())
			}
			// It begins anew, also after another restart.
			l.restart()
			l.serveSettled(c.after)
			l.truth[address1] = health.Healthy
			l.intake.take(c.before[0])
			l.intake.take(c.before[1])
			l.wantPublished("web", address1, health.Unknown)
			l.pass(10 * time.Second)
			l.wantHistory("web", address1, wasDown+"UNHEALTHY-UNKNOWN "+begins)
			l.wantOneChain()
		})
	}
}

// TestAwaitedAssignmentIsNotGone covers a source that has not answered for the assignment yet.
func TestAwaitedAssignmentIsNotGone(t *testing.T) {
	mesh := web("web", address1, address2)
	l := newLab(t)
	l.truth[address1] = health.Unhealthy
	l.serveSettled(sourceSets(locally(bare(mesh)), answeredSet(lone(mesh))))
	l.restart()
	waits := true
	l.pending = func(name string) bool { return waits && name == "upstream" }
	l.serveSettled(sourceSets(locally(bare(mesh)), answeredSet()))
	l.wantHistory("web", address1, wasDown)
	waits = false
	l.intake.take(answeredSet())
	l.wantHistory("web", address1, wasDown+"UNHEALTHY-UNKNOWN ")
}

// TestRejectedAssignmentIsNotGone covers the mistake in either source.
func TestRejectedAssignmentIsNotGone(t *testing.T) {
	mesh := web("web", address1, address2)
	l := newLab(t)
	l.truth[address1] = health.Unhealthy
	l.serveSettled(sourceSets(locally(bare(mesh)), answeredSet(lone(mesh))))
	l.intake.take(answeredSet(hiding(lone(mesh))))
	l.wantPublished("web", address1, health.Unhealthy)
	l.restart()
	l.serveSettled(sourceSets(locally(bare(mesh)), answeredSet(hiding(lone(mesh)))))
	l.wantHistory("web", address1, wasDown)
	l.intake.take(answeredSet(lone(mesh)))
	l.wantPublished("web", address1, health.Unhealthy)
	l.pass(10 * time.Second)
	l.wantHistory("web", address1, wasDown)
}

// TestHistoryIsChainAcrossSources is TestHistoryIsChain with a second source that is often unread. An
// endpoint that is new to complete sources starts anew.
func TestHistoryIsChainAcrossSources(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l, random := newLab(t), rand.New(rand.NewPCG(seed, 4))
			l.serveAll(sourceSets(anyForms(random), randomSet(random)))
			l.joinAll()
			for range 60 {
				core, settled, before := l.core, !l.core.Fleet.Settling(), l.snapshotSources()
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
func (l *lab) wantNothingStale(before knownState) {
	l.t.Helper()
	for key, status := range l.present() {
		if _, was := before.present[key]; was || status == health.Unknown || l.queryEndpoint(key.Cluster, key.Address).Override != nil {
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

func randomSet(random *rand.Rand) *source.Set { return answeredSet(anyForms(random).Clusters...) }

// anyUpstream is what an upstream has at a start, or when it takes the place of
// another: nothing yet, what it said before, or an answer.
func anyUpstream(random *rand.Rand) *source.Set {
	set := randomSet(random)
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
		l.intake.take(anyForms(random))
		l.step(machine.Tick{})
		return "the file changes"
	case 3:
		l.intake.take(randomSet(random))
		l.step(machine.Tick{})
		return "the upstream answers"
	case 4, 5:
		l.killed(random)
		l.serveAll(sourceSets(anyForms(random), anyUpstream(random)))
		l.joinAll()
		return "restart"
	case 6:
		l.intake.restart(sourceSets(anyForms(random), anyUpstream(random)), catalog.NewRules(l.rules))
		l.step(machine.Tick{})
		return "reload"
	default:
		return l.doRandomOrder(random)
	}
}
