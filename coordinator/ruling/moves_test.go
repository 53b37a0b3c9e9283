package ruling_test

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/coordinator/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
)

// inZones prepares the cluster web with the same addresses in each of some zones.
func inZones(zones ...string) *catalog.Cluster {
	out := sourceOf("web", addresses...)
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: "web"}
	for _, zone := range zones {
		group := sourceOf("web", addresses...).Assignment.Message().GetEndpoints()[0]
		group.Locality.Zone = zone
		assignment.Endpoints = append(assignment.Endpoints, group)
	}
	out.Assignment = source.EncodeAssignment(assignment)
	return catalog.Prepare(out, catalog.NewRules(&configv1.Config{}))
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
// can tell which is which. One that stays where it is has not moved.
func TestOnlyOneMoves(t *testing.T) {
	for _, test := range []struct{ before, after []string }{
		{[]string{"a"}, []string{"b", "c"}},
		{[]string{"a", "b"}, []string{"c"}},
		{[]string{"a"}, []string{"a", "b"}},
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
