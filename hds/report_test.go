package hds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"

	"hdsd/hds"
	"hdsd/health"
)

const (
	up       = corev3.HealthStatus_HEALTHY
	down     = corev3.HealthStatus_UNHEALTHY
	timeout  = corev3.HealthStatus_TIMEOUT
	draining = corev3.HealthStatus_DRAINING
	degraded = corev3.HealthStatus_DEGRADED
)

// assigned is a connected checker that was sent what it is to check.
func assigned(f *fixture, endpoints ...checked) *client {
	f.Helper()
	c := f.connect("a", "10.1.0.1", "z1")
	f.sink.take()
	f.server.Assign("a", assignment(endpoints...))
	c.next()
	return c
}

// hears sends a report and compares what comes of it.
func (c *client) hears(what string, m *healthv3.HealthCheckRequestOrEndpointHealthResponse, want string) {
	c.f.Helper()
	c.send(m)
	same(c.f, what, c.f.sink.take(), strings.TrimRight("reported a "+want, " "))
}

func (f *fixture) is(specifier string, strange uint64) {
	f.Helper()
	if got := f.server.State("a"); got.Specifier != specifier || got.StrangeReports != strange {
		f.Errorf("the specifier is %s with %d strange reports, want %s with %d", got.Specifier, got.StrangeReports, specifier, strange)
	}
}

func TestReportsGiveWhatChanged(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{9, db1}, checked{1, web1}, checked{2, web2})
		f.is(hds.Sent, 0)
		first := report(said{db1, up, 0}, said{web1, up, 200}, said{web2, down, 503})
		c.hears("the first report", first, "9=HEALTHY 1=HEALTHY/200 2=UNHEALTHY/503")
		f.is(hds.Synced, 0)
		c.hears("the same again", first, "")
		c.hears("a status", report(said{db1, timeout, 0}, said{web1, up, 200}, said{web2, down, 503}), "9=TIMEOUT")
		c.hears("a code", report(said{db1, timeout, 0}, said{web1, up, 500}, said{web2, down, 503}), "1=HEALTHY/500")
		c.hears("a heartbeat", report(), "")
		c.hears("other statuses", report(said{db1, draining, 0}, said{web1, degraded, 500}, said{web2, down, 503}), "9=DRAINING 1=DEGRADED/500")
		c.hears("no word on one", report(said{db1, 0, 0}, said{web1, degraded, 500}, said{web2, down, 503}), "9=UNKNOWN")
		f.is(hds.Synced, 0)
		if n := f.counted("hdsd_hds_votes_total"); n != 8 {
			t.Errorf("%v votes are counted", n)
		}
	})
}

func TestReportOfUnknownStatusIsStrange(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1}, checked{2, web2})
		odd := report(said{web1, 77, 0}, said{web2, up, 0})
		c.hears("first", odd, "2=HEALTHY")
		f.is(hds.Synced, 1)
		c.hears("again", odd, "")
		f.is(hds.Synced, 2)
		c.hears("a negative one", report(said{web1, -3, 0}, said{web2, up, 0}), "")
		c.hears("a good one", report(said{web1, down, 0}, said{web2, up, 0}), "1=UNHEALTHY")
		c.hears("a bad one keeps the last word", report(said{web1, 255, 0}, said{web2, up, 0}), "")
		c.hears("so that it is no change", report(said{web1, down, 0}, said{web2, up, 0}), "")
		f.is(hds.Synced, 4)
	})
}

// TestUnknownStatusStaysStrange: a cluster that is reported as before counts in each
// report, also where only another cluster changes.
func TestUnknownStatusStaysStrange(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{9, db1}, checked{1, web1})
		c.hears("first", report(said{db1, 77, 0}, said{web1, up, 0}), "1=HEALTHY")
		f.is(hds.Synced, 1)
		c.hears("another cluster changes", report(said{db1, 77, 0}, said{web1, down, 0}), "1=UNHEALTHY")
		f.is(hds.Synced, 2)
		c.hears("and again", report(said{db1, 77, 0}, said{web1, up, 0}), "1=HEALTHY")
		f.is(hds.Synced, 3)
	})
}

func TestReportMayFollowTheSpecifierBefore(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{9, db1}, checked{1, web1})
		c.hears("first", report(said{db1, up, 0}, said{web1, up, 0}), "9=HEALTHY 1=HEALTHY")
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		c.next()
		f.is(hds.Sent, 0)
		c.hears("as before", report(said{db1, up, 0}, said{web1, up, 0}), "")
		old := report(said{db1, down, 0}, said{web1, down, 0})
		c.hears("in the old order: only what is assigned still", old, "1=UNHEALTHY")
		c.hears("the same", old, "")
		f.is(hds.Sent, 0)
		next := report(said{web1, down, 0}, said{web2, down, 0})
		c.hears("in the new one: everything", next, "1=UNHEALTHY 2=UNHEALTHY")
		f.is(hds.Synced, 0)
		c.hears("db is no longer its business", old, "")
		f.is(hds.Synced, 1)
	})
}

func TestReportMayFollowSpecifiersLongBefore(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		const gone = "gone/a/10.0.0.8:80"
		c := assigned(f, checked{8, gone}, checked{9, db1})
		c.hears("first", report(said{gone, up, 0}, said{db1, up, 0}), "8=HEALTHY 9=HEALTHY")
		for n := range 40 {
			f.server.Assign("a", assignment(checked{9, db1}, checked{health.EndpointID(10 + n), fmt.Sprintf("web/a/10.0.1.%d:80", n)}))
			c.next()
		}
		last := "web/a/10.0.1.39:80"
		c.hears("as in the beginning", report(said{gone, down, 0}, said{db1, down, 0}), "9=UNHEALTHY")
		f.is(hds.Sent, 0)
		c.hears("as now", report(said{db1, up, 0}, said{last, up, 0}), "9=HEALTHY 49=HEALTHY")
		f.is(hds.Synced, 0)
	})
}

func TestSameEndpointUnderAnotherIdentityIsReportedAgain(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1})
		said1 := report(said{web1, up, 0})
		c.hears("first", said1, "1=HEALTHY")
		f.server.Assign("a", assignment(checked{5, web1}))
		f.sink.take()
		f.is(hds.Sent, 0)
		c.hears("the same bytes", said1, "5=HEALTHY")
		f.is(hds.Synced, 0)
		if n := f.counted("hdsd_hds_specifiers_sent_total"); n != 1 {
			t.Errorf("%v specifiers were sent", n)
		}
	})
}

func TestAMoveToAnotherLocalityIsSeen(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, "web/a/10.0.0.1:80"})
		c.hears("first", report(said{"web/a/10.0.0.1:80", up, 0}), "1=HEALTHY")
		f.server.Assign("a", assignment(checked{2, "web/b/10.0.0.1:80"}))
		c.next()
		c.hears("the address in its old place", report(said{"web/a/10.0.0.1:80", down, 0}), "")
		f.is(hds.Sent, 0)
		c.hears("and in its new one", report(said{"web/b/10.0.0.1:80", down, 0}), "2=UNHEALTHY")
		f.is(hds.Synced, 0)
	})
}

func TestUnexpectedReports(t *testing.T) {
	flat := func(entries ...said) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
		m := report(entries...)
		m.GetEndpointHealthResponse().ClusterEndpointsHealth = nil
		return m
	}
	bare := reportMessage(&healthv3.EndpointHealthResponse{ClusterEndpointsHealth: []*healthv3.ClusterEndpointsHealth{nil, {
		LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{nil, {EndpointsHealth: []*healthv3.EndpointHealth{
			nil, {}, {Endpoint: &endpointv3.Endpoint{}}, {Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{}}},
		}}},
	}}})
	const twin = "twin/a/10.0.0.1:80" // web1's address in another cluster
	tests := map[string]struct {
		report    *healthv3.HealthCheckRequestOrEndpointHealthResponse
		want      string
		specifier string
		strange   uint64
	}{
		"another order":          {report(said{web2, up, 0}, said{twin, down, 0}, said{web1, up, 0}), "2=HEALTHY 3=UNHEALTHY 1=HEALTHY", hds.Sent, 0},
		"only some":              {report(said{web2, up, 0}), "2=HEALTHY", hds.Sent, 0},
		"never assigned":         {report(said{web1, up, 0}, said{web2, up, 0}, said{twin, up, 0}, said{db1, up, 0}), "1=HEALTHY 2=HEALTHY 3=HEALTHY", hds.Sent, 1},
		"one thrice":             {report(said{web2, up, 0}, said{web2, up, 0}, said{web2, down, 0}), "2=HEALTHY 2=UNHEALTHY", hds.Sent, 0},
		"flat in order":          {flat(said{web1, up, 200}, said{web2, up, 0}, said{twin, down, 0}), "1=HEALTHY/200 2=HEALTHY 3=UNHEALTHY", hds.Synced, 0},
		"flat in another order":  {flat(said{web2, up, 0}, said{twin, down, 0}, said{web1, up, 0}), "2=HEALTHY", hds.Sent, 0},
		"flat and strange":       {flat(said{web2, up, 0}, said{db1, down, 0}), "2=HEALTHY", hds.Sent, 1},
		"nothing in its entries": {bare, "", hds.Sent, 4},
		"a first message again":  {hello(&corev3.Node{Id: "b"}), "", hds.Sent, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{}, func(f *fixture) {
				c := assigned(f, checked{1, web1}, checked{2, web2}, checked{3, twin})
				c.hears(name, test.report, test.want)
				f.is(test.specifier, test.strange)
			})
		})
	}
}

func TestReportBeforeAnythingWasAssignedIsStrange(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		c.hears("at once", report(said{web1, up, 0}), "")
		f.is(hds.NotSent, 1)
	})
}

func TestHeartbeatsAcceptAnEmptySpecifier(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f)
		f.is(hds.Sent, 0)
		c.hears("a heartbeat", report(), "")
		f.is(hds.Synced, 0)
		heard := f.server.State("a").LastReport
		time.Sleep(time.Second)
		c.hears("another", report(), "")
		if later := f.server.State("a").LastReport; later.Sub(heard) != time.Second {
			t.Errorf("heard at %s, then at %s", heard, later)
		}
		f.server.Assign("a", assignment(checked{1, web1}))
		c.next()
		c.hears("a heartbeat", report(), "")
		f.is(hds.Sent, 0)
	})
}

func TestEmptiedClustersDoNotCountAgainstAcceptance(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{9, db1}, checked{1, web1})
		f.server.Assign("a", assignment(checked{1, web1}))
		c.next()
		m := report(said{web1, up, 0})
		r := m.GetEndpointHealthResponse()
		r.ClusterEndpointsHealth = append(r.ClusterEndpointsHealth, &healthv3.ClusterEndpointsHealth{ClusterName: "db"})
		c.hears("with the emptied one", m, "1=HEALTHY")
		f.is(hds.Synced, 0)
		c.next() // it is dropped
		f.is(hds.Synced, 0)
		c.hears("without it", report(said{web1, up, 0}), "")
		f.is(hds.Synced, 0)
	})
}

func TestSpecifierThatIsNotFollowedIsLoggedOnce(t *testing.T) {
	tests := map[string]struct {
		report *healthv3.HealthCheckRequestOrEndpointHealthResponse
		text   string
	}{
		"something else": {report(said{web2, up, 0}), "reports nothing of what it was sent"},
		"silent":         {nil, "reports nothing of what it was sent"},
		"followed":       {report(said{web1, up, 0}), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
				c := assigned(f, checked{1, web1})
				for range 10 {
					time.Sleep(time.Second)
					if test.report != nil {
						c.send(test.report)
					}
				}
				f.sink.take()
				want := 0
				if test.text != "" {
					want = 1
				}
				if n := strings.Count(f.log.String(), "\n"); n != want || !strings.Contains(f.log.String(), test.text) {
					t.Errorf("logged: %s", f.log)
				}
				if n := f.counted("hdsd_hds_unaccepted_specifiers_total"); n != float64(want) {
					t.Errorf("%v are counted", n)
				}
			})
		})
	}
}

func TestLaterSpecifierThatIsNotFollowedIsLoggedOnce(t *testing.T) {
	for _, keepsOn := range []bool{true, false} {
		bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
			c := assigned(f, checked{1, web1})
			c.hears("the first", report(said{web1, up, 0}), "1=HEALTHY")
			f.server.Assign("a", assignment(checked{2, web2}))
			c.next()
			for range 10 {
				time.Sleep(time.Second)
				if keepsOn {
					c.send(report(said{web1, up, 0}))
				}
			}
			text := fmt.Sprintf(`"reporting":%v,"message":"the reports of a checker do not follow its specifier`, keepsOn)
			if log := f.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, text) {
				t.Errorf("logged, not %q: %s", text, log)
			}
		})
	}
}

func TestAnIdThatWasGivenToAnotherIsNotTakenForItsPredecessor(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1}, checked{2, web2})
		c.hears("the first", report(said{web1, up, 0}, said{web2, up, 0}), "1=HEALTHY 2=HEALTHY")
		f.server.Assign("a", assignment(checked{1, db1}, checked{2, web2}))
		c.next()
		c.hears("a report on the first", report(said{web1, down, 0}, said{web2, down, 0}), "2=UNHEALTHY")
		c.hears("one on the second", report(said{db1, up, 0}, said{web2, down, 0}), "1=HEALTHY 2=UNHEALTHY")
	})
}

func TestLargerMessageThanAllowedEndsTheStream(t *testing.T) {
	bubble(t, hds.Options{MaxMessageBytes: 4096}, func(f *fixture) {
		c := assigned(f, checked{1, web1})
		large := make([]said, 200)
		for i := range large {
			large[i] = said{web1, up, 200}
		}
		c.send(report(large...))
		c.fails(codes.ResourceExhausted, "larger than max")
		same(t, "calls", f.sink.take(), "disconnected a")
	})
}

// TestWhoRepeatsItselfIsToldOfNowAndThen: the sink hears of it ten times an interval at most,
// and of what is new at once.
func TestWhoRepeatsItselfIsToldOfNowAndThen(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		time.Sleep(time.Second)
		c := assigned(f, checked{1, web1})
		c.hears("the first report", report(said{web1, up, 0}), "1=HEALTHY")
		for range 40 {
			time.Sleep(25 * time.Millisecond)
			c.send(report(said{web1, up, 0}))
		}
		if told := f.sink.take(); len(told) != 10 || told[0] != "reported a" {
			t.Errorf("in one interval the sink was told %q", told)
		}
		c.send(report(said{web1, down, 503}))
		same(t, "calls after news", f.sink.take(), "reported a 1=UNHEALTHY/503")
		if last := f.server.State("a").LastReport; !last.Equal(time.Now()) {
			t.Errorf("the last report was %v ago", time.Since(last))
		}
	})
}
