package hds_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/hds"
	"hdsd/health"
)

func nodeIn(id, zone string) *corev3.Node {
	return &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}, UserAgentName: "envoy"}
}

// fetched is what a fetch came to: a specifier's text, or the error's code and
// message.
type fetched struct {
	text string
	code codes.Code
}

func (f *fixture) fetch(host string, m *healthv3.HealthCheckRequestOrEndpointHealthResponse, nodes ...string) fetched {
	f.Helper()
	return f.fetchIn(f.ctx, host, m, nodes...)
}

func (f *fixture) fetchIn(ctx context.Context, host string, m *healthv3.HealthCheckRequestOrEndpointHealthResponse, nodes ...string) fetched {
	f.Helper()
	for _, node := range nodes {
		ctx = metadata.AppendToOutgoingContext(ctx, hds.NodeHeader, node)
	}
	spec, err := healthv3.NewHealthDiscoveryServiceClient(f.dial(host)).FetchHealthCheck(ctx, m)
	if err != nil {
		return fetched{status.Convert(err).Message(), status.Code(err)}
	}
	return fetched{specifierText(spec), codes.OK}
}

func (f *fixture) gets(what string, got fetched, text string) {
	f.Helper()
	if got.code != codes.OK || got.text != text {
		f.Errorf("%s: got %s %q, want %q", what, got.code, got.text, text)
	}
}

func (f *fixture) isRefused(what string, got fetched, code codes.Code, with string) {
	f.Helper()
	if got.code != code || !strings.Contains(got.text, with) {
		f.Errorf("%s: got %s %q, want %s and %q", what, got.code, got.text, code, with)
	}
}

// assigning has a checker assigned something as soon as it is connected.
func (f *fixture) assigning(endpoints ...checked) {
	f.sink.onConnected = func(c health.Checker) { f.server.Assign(c.ID, assignment(endpoints...)) }
}

func TestNodeThatFetchesIsAChecker(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		ask := hello(nodeIn("a", "z1"))
		f.gets("first", f.fetch("10.1.0.1", ask), webOne)
		same(t, "calls", f.sink.take(), "connected a")
		f.is(hds.Sent, 0)
		if c := f.server.Checkers(); len(c) != 1 || c[0].ID != "a" || c[0].Locality.Zone != "z1" || !f.server.State("a").Connected {
			t.Errorf("checkers %v, state %+v", c, f.server.State("a"))
		}
		f.gets("a report", f.fetch("10.1.0.1", report(said{web1, up, 200}), "a"), webOne)
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY/200")
		f.is(hds.Synced, 0)

		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		f.gets("the same report", f.fetch("10.1.0.1", report(said{web1, up, 200}), "a"), webBoth)
		same(t, "calls", f.sink.take(), "reported a")
		heard := time.Now()
		f.is(hds.Sent, 0)
		f.gets("with both", f.fetch("10.1.0.1", report(said{web1, up, 200}, said{web2, down, 0}), "a"), webBoth)
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY/200 2=UNHEALTHY")
		if n := f.counted("hdsd_hds_specifiers_sent_total"); n != 2 {
			t.Errorf("%v specifiers are counted", n)
		}

		time.Sleep(2999 * time.Millisecond)
		f.gets("just in time", f.fetch("10.1.0.1", ask), webBoth)
		same(t, "calls", f.sink.take())
		if last := f.server.State("a").LastReport; last.Sub(heard).Abs() > time.Millisecond {
			t.Errorf("the last report was %s after it was sent", last.Sub(heard))
		}
		time.Sleep(2999 * time.Millisecond)
		same(t, "just before its time", f.sink.take())
		time.Sleep(time.Millisecond)
		same(t, "three intervals after the last fetch", f.sink.take(), "disconnected a")
		if n := len(f.server.Checkers()); n != 0 {
			t.Errorf("%d checkers", n)
		}
		f.isRefused("a late report", f.fetch("10.1.0.1", report(said{web1, up, 200}), "a"), codes.FailedPrecondition, "has not fetched within three intervals")
		f.gets("again", f.fetch("10.1.0.1", ask), webOne)
		same(t, "calls", f.sink.take(), "connected a")
	})
}

func TestFetchMustSayWho(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		f.isRefused("no node", f.fetch("10.1.0.1", hello(nil)), codes.InvalidArgument, "no node")
		f.isRefused("no id", f.fetch("10.1.0.1", hello(&corev3.Node{})), codes.InvalidArgument, "no id")
		f.isRefused("nothing", f.fetch("10.1.0.1", report()), codes.Unauthenticated, hds.NodeHeader)
		same(t, "calls", f.sink.take())
	})
}

func TestFetchedReportIsBoundToItsNode(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		f.assigning(checked{1, web1})
		f.gets("a", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), webOne)
		f.connect("b", "10.1.0.1", "z1").next()
		f.sink.take()
		tests := map[string]struct {
			host  string
			nodes []string
			code  codes.Code
			text  string
		}{
			"nobody":          {"10.1.0.1", nil, codes.Unauthenticated, hds.NodeHeader},
			"an empty name":   {"10.1.0.1", []string{""}, codes.Unauthenticated, hds.NodeHeader},
			"two names":       {"10.1.0.1", []string{"a", "a"}, codes.Unauthenticated, "once"},
			"another host":    {"10.1.0.2", []string{"a"}, codes.Unauthenticated, "send both from one address"},
			"unknown":         {"10.1.0.1", []string{"c"}, codes.FailedPrecondition, `node "c" has not fetched`},
			"one on a stream": {"10.1.0.1", []string{"b"}, codes.FailedPrecondition, `node "b" has not fetched`},
			"other case":      {"10.1.0.1", []string{"A"}, codes.FailedPrecondition, `node "A" has not fetched`},
		}
		for name, test := range tests {
			f.isRefused(name, f.fetch(test.host, report(said{web1, down, 0}), test.nodes...), test.code, test.text)
		}
		same(t, "calls", f.sink.take())
		if n := f.counted("hdsd_hds_unbound_reports_total"); n != float64(len(tests)) {
			t.Errorf("%v refusals are counted", n)
		}
		f.gets("a heartbeat", f.fetch("10.1.0.1", report(), "a"), webOne)
		same(t, "calls", f.sink.take(), "reported a")
	})
}

func TestFirstFetchWaitsForItsAssignment(t *testing.T) {
	bubble(t, hds.Options{AssignTimeout: time.Second}, func(f *fixture) {
		start := time.Now()
		f.gets("nothing assigned", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), "")
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("it took %s", waited)
		}
		f.gets("again", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), "")
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("both took %s", waited)
		}
		f.is(hds.NotSent, 0)
		time.AfterFunc(500*time.Millisecond, func() {
			f.server.Assign("b", nil)
			f.server.Assign("b", assignment(checked{1, web1}))
		})
		f.gets("assigned meanwhile", f.fetch("10.1.0.1", hello(nodeIn("b", "z1"))), webOne)
		if waited := time.Since(start); waited != 1500*time.Millisecond {
			t.Errorf("all took %s", waited)
		}
	})
}

func TestFetchThatIsGivenUpLeavesTheNextOneToWait(t *testing.T) {
	bubble(t, hds.Options{AssignTimeout: time.Second}, func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
		defer cancel()
		f.isRefused("impatient", f.fetchIn(ctx, "10.1.0.1", hello(nodeIn("a", "z1"))), codes.DeadlineExceeded, "")
		time.AfterFunc(500*time.Millisecond, func() { f.server.Assign("a", assignment(checked{1, web1})) })
		f.gets("patient", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), webOne)
		same(t, "calls", f.sink.take(), "connected a")
	})
}

func TestManyFetchesAtOnceAreOneChecker(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		f.dial("10.1.0.1") // one listener for all
		got := make(chan fetched)
		for range 20 {
			go func() { got <- f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))) }()
		}
		for range 20 {
			f.gets("one of many", <-got, webOne)
		}
		same(t, "calls", f.sink.take(), "connected a")
		if n := f.counted("hdsd_hds_fetches_total"); n != 20 {
			t.Errorf("%v fetches are counted", n)
		}
	})
}

func TestFetchEmptiesAClusterBeforeItGoes(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{3, db1}, checked{1, web1})
		ask := hello(nodeIn("a", "z1"))
		f.gets("both", f.fetch("10.1.0.1", ask), dbOne+webOne)
		f.server.Assign("a", assignment(checked{1, web1}))
		f.gets("db is emptied", f.fetch("10.1.0.1", ask), webOne+"db{}")
		time.Sleep(999 * time.Millisecond)
		f.gets("still", f.fetch("10.1.0.1", ask), webOne+"db{}")
		time.Sleep(time.Millisecond)
		f.gets("dropped", f.fetch("10.1.0.1", ask), webOne)
	})
}

func TestCloseEndsFetches(t *testing.T) {
	bubble(t, hds.Options{AssignTimeout: time.Minute}, func(f *fixture) {
		f.dial("10.1.0.1")
		got := make(chan fetched, 2)
		for range 2 { // the second waits for the first
			go func() { got <- f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))) }()
		}
		same(t, "calls", f.sink.take(), "connected a")
		f.server.Close()
		same(t, "calls", f.sink.calls, "ended a", "disconnected a")
		for range 2 {
			f.isRefused("one under way", <-got, codes.Unavailable, "shutting down")
		}
		f.isRefused("afterwards", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), codes.Unavailable, "shutting down")
		f.isRefused("a report", f.fetch("10.1.0.1", report(), "a"), codes.Unavailable, "shutting down")
	})
}

// TestFetchedSpecifierIsHeldBack as one on a stream is.
func TestFetchedSpecifierIsHeldBack(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1}, checked{2, web2})
		both := report(said{web1, up, 200}, said{web2, up, 200})
		f.gets("first", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), webBoth)
		f.gets("after a report", f.fetch("10.1.0.1", both, "a"), webBoth)
		f.server.Assign("a", assignment(checked{1, web1}))
		f.gets("without one", f.fetch("10.1.0.1", both, "a"), webOne)
		f.server.Assign("a", assignment(checked{1, web1}, checked{3, web2}))
		f.gets("before a report without it", f.fetch("10.1.0.1", both, "a"), webOne)
		f.gets("after that", f.fetch("10.1.0.1", report(said{web1, up, 200}), "a"), webBoth)
	})
}
