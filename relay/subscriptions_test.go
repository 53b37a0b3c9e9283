package relay

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// TestTheLastNameThatAClientGivesUp is not kept: no names after some are none.
func TestTheLastNameThatAClientGivesUp(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{clusters, assignments} {
		m := newModel(t, 1, k, false)
		m.version, m.wanted[0] = 1, 1
		m.toggle(0)
		m.settle()
		if m.check(); m.resources[0] == nil {
			t.Fatal("the client does not have it")
		}
		m.toggle(0)
		m.check()
		if n := m.server.stock.size(); n != 0 {
			t.Errorf("%s: %d resources are kept", k.typeURL(), n)
		}
		m.setHealth(0)
		if m.flip() {
			t.Errorf("%s: it is sent", k.typeURL())
		}
	}
}

// TestAResponseThatCrossesAnUnsubscription passes, and is not kept, with a wildcard neither.
func TestAResponseThatCrossesAnUnsubscription(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"web": 0, "xdstp://a/t/*": 1, "*": 0} {
		p := newPlane(t, benchServer())
		p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{name, "other"}})
		if !p.give(assignments, "1", "1") {
			t.Fatal("it does not pass")
		}
		p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResourceNamesUnsubscribe: []string{name}})
		if !p.give(assignments, "2", "2") {
			t.Error("it does not pass")
		}
		if n := p.server.stock.size(); n != want {
			t.Errorf("%s: %d resources are kept, want %d", name, n, want)
		}
	}
}

// TestWhatAClientMayHaveIsRemembered when its stream ends, and taken up where the client brings it
// back.
func TestWhatAClientMayHaveIsRemembered(t *testing.T) {
	t.Parallel()
	m := newModel(t, 1, assignments, true)
	m.toggle(0)
	m.toggle(1)
	m.wanted[0], m.wanted[1] = 1, 2
	m.settle()
	m.wanted[0], m.wanted[1], m.bad[3], m.bad[4] = 3, 4, true, true
	for m.hear(); len(m.answers) == 0; m.push() {
	}
	m.answer()
	m.stream.close()
	if n := m.server.stock.size(); n != 4 {
		t.Errorf("%d resources are remembered, want both versions of two", n)
	}
	second := plane{t, &stream{server: m.server, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1), upstream: openStream{}}}
	r := &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: assignments.typeURL(), ResourceNamesSubscribe: []string{nameOf(0), nameOf(1)},
		InitialResourceVersions: map[string]string{nameOf(0): "1", nameOf(1): "2"},
	}
	second.request(proto.CloneOf(r))
	for i, version := range []int{1, 2} {
		if s := second.ledgers[assignments].holdings.get(nameOf(i)); s == nil || m.versionOf(s.item.body) != version {
			t.Errorf("of %s, hdsd knows %v", nameOf(i), s)
		}
	}
	second.close()
	m.server.memory.forgetAll()
	if n := m.server.stock.size(); n != 0 || m.server.memory.size != 0 {
		t.Errorf("%d resources are left, %d are counted", n, m.server.memory.size)
	}
}
