package hds_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	corev2 "github.com/envoyproxy/go-control-plane/envoy/api/v2/core"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy/specifier"
	"hdsd/hds"
	"hdsd/internal/wire"
)

// flatOf leaves only the flat list in a report.
func flatOf(m *healthv3.HealthCheckRequestOrEndpointHealthResponse) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	m.GetEndpointHealthResponse().ClusterEndpointsHealth = nil
	return m
}

// TestAnyChangeIsSent, the endpoints staying what they are.
func TestAnyChangeIsSent(t *testing.T) {
	of := func(name string, c *healthv3.ClusterHealthCheck) *specifier.Specifier {
		s := assignment(checked{1, name})
		proto.Merge(s.Clusters[0].Head, c)
		return s
	}
	slower := of(web1, &healthv3.ClusterHealthCheck{})
	slower.Interval = time.Minute
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		for _, change := range []struct {
			what string
			spec *specifier.Specifier
		}{
			{"a check", of(web1, &healthv3.ClusterHealthCheck{HealthChecks: []*corev3.HealthCheck{httpCheck("/a")}})},
			{"its path", of(web1, &healthv3.ClusterHealthCheck{HealthChecks: []*corev3.HealthCheck{httpCheck("/b")}})},
			{"another check", of(web1, &healthv3.ClusterHealthCheck{HealthChecks: []*corev3.HealthCheck{httpCheck("/b"), httpCheck("/c")}})},
			{"sockets", of(web1, &healthv3.ClusterHealthCheck{TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}})},
			{"another locality", of("web/b/10.0.0.1:80", &healthv3.ClusterHealthCheck{})},
			{"the interval", slower},
		} {
			f.server.Assign("a", change.spec)
			got, err := c.stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, change.spec.Message()) {
				t.Errorf("%s: sent %v, want %v", change.what, got, change.spec.Message())
			}
		}
	})
}

// TestTheListByClusterCounts has a report whose deprecated flat list says
// something else.
func TestTheListByClusterCounts(t *testing.T) {
	lists := func(nested, flat corev3.HealthStatus, entries ...string) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
		var said1, said2 []said
		for _, name := range entries {
			said1, said2 = append(said1, said{name, nested, 0}), append(said2, said{name, flat, 0})
		}
		m := report(said1...)
		m.GetEndpointHealthResponse().EndpointsHealth = report(said2...).GetEndpointHealthResponse().EndpointsHealth //nolint:staticcheck // as Envoy does
		return m
	}
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1}, checked{2, web2})
		c.hears("in order", lists(up, down, web1, web2), "1=HEALTHY 2=HEALTHY")
		c.hears("in another order", lists(timeout, up, web2, web1), "2=TIMEOUT 1=TIMEOUT")
		c.hears("the flat one alone", flatOf(lists(up, down, web1, web2)), "1=UNHEALTHY 2=UNHEALTHY")
	})
}

// withUnknown puts a field that nobody knows in a message and all those in it.
func withUnknown[M proto.Message](m M) M {
	var mark func(protoreflect.Message)
	mark = func(m protoreflect.Message) {
		m.SetUnknown(protoreflect.RawFields{0xfa, 0xff, 0x7f, 0x01, 'x'})
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.Message() == nil || f.IsMap():
			case f.IsList():
				for i := range v.List().Len() {
					mark(v.List().Get(i).Message())
				}
			default:
				mark(v.Message())
			}
			return true
		})
	}
	mark(m.ProtoReflect())
	return m
}

func TestFieldsOfTomorrowAreLeftUnread(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.open(f.dial("10.1.0.1"))
		c.send(withUnknown(hello(nodeIn("a", "z1"))))
		same(t, "calls", f.sink.take(), "connected a")
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		c.next()
		c.hears("in both lists", withUnknown(report(said{web1, up, 200}, said{web2, down, 503})), "1=HEALTHY/200 2=UNHEALTHY/503")
		f.is(hds.Synced, 0)
		c.hears("in the flat list", withUnknown(flatOf(report(said{web1, down, 500}, said{web2, down, 503}))), "1=UNHEALTHY/500")
		c.hears("in a heartbeat", withUnknown(report()), "")
		f.is(hds.Synced, 0)
		f.gets("a fetch", f.fetch("10.1.0.1", withUnknown(hello(nodeIn("b", "z1")))), "")
	})
}

// TestOneFleetOfAllKinds has checkers that report by cluster, flat or both, in
// v3 and v2, on streams and by fetching: each says the same of the same
// endpoints, and each is understood.
func TestOneFleetOfAllKinds(t *testing.T) {
	both := func() *healthv3.HealthCheckRequestOrEndpointHealthResponse {
		return report(said{web1, up, 0}, said{web2, timeout, 0})
	}
	nested := both()
	nested.GetEndpointHealthResponse().EndpointsHealth = nil //nolint:staticcheck // not all send it
	inV2 := reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_HEALTHY}, saidV2{"10.0.0.2", corev2.HealthStatus_TIMEOUT})
	stream := func(report *healthv3.HealthCheckRequestOrEndpointHealthResponse) func(*fixture, string) {
		return func(f *fixture, id string) {
			c := f.connect(id, "10.1.0.1", "z1")
			c.next()
			c.send(report)
		}
	}
	kinds := map[string]func(f *fixture, id string){
		"both": stream(both()), "by cluster": stream(nested), "flat": stream(flatOf(both())),
		"v2": func(f *fixture, id string) {
			s, err := discoveryv2.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1")).StreamHealthCheck(f.ctx)
			if err != nil {
				f.Fatal(err)
			}
			first := s.Send(helloV2(nodeV2(id)))
			_, second := s.Recv()
			if err := errors.Join(first, second, s.Send(inV2)); err != nil {
				f.Fatal(err)
			}
		},
		"fetches": func(f *fixture, id string) {
			f.gets("hello", f.fetch("10.1.0.1", hello(nodeIn(id, "z1"))), webBoth)
			f.gets("report", f.fetch("10.1.0.1", nested, id), webBoth)
		},
		"fetches v2": func(f *fixture, id string) {
			client := discoveryv2.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1"))
			_, first := client.FetchHealthCheck(f.ctx, helloV2(nodeV2(id)))
			_, second := client.FetchHealthCheck(metadata.AppendToOutgoingContext(f.ctx, hds.NodeHeader, id), inV2)
			if err := errors.Join(first, second); err != nil {
				f.Fatal(err)
			}
		},
	}
	bubble(t, hds.Options{}, func(f *fixture) {
		f.assigning(checked{1, web1}, checked{2, web2})
		var want []string
		for id, speak := range kinds {
			speak(f, id)
			want = append(want, "connected "+id, "reported "+id+" 1=HEALTHY 2=TIMEOUT")
		}
		got := f.sink.take()
		slices.Sort(got)
		slices.Sort(want)
		same(t, "calls", got, want...)
		for id := range kinds {
			if state := f.server.State(id); state.Specifier != hds.Synced || state.StrangeReports > 0 {
				t.Errorf("%s: %+v", id, state)
			}
		}
	})
}

// TestTheIntervalIsSaidToAll, also to who is to check nothing.
func TestTheIntervalIsSaidToAll(t *testing.T) {
	bubble(t, hds.Options{Interval: 250 * time.Millisecond}, func(f *fixture) {
		got, err := healthv3.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1")).FetchHealthCheck(f.ctx, hello(nodeIn("a", "z1")))
		if err != nil || got.GetInterval().AsDuration() != 250*time.Millisecond {
			t.Errorf("a fetch got %v, %v", got, err)
		}
		// What is about to go keeps it.
		c := f.connect("b", "10.1.0.1", "z1")
		f.sink.take()
		f.server.Assign("b", assignment(checked{1, web1}))
		c.next()
		f.server.Assign("b", assignment())
		for _, left := range []int{1, 0} {
			m, err := c.stream.Recv()
			if err != nil || len(m.GetClusterHealthChecks()) != left || m.GetInterval().AsDuration() != time.Second {
				t.Errorf("sent %v, %v", m, err)
			}
		}
	})
}

// TestWhatIsNoReportEndsTheStream, and says so; nothing of it counts.
func TestWhatIsNoReportEndsTheStream(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.open(f.dial("10.1.0.1", grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec()))))
		c.send(hello(nodeIn("a", "z1")))
		f.sink.take()
		f.server.Assign("a", assignment(checked{1, web1}))
		c.next()
		cut := wire.Bytes(encode(t, report(said{web1, up, 200})))
		cut = cut[:len(cut)-1]
		if err := c.stream.SendMsg(&cut); err != nil {
			t.Fatal(err)
		}
		c.fails(codes.InvalidArgument, "reading a report")
		same(t, "calls", f.sink.take(), "ended a", "disconnected a")
	})
}

// TestWhatIsNoStatusCode is as if there were none.
func TestWhatIsNoStatusCode(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1})
		for code, want := range map[*structpb.Value]string{
			structpb.NewNumberValue(200): "1=HEALTHY/200", structpb.NewNumberValue(999): "1=HEALTHY/999",
			structpb.NewNumberValue(99): "1=HEALTHY", structpb.NewNumberValue(1000): "1=HEALTHY", structpb.NewNumberValue(-200): "1=HEALTHY",
			structpb.NewNumberValue(200.5): "1=HEALTHY", structpb.NewNumberValue(math.NaN()): "1=HEALTHY", structpb.NewNumberValue(math.Inf(1)): "1=HEALTHY",
			structpb.NewStringValue("200"): "1=HEALTHY", structpb.NewNullValue(): "1=HEALTHY",
		} {
			m := report(said{web1, up, 0})
			e := m.GetEndpointHealthResponse().GetClusterEndpointsHealth()[0].GetLocalityEndpointsHealth()[0].GetEndpointsHealth()[0]
			c.send(report(said{web1, down, 0})) // so that the next one is a change
			f.sink.take()
			e.HealthMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"http_status_code": code}}
			c.hears(code.String(), m, want)
		}
	})
}
