package xds

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
)

// primed is a source that knows one cluster of each sort.
func primed(t testing.TB, from *corev3.ConfigSource) *Source {
	t.Helper()
	s, err := New(Options{Name: "upstream", ConfigSource: from})
	if err != nil {
		t.Fatal(err)
	}
	s.accept(s.clusters, &update{version: "1", items: []item{{version: "1", body: pack(eds("web", ""))}, {version: "1", body: pack(inline("db", "10.0.0.9"))}}})
	s.accept(s.assignments, &update{version: "1", items: []item{{version: "1", body: pack(endpoints("web", "10.0.0.1"))}}})
	return s
}

// consistent checks what holds after each response.
func consistent(t *testing.T, s *Source, take func()) {
	t.Helper()
	before := s.build(time.Now())
	contents := make(map[string]string)
	for name, e := range s.clusters.entries {
		if e.good != nil {
			contents[name] = string(e.good.packed.GetValue())
		}
	}
	asked := make(map[string]string)
	for name, e := range s.assignments.entries {
		if e.good != nil {
			asked[name] = string(e.good.packed.GetValue())
		}
	}
	take()
	counted(t, s)
	after := s.build(time.Now())
	for _, c := range after.Clusters {
		for _, old := range before.Clusters {
			e, a := s.clusters.entries[c.Name], s.assignments.entries[c.ServiceName]
			if c.Name != old.Name || c == old || e.good == nil || contents[c.Name] != string(e.good.packed.GetValue()) {
				continue
			}
			if !c.EDS() || a != nil && a.good != nil && asked[c.ServiceName] == string(a.good.packed.GetValue()) {
				t.Errorf("%s did not change, but its pointer did", c.Name)
			}
		}
		if c.Config == nil && c.Rejected == "" {
			t.Errorf("%s has neither content nor a reason for that", c.Name)
		}
	}
	if again := s.build(time.Now()); !same(again, after) {
		t.Error("the same again gives another set")
	}
	s.Status()
}

// seed adds a message to what fuzzing begins with.
func seed(f *testing.F, m proto.Message) {
	f.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}

// answered wants what follows from a response to be requests that can be sent,
// and few of them.
func answered[M any, P interface {
	*M
	proto.Message
}](t *testing.T, stream interface {
	next(now time.Time) P
	due(now time.Time) time.Duration
}) {
	t.Helper()
	now := time.Now()
	for range 4 {
		if request := stream.next(now); request != nil {
			if _, err := proto.Marshal(request); err != nil {
				t.Errorf("a request that cannot be sent: %v", err)
			}
		}
	}
	if stream.due(now) == 0 {
		t.Error("requests without end")
	}
}

func FuzzDiscoveryResponse(f *testing.F) {
	seed(f, state(rules.Cluster, "2", "n", eds("web", ""), inline("db", "10.0.0.8")))
	seed(f, state(rules.Cluster, "2", "n", eds("web", "svc"), inline("db", "10.0.0.9"), inline("db")))
	seed(f, state(rules.Assignment, "2", "n", endpoints("web", "10.0.0.2"), endpoints("other")))
	seed(f, state(rules.Cluster, "2", "n", wrap("web", "1", eds("web", "")), &discoveryv3.Resource{Name: "db", Version: "1"}))
	f.Add(wire(2, 100, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		response := &discoveryv3.DiscoveryResponse{}
		in := &incoming{message: response}
		if in.decode(data) != nil {
			return
		}
		s := primed(t, ways["AGGREGATED_GRPC"])
		stream := newStateStream(&channel{source: s, tables: []*table{s.clusters, s.assignments}})
		consistent(t, s, func() { _ = stream.handle(response, in.excess) })
		answered(t, stream)
	})
}

func FuzzDeltaDiscoveryResponse(f *testing.F) {
	seed(f, change(rules.Cluster, "n", wrap("web", "2", eds("web", "")), wrap("db", "2", inline("db", "10.0.0.8"))))
	seed(f, change(rules.Cluster, "n", wrap("web", "2", inline("db")), &discoveryv3.Resource{Name: "db", Version: "1"}))
	seed(f, change(rules.Assignment, "n", wrap("web", "2", endpoints("web", "10.0.0.2"))))
	seed(f, removal(rules.Cluster, "n", "web", "nobody"))
	seed(f, removal(rules.Assignment, "n", "web"))
	f.Add(wire(2, 100, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		response := &discoveryv3.DeltaDiscoveryResponse{}
		in := &incoming{message: response}
		if in.decode(data) != nil {
			return
		}
		s := primed(t, ways["AGGREGATED_DELTA_GRPC"])
		stream := newDeltaStream(&channel{source: s, tables: []*table{s.clusters, s.assignments}})
		consistent(t, s, func() { _ = stream.handle(response, in.excess) })
		answered(t, stream)
	})
}

func FuzzRESTAnswer(f *testing.F) {
	f.Add(true, []byte(`{"version_info":"2","resources":[`+jsonEDS+`,`+jsonCluster("db", "10.0.0.8")+`]}`))
	f.Add(false, []byte(`{"versionInfo":"2","resources":[`+jsonEndpoints("10.0.0.2")+`]}`))
	f.Add(true, []byte(`{"resources":[{"name":1},{},null,[]]}`))
	f.Fuzz(func(t *testing.T, clusters bool, body []byte) {
		s := primed(t, ways["REST"])
		table := s.assignments
		if clusters {
			table = s.clusters
		}
		p := &poller{channel: &channel{source: s, node: &corev3.Node{Id: "hdsd-test"}}, table: table}
		consistent(t, s, func() { _ = p.accept(body, 0) })
		if _, _, err := p.question(); err != nil {
			t.Errorf("a request that cannot be sent: %v", err)
		}
	})
}
