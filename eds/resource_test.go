package eds

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
)

// published decodes a frame in both of its forms, which have to agree.
func published(t *testing.T, f *frame) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	delta := new(discoveryv3.DeltaDiscoveryResponse)
	mustUnmarshal(f.bytes, delta)
	state := new(discoveryv3.DiscoveryResponse)
	mustUnmarshal(f.bytes[f.body:], state)
	resource := delta.GetResources()[0]
	if !proto.Equal(resource.GetResource(), state.GetResources()[0]) {
		t.Fatalf("delta %v, state of the world %v", delta, state)
	}
	equal(t, "version", resource.GetVersion(), formatVersion(f.version))
	equal(t, "type", resource.GetResource().GetTypeUrl(), resourcev3.EndpointType)
	a := new(endpointv3.ClusterLoadAssignment)
	mustUnmarshal(resource.GetResource().GetValue(), a)
	equal(t, "name", resource.GetName(), a.GetClusterName())
	return a
}

func unknownHealth(health.EndpointID) health.Status { return health.Unknown }

func unknownField(number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), text)
}

// rich makes an assignment with something in every field that matters.
func rich() publish.Assignment {
	a := assignment("rich", 0, 3)
	m := a.Message()
	l := m.GetEndpoints()[0]
	l.Priority, l.LoadBalancingWeight = 2, wrapperspb.UInt32(7)
	l.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"x": {}, "a": {}}}
	l.LbEndpoints[0].HealthStatus = corev3.HealthStatus_DRAINING
	l.LbEndpoints[1].LoadBalancingWeight = wrapperspb.UInt32(300)
	l.LbEndpoints[2].HealthStatus = 77
	m.Endpoints = append(m.Endpoints, &endpointv3.LocalityLbEndpoints{}, proto.CloneOf(l))
	m.Endpoints[2].LbEndpoints[1].HealthStatus = corev3.HealthStatus_UNHEALTHY
	m.NamedEndpoints = map[string]*endpointv3.Endpoint{"n": {Hostname: "h"}, "m": {}}
	m.Policy = &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: true}
	for i, message := range []proto.Message{m, l, l.LbEndpoints[0], l.LbEndpoints[0].GetEndpoint()} {
		message.ProtoReflect().SetUnknown(unknownField(protowire.Number(900+i), "kept"))
	}
	a.Wire = wireOf(m)
	return a
}

func TestAssignmentWithoutVerdictsIsAsTheSourceGaveIt(t *testing.T) {
	a := rich()
	for name, ids := range map[string][][][]health.EndpointID{"passes through": nil, "unknown yet": a.IDs} {
		a.IDs = ids
		if ids != nil {
			m := a.Message()
			m.GetEndpoints()[0].GetLbEndpoints()[2].HealthStatus = 0
			a.Wire = wireOf(m)
		}
		r, _, err := newAssignment(&a, unknownHealth)
		if err != nil {
			t.Fatal(err)
		}
		if got := published(t, r.current()); !proto.Equal(got, a.Message()) {
			t.Errorf("%s: got %v\nwant %v", name, got, a.Message())
		}
	}
}

func TestAssignmentIsPublishedUnderItsName(t *testing.T) {
	a := assignment("inside", 0, 1)
	a.Name = "outside"
	r, _, err := newAssignment(&a, unknownHealth)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "name", published(t, r.current()).GetClusterName(), "outside")
}

func TestHealthIsTheWorstOfVerdictsAndSource(t *testing.T) {
	const (
		un  = health.Unknown
		he  = health.Healthy
		ill = health.Unhealthy
		dr  = health.Draining
		de  = health.Degraded
	)
	for _, c := range []struct {
		source health.Status
		ours   []health.Status
		want   health.Status
	}{
		{un, []health.Status{un}, un},
		{un, []health.Status{he}, he},
		{un, []health.Status{ill}, ill},
		{he, []health.Status{un}, he},
		{he, []health.Status{ill}, ill},
		{ill, []health.Status{he}, ill},
		{dr, []health.Status{he}, dr},
		{dr, []health.Status{un}, dr},
		{dr, []health.Status{ill}, ill},
		{de, []health.Status{he}, de},
		{un, []health.Status{he, ill}, ill},
		{un, []health.Status{he, un}, un},
		{he, []health.Status{he, de, he}, de},
	} {
		var d decided
		var ids []health.EndpointID
		for i := range c.ours {
			ids = append(ids, health.EndpointID(i))
		}
		d.add([]health.EndpointID{99}, un) // of another
		d.add(ids, c.source)
		got := d.status(1, func(id health.EndpointID) health.Status { return c.ours[id] })
		if got != c.want {
			t.Errorf("source %v, ours %v: got %v, want %v", c.source, c.ours, got, c.want)
		}
	}
}

// TestOverruledSourceDecidesWhereThereIsNoVerdict: unknown fields stay, too.
func TestOverruledSourceDecidesWhereThereIsNoVerdict(t *testing.T) {
	a := rich() // of which the first three endpoints have verdicts
	a.Overruled = true
	r, _, err := newAssignment(&a, unknownHealth)
	if err != nil {
		t.Fatal(err)
	}
	want := a.Message()
	for _, e := range want.GetEndpoints()[0].GetLbEndpoints() {
		e.HealthStatus = corev3.HealthStatus_UNKNOWN
	}
	if got := published(t, r.current()); !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestVersionDependsOnTheContentAlone(t *testing.T) {
	version := func(s *Server) uint64 { return s.published.assignments.slots["rich"].current().version }
	a, b := NewServer(Options{}), NewServer(Options{})
	a.Update(publish.Update{Assignments: []publish.Assignment{rich()}})
	first := version(a)
	a.setHealth(1, health.Unhealthy)
	flipped := version(a)
	b.setHealth(1, health.Unhealthy)
	b.Update(publish.Update{Assignments: []publish.Assignment{rich()}})
	equal(t, "other order, other server", version(b), flipped)
	if first == flipped {
		t.Error("a flip left the version as it was")
	}
	a.setHealth(1, health.Unknown)
	equal(t, "back again", version(a), first)
}

func TestPublishedFramesDoNotChange(t *testing.T) {
	s := NewServer(Options{})
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 2)}})
	before := s.published.assignments.slots["a"].current()
	kept := string(before.bytes)
	s.SetHealth([]publish.Health{{ID: 0, Status: health.Unhealthy}, {ID: 1, Status: health.Healthy}})
	after := s.published.assignments.slots["a"].current()
	equal(t, "bytes", string(before.bytes), kept)
	equal(t, "after", published(t, after).GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus(), corev3.HealthStatus_UNHEALTHY)
}

func TestLedgerTracksEndpointsThroughAssignments(t *testing.T) {
	s := NewServer(Options{})
	shared := assignment("b", 0, 2)
	shared.IDs[0][1] = []health.EndpointID{0, 7}
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 2), shared}})
	shows := func(name, want string) {
		t.Helper()
		f := s.published.assignments.slots[name].current()
		equal(t, name, summary(resourcev3.EndpointType, f.bytes[f.value:]), want)
	}
	s.SetHealth([]publish.Health{{ID: 0, Status: health.Healthy}, {ID: 7, Status: health.Healthy}})
	shows("a", "HEUN")
	shows("b", "HEHE")
	s.setHealth(7, health.Timeout)
	shows("b", "HETI")
	s.Update(publish.Update{RemovedAssignments: []string{"a"}})
	s.setHealth(0, health.Unhealthy)
	shows("b", "UNUN")
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("b", 7, 1)}})
	shows("b", "TI")
	s.setHealth(0, health.Healthy)
	shows("b", "TI")
	s.Update(publish.Update{RemovedAssignments: []string{"b", "never"}})
	if len(s.published.ledger.additional) != 0 || s.published.ledger.first[0].entry != nil || s.published.ledger.first[7].entry != nil {
		t.Errorf("left behind: %v %v", s.published.ledger.first, s.published.ledger.additional)
	}
}

func TestWildcardKeepsAResourceThatComesBackDuringItsRemoval(t *testing.T) {
	s := NewServer(Options{})
	u := newSubscription(&stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}, s.published.assignments)
	a := publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}}
	s.Update(a)
	if err := u.requests.process(new(request)); err != nil {
		t.Fatal(err)
	}
	u.next(u.stream.nonce, 1000)
	accept(u)
	s.Update(publish.Update{RemovedAssignments: []string{"a"}})

	batch, _ := u.nextWatches(false)
	response := builder{sub: u, limit: 1000}
	r, _ := u.build(&response, batch, []*frame{nil}, u.stream.nonce)
	equal(t, "told", len(r.rare.removed), 1)
	back, _, err := newAssignment(&a.Assignments[0], unknownHealth)
	if err != nil {
		t.Fatal(err)
	}
	s.published.assignments.set("a", back) // and nobody is notified yet
	s.published.assignments.unwatch(response.idle[0], response.idle[0].idle)
	equal(t, "watches", len(s.published.assignments.slots["a"].watches), 1)
}

func TestUnencodableUpdateKeepsTheLastVersion(t *testing.T) {
	s := NewServer(Options{})
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}, Clusters: clusters("c", "1")})
	bad := assignment("a", 0, 2)
	bad.Wire = bad.Wire[:len(bad.Wire)-1]
	s.Update(publish.Update{Assignments: []publish.Assignment{bad}, Clusters: clusters("c", "\xff")})
	s.setHealth(0, health.Healthy)
	f := s.published.assignments.slots["a"].current()
	equal(t, "assignment", summary(resourcev3.EndpointType, f.bytes[f.value:]), "HE")
	f = s.published.clusters.slots["c"].current()
	equal(t, "cluster", summary(resourcev3.ClusterType, f.bytes[f.value:]), "1")
}

// FuzzSplice compares the spliced encoding with a clone that is set and marshaled.
func FuzzSplice(f *testing.F) {
	seed := rich()
	f.Add(seed.Wire, []byte{1, 2, 3, 0xff, 5})
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\x12\x04\x12\x02\x10\x05\x12\x00\x12\x02\x12\x00"), []byte{0x21, 0x42})
	f.Fuzz(func(t *testing.T, wire, choices []byte) {
		m := new(endpointv3.ClusterLoadAssignment)
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		next := func() byte {
			if len(choices) == 0 {
				return 0
			}
			c := choices[0]
			choices = choices[1:]
			return c
		}
		slow := proto.CloneOf(m)
		slow.ClusterName = "fuzz"
		a := publish.Assignment{Name: "fuzz", Wire: wire}
		var later []publish.Health
		for _, l := range slow.GetEndpoints() {
			var ids [][]health.EndpointID
			for _, e := range l.GetLbEndpoints() {
				c := next()
				if c&0x80 != 0 {
					ids = append(ids, nil)
					continue
				}
				id := health.EndpointID(len(later))
				status := health.Status(c & 0xf % 6)
				later = append(later, publish.Health{ID: id, Status: status})
				ids = append(ids, []health.EndpointID{id})
				e.HealthStatus = corev3.HealthStatus(publish.Combine(status, publish.SourceStatus(e)))
			}
			a.IDs = append(a.IDs, ids)
		}
		s := NewServer(Options{})
		s.Update(publish.Update{Assignments: []publish.Assignment{a}})
		s.SetHealth(later)
		want := new(endpointv3.ClusterLoadAssignment)
		encoded, err := proto.Marshal(slow)
		if err != nil {
			t.Fatal(err)
		}
		mustUnmarshal(encoded, want)
		if got := published(t, s.published.assignments.slots["fuzz"].current()); !proto.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}
