package ruling_test

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/ruling"
	"hdsd/source"
)

// inZones prepares the cluster web with the same addresses in each of some zones.
func inZones(zones ...string) *catalog.Cluster {
	return catalog.Prepare(zoned(zones...), catalog.NewRules(&configv1.Config{}))
}

// excludedIn prepares the same with a check that no checker can do: all of it is excluded.
func excludedIn(zone string) *catalog.Cluster {
	out := zoned(zone)
	out.HealthChecks = []*corev3.HealthCheck{{HealthChecker: &corev3.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &corev3.HealthCheck_CustomHealthCheck{Name: "x"}}}}
	out.Config.HealthChecks = out.HealthChecks
	return catalog.Prepare(out, catalog.NewRules(&configv1.Config{}))
}

func zoned(zones ...string) *source.Cluster {
	out := sourceOf("web", addresses...)
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: "web"}
	for _, zone := range zones {
		group := sourceOf("web", addresses...).Assignment.Message().GetEndpoints()[0]
		group.Locality.Zone = zone
		assignment.Endpoints = append(assignment.Endpoints, group)
	}
	out.Assignment = source.EncodeAssignment(assignment)
	return out
}

func inZone(key health.Endpoint, zone string) health.Endpoint {
	key.Locality.Zone = zone
	return key
}

// TestAnEndpointThatMovesKeepsItsHealth: where only the locality changes, data planes get
// the same health at once, and the history says what became of the endpoint.
func TestAnEndpointThatMovesKeepsItsHealth(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, down)
	l.vote(a2, up)
	if err := l.override(health.Endpoint{Cluster: "web", Address: a2.Address}, drained, 0); err != nil {
		t.Fatal(err)
	}
	recorded := len(l.transitions)
	l.say(inZones("b"))
	b1, b2 := inZone(a1, "b"), inZone(a2, "b")
	l.wantPublished(b1, down)
	l.wantPublished(b2, drained)
	want := map[health.Endpoint]string{
		a1: `UNHEALTHY UNKNOWN moved to locality "eu/b"`, b1: `UNKNOWN UNHEALTHY moved from locality "eu/a"`,
		a2: `DRAINING UNKNOWN moved to locality "eu/b"`, b2: `UNKNOWN DRAINING moved from locality "eu/a"`,
	}
	for _, tr := range l.transitions[recorded:] {
		if got := tr.From.String() + " " + tr.To.String() + " " + tr.Reason; got != want[tr.Endpoint] {
			t.Errorf("%v: recorded %q, want %q", tr.Endpoint, got, want[tr.Endpoint])
		}
		if tr.Moved == nil || *tr.Moved != inZone(a1, map[string]string{"a": "b", "b": "a"}[tr.Endpoint.Locality.Zone]).Locality {
			t.Errorf("%v: the other locality is %v", tr.Endpoint, tr.Moved)
		}
		delete(want, tr.Endpoint)
	}
	if len(want) > 0 {
		t.Errorf("not recorded: %v", want)
	}
	l.start()
	l.serve(inZones("b"))
	l.wantPublished(b1, down)
	l.wantPublished(b2, drained)
	_, effects, err := l.table.ClearOverrides(l.now, health.Endpoint{Cluster: "web", Address: a2.Address}, false, "ann")
	if err != nil {
		t.Fatal(err)
	}
	l.do(effects)
	l.wantPublished(b2, up)
}

// TestOnlyOneMoves: where an address comes to several localities, or leaves several, nobody
// can tell which is which.
func TestOnlyOneMoves(t *testing.T) {
	for _, test := range []struct{ before, after []string }{
		{[]string{"a"}, []string{"b", "c"}},
		{[]string{"a", "b"}, []string{"c"}},
		{[]string{"a"}, []string{"a", "b", "c"}},
	} {
		l := newLab(t)
		l.serve(inZones(test.before...))
		for _, zone := range test.before {
			l.vote(inZone(a1, zone), down)
		}
		l.say(inZones(test.after...))
		last := inZone(a1, test.after[len(test.after)-1])
		id, ok := l.table.Find(last.Hash())
		if !ok || l.table.Ruling(id).Judged {
			t.Errorf("%v to %v: the one in %s has %+v", test.before, test.after, last.Locality.Zone, l.table.Ruling(id))
		}
	}
}

// TestANewLocalityBeforeTheOldOneGoes, as behind the relay: the new endpoint has the verdict at
// once, and when the old one goes, that is the move.
func TestANewLocalityBeforeTheOldOneGoes(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, down)
	l.vote(a2, up)
	recorded := len(l.transitions)
	b1, b2 := inZone(a1, "b"), inZone(a2, "b")
	l.say(inZones("a", "b"))
	for key, want := range map[health.Endpoint]health.Status{a1: down, b1: down, a2: up, b2: up} {
		id, ok := l.table.Find(key.Hash())
		if !ok || l.table.Ruling(id).Health != want {
			t.Errorf("%v: %+v, want %v", key, l.table.Ruling(id), want)
		}
	}
	if len(l.transitions) > recorded {
		t.Errorf("recorded %+v", l.transitions[recorded:])
	}
	l.vote(b2, down)
	l.say(inZones("b"))
	l.wantPublished(b1, down)
	for _, tr := range l.transitions[recorded:] {
		if moved := tr.Moved != nil; moved != (tr.Endpoint.Address == a1.Address) {
			t.Errorf("recorded %+v", tr)
		}
	}
	if n := len(l.transitions) - recorded; n != 4 {
		t.Errorf("%d transitions, want 2 of the move, a verdict and one that is gone", n)
	}
}

// TestAMoveWhileHdsdIsDown is one all the same: the source has answered, without the endpoint
// where it was.
func TestAMoveWhileHdsdIsDown(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, down)
	l.vote(a2, up)
	if err := l.override(health.Endpoint{Cluster: "web", Address: a2.Address}, drained, 0); err != nil {
		t.Fatal(err)
	}
	recorded := len(l.transitions)
	l.start()
	l.say(inZones("b"))
	b1, b2 := inZone(a1, "b"), inZone(a2, "b")
	l.wantPublished(b1, down)
	l.wantPublished(b2, drained)
	l.serve(inZones("b"))
	for _, tr := range l.transitions[recorded:] {
		if tr.Moved == nil {
			t.Errorf("recorded %+v", tr)
		}
	}
	if n := len(l.transitions) - recorded; n != 4 {
		t.Errorf("%d transitions of 2 moves", n)
	}
	if _, kept := l.stored.Voted[b2.Hash()]; !kept || len(l.stored.Voted) != 1 {
		t.Errorf("stored for where it is: %v, in all %v", kept, l.stored.Voted)
	}
	_, effects, err := l.table.ClearOverrides(l.now, health.Endpoint{Cluster: "web", Address: a2.Address}, false, "ann")
	if err != nil {
		t.Fatal(err)
	}
	l.do(effects)
	l.wantPublished(b2, up)
}

// TestNoMoveWhileHdsdIsDown: the source has not answered, has the endpoint where it was, or
// several may have moved; or it was gone for longer.
func TestNoMoveWhileHdsdIsDown(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []string
		unanswered    bool
		settled       bool
	}{
		"not answered":         {before: []string{"a"}, after: []string{"b"}, unanswered: true},
		"several are there":    {before: []string{"a"}, after: []string{"a", "b", "c"}},
		"which of two":         {before: []string{"a"}, after: []string{"b", "c"}},
		"which of two before":  {before: []string{"a", "b"}, after: []string{"c"}},
		"long after the start": {before: []string{"a"}, after: []string{"b"}, settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.serve(inZones(test.before...))
			for _, zone := range test.before {
				l.vote(inZone(a1, zone), down)
			}
			l.start()
			if test.settled { // another source has not answered
				l.do(l.table.Apply(l.now, ruling.Change{Answered: map[string]bool{"local": true}}))
				l.do(l.table.Settle(l.now))
			}
			l.do(l.table.Apply(l.now, ruling.Change{Changed: []*catalog.Cluster{inZones(test.after...)}, Answered: map[string]bool{"local": !test.unanswered}}))
			last := inZone(a1, test.after[len(test.after)-1])
			id, ok := l.table.Find(last.Hash())
			if !ok || l.table.Ruling(id).Judged {
				t.Errorf("%+v", l.table.Ruling(id))
			}
		})
	}
}

// TestAFreezeHoldsTheHealthOfAnEndpointThatMoves, after a restart too, and if it moves while hdsd
// is down.
func TestAFreezeHoldsTheHealthOfAnEndpointThatMoves(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, down)
	_, frozen, effects := l.table.Freeze(l.now, "ann", "work", true)
	l.do(effects)
	l.vote(a1, up)
	l.say(inZones("b"))
	l.wantPublished(inZone(a1, "b"), down)
	if _, held := frozen.Held[a1.Hash()]; !held {
		t.Error("the freeze that others read has changed")
	}
	l.start()
	l.serve(inZones("b"))
	l.wantPublished(inZone(a1, "b"), down)
	l.start()
	l.serve(inZones("c"))
	l.wantPublished(inZone(a1, "c"), down)
	_, effects = l.table.Unfreeze("ann")
	l.do(effects)
	l.wantPublished(inZone(a1, "c"), up)
}

// TestAnExcludedEndpointThatMovesHoldsItsVerdict, whether it is excluded before the move, from
// then on, or until then, and if it moves while hdsd is down.
func TestAnExcludedEndpointThatMovesHoldsItsVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *catalog.Cluster
		restart       bool
	}{
		"from then on":           {before: inZones("a"), after: excludedIn("b")},
		"until then":             {before: excludedIn("a"), after: inZones("b")},
		"before and after":       {before: excludedIn("a"), after: excludedIn("b")},
		"while hdsd is down":     {before: excludedIn("a"), after: excludedIn("b"), restart: true},
		"checked when it is up":  {before: excludedIn("a"), after: inZones("b"), restart: true},
		"excluded when it is up": {before: inZones("a"), after: excludedIn("b"), restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.serve(inZones("a"))
			l.vote(a1, down)
			l.vote(a2, up)
			l.say(test.before)
			if test.restart {
				l.start()
				l.serve(test.after)
			} else {
				l.say(test.after)
			}
			for key, want := range map[health.Endpoint]health.Status{inZone(a1, "b"): down, inZone(a2, "b"): up} {
				id, ok := l.table.Find(key.Hash())
				if !ok || l.table.Ruling(id).Health != want {
					t.Errorf("%v is %+v, want %v", key, l.table.Ruling(id), want)
				}
			}
		})
	}
}

// TestOneWithItsOwnHistoryHasNotMoved: an endpoint that came with the verdict of another one,
// and had verdicts of its own since then, keeps that history when the other one goes.
func TestOneWithItsOwnHistoryHasNotMoved(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, up)
	l.say(inZones("a", "b"))
	b1 := inZone(a1, "b")
	for _, to := range []health.Status{down, up} {
		l.now = l.now.Add(time.Hour)
		l.vote(b1, to)
		l.vote(a1, to)
	}
	l.say(inZones("b"))
	l.wantLast(up, unknown, ruling.InNoSource)
	l.wantPublished(b1, up)
}

// TestOneThatHasMovedItselfHasNoHeirAnyMore: an endpoint beside which another one came moves,
// and comes back later. When it goes for good, it has not become the other one.
func TestOneThatHasMovedItselfHasNoHeirAnyMore(t *testing.T) {
	l := newLab(t)
	l.serve(inZones("a"))
	l.vote(a1, up)
	l.say(inZones("a", "b"))
	l.say(inZones("c", "b"))
	l.wantLast(unknown, up, `moved from locality "eu/a"`)
	l.say(inZones("a", "b"))
	l.wantLast(unknown, up, `moved from locality "eu/c"`)
	l.say(inZones("b"))
	l.wantLast(up, unknown, ruling.InNoSource)
}
