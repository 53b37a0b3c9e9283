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
		if n := f.counted("hdsd_hds_idle_streams_total"); n != 1 || !strings.Contains(f.log.String(), `"event":"stream_idle"`) {
			t.Errorf("%v idle streams are counted, the log has %s", n, f.log)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("it took %s", waited)
		}
		same(t, "calls", f.sink.take())
	})
}

func TestSilentStreamIsReplaced(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		old := f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		f.connect("a", "10.1.0.1", "z1")
		old.fails(codes.Aborted, "takes the place of this stream")
		same(t, "calls", f.sink.take(), "connected a")
		if state := f.server.State("a"); !state.Connected {
			t.Error("the new stream is not connected")
		}
		if n := f.counted("hdsd_hds_streams"); n != 1 {
			t.Errorf("%v streams are counted", n)
		}
		if n := f.counted("hdsd_hds_replaced_streams_total"); n != 1 {
			t.Errorf("%v replaced streams are counted", n)
		}
	})
}

func TestMetadataTellsCheckersThatFetchApart(t *testing.T) {
	bubble(t, hds.Options{AssignTimeout: time.Millisecond}, func(f *fixture) {
		node := func(port float64) *corev3.Node {
			m, err := structpb.NewStruct(map[string]any{"port": port}) // no text: no selector sees it
			if err != nil {
				t.Fatal(err)
			}
			return &corev3.Node{Id: "a", Metadata: m}
		}
		f.gets("one", f.fetch("10.1.0.1", hello(node(1))), "")
		f.gets("again", f.fetch("10.1.0.1", hello(node(1))), "")
		f.isRefused("another", f.fetch("10.1.0.1", hello(node(2))), codes.AlreadyExists, "is taken")
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
		time.Sleep(4 * time.Second)
		same(t, "calls while the old one's report is held", f.sink.take())
		close(hold)
		old.fails(codes.Aborted, "")
		same(t, "calls", f.sink.take(), "connected a")
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
