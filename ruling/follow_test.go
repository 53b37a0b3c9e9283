package ruling_test

import (
	"testing"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/ruling"
)

// newFollower makes a lab with a table that follows entries.
func newFollower(t *testing.T) *lab {
	l := newLab(t)
	ruling.RestoreFollower(l.table, log.State{})
	return l
}

// follow lets the table follow an entry.
func (l *lab) follow(e *log.Entry) {
	for _, c := range ruling.Follow(l.table, l.now, e) {
		l.publish(&ruling.Decision{Change: c})
	}
}

// apply gives the table these clusters, and records nothing.
func (l *lab) apply(clusters ...*catalog.Cluster) {
	effects := l.table.Apply(l.now, ruling.Change{Changed: clusters, Answered: map[string]bool{"local": true}, Complete: true})
	for i := range effects.Decisions {
		l.publish(&effects.Decisions[i])
	}
}

// remove removes a cluster from the table, and records nothing.
func (l *lab) remove(name string) {
	l.table.Apply(l.now, ruling.Change{Removed: []string{name}, Answered: map[string]bool{"local": true}, Complete: true})
}

func (l *lab) transition(key health.Endpoint, from, to health.Status, reason string) *log.Entry {
	return &log.Entry{Transitions: []health.Transition{{Time: l.now, Endpoint: key, From: from, To: to, Reason: reason}}}
}

// A replica may read its sources later than the one that decides.
func TestFollowBeforeTheClusterIsThere(t *testing.T) {
	l := newFollower(t)
	l.follow(l.transition(a1, unknown, down, "3 of 3 checkers say UNHEALTHY"))
	l.follow(&log.Entry{Overrides: []log.OverrideChange{{Override: log.Override{Scope: a2, Status: drained, Reason: "kernel", Author: "ann"}, Kind: log.Set}}})
	l.apply(web("web", addresses...))
	l.wantPublished(a1, down)
	l.wantPublished(a2, drained)
	l.follow(l.transition(a1, down, up, "3 of 3 checkers say HEALTHY"))
	l.wantPublished(a1, up)
}

// Sources of two replicas may differ for a while. An endpoint that is gone elsewhere keeps its health here.
func TestFollowKeepsAnEndpointThatIsGoneElsewhere(t *testing.T) {
	l := newFollower(t)
	l.apply(web("web", addresses...))
	l.follow(l.transition(a1, unknown, down, "3 of 3 checkers say UNHEALTHY"))
	l.follow(l.transition(a1, down, unknown, ruling.InNoSource))
	l.wantPublished(a1, down)
	l.follow(l.transition(a1, unknown, up, "3 of 3 checkers say HEALTHY"))
	l.wantPublished(a1, up)
}

// An endpoint without a cluster here is forgotten when it is gone elsewhere.
func TestFollowForgetsAnEndpointThatIsGone(t *testing.T) {
	l := newFollower(t)
	l.follow(l.transition(a1, unknown, down, "3 of 3 checkers say UNHEALTHY"))
	l.follow(l.transition(a1, down, unknown, ruling.InNoSource))
	if l.table.Remembers(a1.Hash()) {
		t.Error("it is remembered")
	}
	l.apply(web("web", addresses...))
	l.wantPublished(a1, unknown)
}

// Sources of two replicas may lose an endpoint in any order. What is gone everywhere is forgotten.
func TestFollowForgetsAnEndpointThatIsGoneEverywhere(t *testing.T) {
	l := newFollower(t)
	l.apply(web("web", addresses...))
	l.follow(l.transition(a1, unknown, down, "3 of 3 checkers say UNHEALTHY"))
	l.follow(l.transition(a2, unknown, down, "3 of 3 checkers say UNHEALTHY"))
	l.follow(l.transition(a1, down, unknown, ruling.InNoSource))
	l.apply(web("web", addresses[2]))
	l.follow(l.transition(a2, down, unknown, ruling.InNoSource))
	for _, key := range []health.Endpoint{a1, a2} {
		if l.table.Remembers(key.Hash()) {
			t.Errorf("%v is remembered", key)
		}
	}
	l.apply(web("web", addresses...))
	l.wantPublished(a1, unknown)
	l.wantPublished(a2, unknown)
}

// A source of one replica may lose a cluster for a moment. Data planes leave it to hdsd as before, unless
// the table that decides has forgotten it meanwhile.
func TestFollowKeepsTheTakeoverOfAClusterThatLeaves(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		l := newFollower(t)
		l.apply(web("web", addresses[0]))
		l.follow(l.transition(a1, unknown, up, "3 of 3 checkers say HEALTHY"))
		l.follow(&log.Entry{TakenOver: []string{"web"}})
		if forgotten {
			l.follow(&log.Entry{Removed: []string{"web"}})
		}
		l.wantChecks("web", false, 0)
		l.remove("web")
		l.apply(web("web", addresses[0]))
		l.wantChecks("web", forgotten, 0)
		l.follow(&log.Entry{TakenOver: []string{"web"}})
		l.wantChecks("web", false, 0)
	}
}

// The table that decides may know first that a cluster has checks of its own.
func TestFollowATakeoverBeforeOwnChecksAreThere(t *testing.T) {
	l := newFollower(t)
	l.apply(borrowing("web", addresses[0]))
	l.follow(l.transition(a1, unknown, up, "3 of 3 checkers say HEALTHY"))
	l.follow(&log.Entry{TakenOver: []string{"web"}})
	l.apply(web("web", addresses[0]))
	l.wantChecks("web", false, 0)
}

// The table that decides may have seen a cluster go and come back with checks of its own, which is all yet
// to come here.
func TestFollowATakeoverBeforeItsClusterHasGone(t *testing.T) {
	l := newFollower(t)
	l.apply(borrowing("web", addresses[0]))
	l.follow(&log.Entry{Removed: []string{"web"}})
	l.follow(&log.Entry{TakenOver: []string{"web"}})
	l.remove("web")
	l.apply(borrowing("web", addresses[0]))
	l.apply(web("web", addresses[0]))
	l.wantChecks("web", false, 0)
}
