package hds_test

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/hds"
)

const web1, web2, db1 = "web/a/10.0.0.1:80", "web/a/10.0.0.2:80", "db/b/10.0.0.9:5432"

func TestFirstMessageMustSayWho(t *testing.T) {
	tests := map[string]struct {
		first *healthv3.HealthCheckRequestOrEndpointHealthResponse
		text  string
	}{
		"empty":           {&healthv3.HealthCheckRequestOrEndpointHealthResponse{}, "send health_check_request"},
		"no node":         {hello(nil), "no node"},
		"no id":           {hello(&corev3.Node{Cluster: "checkers"}), "no id"},
		"endless node":    {hello(&corev3.Node{Id: "a", Cluster: strings.Repeat("x", 1<<20)}), "make its metadata smaller"},
		"endless id":      {hello(&corev3.Node{Id: strings.Repeat("x", 4096)}), "at most 1024"},
		"endless zone":    {hello(&corev3.Node{Id: "a", Locality: &corev3.Locality{Zone: strings.Repeat("x", 4096)}}), "4096 bytes: use at most 1024"},
		"a report before": {report(said{name: web1}), "a report came before the first message"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{}, func(f *fixture) {
				c := f.open(f.dial("10.1.0.1"))
				c.send(test.first)
				c.fails(codes.InvalidArgument, test.text)
				same(t, "calls", f.sink.take())
			})
		})
	}
}

func TestStreamThatSaysNothingEnds(t *testing.T) {
	bubble(t, hds.Options{FirstMessageTimeout: 10 * time.Second}, func(f *fixture) {
		start := time.Now()
		f.open(f.dial("10.1.0.1")).fails(codes.DeadlineExceeded, "no first message within 10s")
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("it took %s", waited)
		}
		same(t, "calls", f.sink.take())
	})
}

func TestSameCheckerReplacesItsStream(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		old := f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		f.connect("a", "10.1.0.1", "z1")
		old.fails(codes.Aborted, "takes the place of this one")
		same(t, "calls", f.sink.take(), "connected a")
		if state := f.server.State("a"); !state.Connected {
			t.Error("the new stream is not connected")
		}
		if n := f.counted("hdsd_hds_streams"); n != 1 {
			t.Errorf("%v streams are counted", n)
		}
	})
}

func TestAnotherCheckerOfTheSameIDIsRefused(t *testing.T) {
	tests := map[string]struct{ host, zone string }{
		"from another host":     {"10.1.0.2", "z1"},
		"from another locality": {"10.1.0.1", "z2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
				first := f.connect("a", "10.1.0.1", "z1")
				f.sink.take()
				for range 2 {
					f.connect("a", test.host, test.zone).fails(codes.AlreadyExists, `node id "a" is taken`)
				}
				time.Sleep(1900 * time.Millisecond)
				first.send(report())
				same(t, "calls", f.sink.take(), "reported a")
				time.Sleep(1900 * time.Millisecond)
				f.connect("a", test.host, test.zone).fails(codes.AlreadyExists, "was heard 1.9s ago")
				if n := strings.Count(f.log.String(), "is refused"); n != 1 {
					t.Errorf("logged %d times: %s", n, f.log)
				}
				if n := f.counted("hdsd_hds_refused_streams_total"); n != 3 {
					t.Errorf("%v refusals are counted", n)
				}
				// The first is silent for two intervals now.
				time.Sleep(100 * time.Millisecond)
				f.connect("a", test.host, test.zone)
				first.fails(codes.Aborted, "")
				same(t, "calls", f.sink.take(), "connected a")
			})
		})
	}
}

func TestMetadataTellsCheckersApart(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		node := func(vpc, version string) *corev3.Node {
			m, err := structpb.NewStruct(map[string]any{"vpc": vpc})
			if err != nil {
				t.Fatal(err)
			}
			return &corev3.Node{Id: "a", Metadata: m, UserAgentName: version}
		}
		conn := f.dial("10.1.0.1")
		f.open(conn).send(hello(node("blue", "envoy")))
		f.sink.take()
		other := f.open(conn)
		other.send(hello(node("green", "envoy")))
		other.fails(codes.AlreadyExists, "")
		// Another binary is still the same checker.
		f.open(conn).send(hello(node("blue", "hdsd")))
		same(t, "calls", f.sink.take(), "connected a")
	})
}

func TestAWeightThatIsIgnoredIsTold(t *testing.T) {
	for _, weight := range []any{"heavy", -1.0, 2.0, nil} {
		bubble(t, hds.Options{}, func(f *fixture) {
			node := &corev3.Node{Id: "a"}
			if weight != nil {
				m, err := structpb.NewStruct(map[string]any{"hdsd.weight": weight})
				if err != nil {
					t.Fatal(err)
				}
				node.Metadata = m
			}
			f.open(f.dial("10.1.0.1")).send(hello(node))
			same(t, "calls", f.sink.take(), "connected a")
			if told, want := strings.Contains(f.log.String(), "weight_ignored"), weight == "heavy" || weight == -1.0; told != want {
				t.Errorf("%v: told: %t", weight, told)
			}
		})
	}
}

func TestDisconnectedCheckerMayComeBackFromAnywhere(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		c.cancel()
		same(t, "calls", f.sink.take(), "disconnected a")
		c = f.connect("a", "10.1.0.2", "z2")
		same(t, "calls", f.sink.take(), "connected a")
		if err := c.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		c.fails(codes.Unknown, "EOF") // status.Convert of io.EOF: ended without an error
		same(t, "calls", f.sink.take(), "disconnected a")
		if got := f.server.State("a"); got != (hds.State{Specifier: hds.NotSent}) {
			t.Errorf("state %+v", got)
		}
	})
}

func TestNewStreamWaitsForTheOldOnesCalls(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		hold := make(chan struct{})
		f.sink.onReported = func(string) { <-hold }
		old := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		old.send(report())
		same(t, "calls", f.sink.take(), "reported a")
		f.connect("a", "10.1.0.1", "z1")
		f.connect("a", "10.1.0.1", "z1")
		old.fails(codes.Aborted, "")
		same(t, "calls while the old one's report is held", f.sink.take())
		close(hold)
		same(t, "calls", f.sink.take(), "connected a", "connected a")
	})
}

func TestCheckersAreListedByID(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		for _, id := range []string{"b", "c", "a"} {
			f.connect(id, "10.1.0.1", "z1")
		}
		f.sink.take()
		var ids []string
		for _, c := range f.server.Checkers() {
			ids = append(ids, c.ID)
		}
		same(t, "checkers", ids, "a", "b", "c")
	})
}
