package coordinator

import (
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/ruling"
	"hdsd/source"
)

// sourceSets gives sets of two sources; one without clusters was not read.
func sourceSets(local, upstream *source.Set) []*source.Set {
	local.Source, upstream.Source = "local", "upstream"
	return []*source.Set{local, upstream}
}

func unreadSet() *source.Set { return &source.Set{Awaited: true} }

func answeredSet(clusters ...*sourceCluster) *source.Set {
	for _, c := range clusters {
		c.Source = "upstream"
	}
	return &source.Set{Source: "upstream", Clusters: clusters}
}

// upstreamAway is a lab that was started again while an upstream is away, which
// had web before, with an endpoint that is down and another that is up.
func upstreamAway(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.truth[address1] = health.Unhealthy
	l.serveAll(sourceSets(&source.Set{Clusters: []*sourceCluster{web("db", address3)}}, answeredSet(web("web", address1, address2))))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.wantTransitions(3)
	l.restart()
	l.forget = nil
	l.serveAll(sourceSets(&source.Set{Clusters: []*sourceCluster{web("db", address3)}}, unreadSet()))
	l.joinAll()
	return l
}

// serveAll is serve with several sources.
func (l *lab) serveAll(sets []*source.Set) {
	l.intake.restart(sets, catalog.NewRules(l.rules))
	l.step(machine.Begun{})
}

// TestUnreadSourceIsNotEmpty covers that none of its clusters is gone or forgotten, however long the source
// is away.
func TestUnreadSourceIsNotEmpty(t *testing.T) {
	l := upstreamAway(t)
	l.drain(keyOf("db", address3))
	recorded := len(l.transitions)
	l.pass(settle + 10*time.Second)
	l.now = l.now.Add(2 * machine.ForgetInterval)
	l.pass(10 * time.Second)
	l.intake.take(&source.Set{Source: "local", Clusters: []*sourceCluster{web("db", address3, "10.0.0.4:80")}})
	l.pass(10 * time.Second)
	l.wantTransitions(recorded + 1) // of the new one
	if l.forget != nil || len(l.trials) == 0 {
		t.Errorf("the store was told to forget: %t, trials %v", l.forget != nil, l.trials)
	}

	// It is back: one endpoint is as it was, another is gone.
	l.intake.take(answeredSet(web("web", address1)))
	l.step(machine.Tick{})
	l.wantTold("web", address1, health.Unhealthy, health.Unhealthy, "")
	l.wantLast(address2, health.Healthy, health.Unknown, ruling.InNoSource)
	l.pass(10 * time.Second)
	l.wantTransitions(recorded + 2)
	if l.forget == nil || !l.forget(keyOf("web", address1).Hash()) || l.forget(keyOf("web", address2).Hash()) {
		t.Error("what is gone is not forgotten, or what is there is")
	}
	if sent := l.checkersOf(address1); len(sent) != 3 {
		t.Errorf("%v check what was proven before", sent)
	}
}

// TestSnapshotMayBeIncomplete covers a snapshot that is older than the last known clusters.
func TestSnapshotMayBeIncomplete(t *testing.T) {
	l := upstreamAway(t)
	recorded := len(l.transitions)
	for _, set := range []*source.Set{{Awaited: true}, {Unread: true}} {
		set.Source, set.Clusters = "upstream", []*sourceCluster{web("web", address1)}
		l.intake.take(set)
		l.pass(settle + 10*time.Second)
		l.wantTold("web", address1, health.Unhealthy, health.Unhealthy, "")
		l.wantTransitions(recorded)
	}
	l.intake.take(answeredSet(web("web", address1, address2)))
	l.pass(10 * time.Second)
	l.wantTold("web", address2, health.Healthy, health.Healthy, "")
	l.wantTransitions(recorded)
}

// TestAwaitedEndpointsAreNotGone covers a source that has given a cluster without its endpoints.
func TestAwaitedEndpointsAreNotGone(t *testing.T) {
	l := upstreamAway(t)
	recorded := len(l.transitions)
	l.pass(settle + 10*time.Second)
	waits := answeredSet(bare(web("web")))
	waits.Awaited = true
	l.intake.take(waits)
	l.pass(10 * time.Second)
	l.wantTransitions(recorded)
	l.intake.take(answeredSet(asEDS(web("web", address1, address2))))
	l.wantTold("web", address1, health.Unhealthy, health.Unhealthy, "")
	l.pass(10 * time.Second)
	l.wantTransitions(recorded)
	if len(l.keptEndpoints()) > 0 {
		t.Errorf("kept are %v", l.keptEndpoints())
	}
}

// TestClustersStayUntilSourceAnswers covers a reload with another address of a management server, and with a
// file in its place.
func TestClustersStayUntilSourceAnswers(t *testing.T) {
	l := newLab(t)
	l.serveAll(sourceSets(&source.Set{}, answeredSet(web("web", address1, address2))))
	l.joinAll()
	l.pass(settle + 10*time.Second)
	l.intake.restart(sourceSets(&source.Set{}, unreadSet()), catalog.NewRules(l.rules))
	l.intake.take(&source.Set{Source: "upstream", Unread: true}) // it is given up
	l.pass(10 * time.Second)
	l.wantTransitions(2)
	if l.incomplete || l.core.Rulings.Cluster("web") == nil {
		t.Error("what was known is known no more")
	}
	l.intake.take(answeredSet())
	l.wantTransitions(4)
	l.intake.restart([]*source.Set{{Source: "local"}}, catalog.NewRules(l.rules))
	l.intake.restart(sourceSets(&source.Set{}, unreadSet()), catalog.NewRules(l.rules))
	if !l.incomplete {
		t.Error("what a source said that was removed meanwhile counts again")
	}
}
