package hds_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"hdsd/hds"
)

// edges admits checkers with ids that begin with edge, from 10.0.0.0/8.
func edges() []hds.AdmitRule {
	return []hds.AdmitRule{{
		NodeID:    func(id string) bool { return strings.HasPrefix(id, "edge-") },
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}}
}

// TestWhoIsNotAdmittedIsRefused on streams, and in fetches over gRPC and REST.
func TestWhoIsNotAdmittedIsRefused(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.server.SetAdmission(edges())
		f.connect("edge-1", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected edge-1")
		for id, host := range map[string]string{"other-1": "10.1.0.1", "edge-2": "11.1.0.1"} {
			f.connect(id, host, "z1").fails(codes.PermissionDenied, "checkers.admit")
			f.isRefused("a fetch", f.fetch(host, hello(nodeIn(id, "z1"))), codes.PermissionDenied, "checkers.admit")
		}
		code, text := f.rest().do("POST", hds.FetchPath, "", `{"health_check_request":{"node":{"id":"other-1"},"capability":{"health_check_protocols":["HTTP"]}}}`)
		if code != 403 || !strings.Contains(text, "checkers.admit") {
			t.Errorf("by REST: %d %s", code, text)
		}
		same(t, "calls", f.sink.take())
		if n := f.counted("hdsd_hds_turned_away_total"); n != 5 {
			t.Errorf("%g are counted", n)
		}
		if n := strings.Count(f.log.String(), "checker_refused"); n != 1 {
			t.Errorf("%d lines are logged within an instant", n)
		}
	})
}

// TestAnotherAdmissionEndsSessions of those that it does not admit.
func TestAnotherAdmissionEndsSessions(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		other, edge := f.connect("other-1", "10.1.0.1", "z1"), f.connect("edge-1", "10.1.0.1", "z1")
		f.sink.take()
		f.server.SetAdmission(edges())
		other.fails(codes.PermissionDenied, `node "other-1" from 10.1.0.1`)
		same(t, "calls", f.sink.take(), "ended other-1", "disconnected other-1")
		f.server.SetAdmission(nil)
		f.connect("other-1", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected other-1")
		edge.cancel()
	})
}

// TestOneCallerHasABoundedNumberOfIDs until 10 s after they have left.
func TestOneCallerHasABoundedNumberOfIDs(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second, MaxIDsPerCaller: 3}, func(f *fixture) {
		conn := f.dial("10.1.0.1")
		come := func(id string) *client {
			c := f.open(conn)
			c.send(hello(nodeIn(id, "z1")))
			synctest.Wait()
			return c
		}
		first := come("a")
		come("b")
		come("c")
		come("d").fails(codes.ResourceExhausted, "limits.max_ids_per_caller")
		first.cancel()
		synctest.Wait()
		come("d").fails(codes.ResourceExhausted, "limits.max_ids_per_caller")
		come("a").cancel()
		f.sink.take()
		time.Sleep(9 * time.Second)
		come("d").fails(codes.ResourceExhausted, "limits.max_ids_per_caller")
		time.Sleep(2 * time.Second)
		come("d")
		if calls := f.sink.take(); len(calls) == 0 || calls[len(calls)-1] != "connected d" {
			t.Errorf("calls: %v", calls)
		}
	})
}

// TestOneCallerBringsABoundedNumberOfNewIDs: those that come back do not count.
func TestOneCallerBringsABoundedNumberOfNewIDs(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second, MaxJoinsPerMinute: 6}, func(f *fixture) {
		conn := f.dial("10.1.0.1")
		comes := func(id string) *client {
			c := f.open(conn)
			c.send(hello(nodeIn(id, "z1")))
			synctest.Wait()
			return c
		}
		for range 5 { // a fleet that comes back again and again
			for i := range 6 {
				comes(fmt.Sprint("fleet", i)).cancel()
				synctest.Wait()
			}
		}
		comes("x").fails(codes.ResourceExhausted, "limits.max_joins_per_minute")
		f.sink.take()
		time.Sleep(10 * time.Second)
		comes("x")
		same(t, "calls", f.sink.take(), "connected x")
		comes("y").fails(codes.ResourceExhausted, "limits.max_joins_per_minute")
	})
}

// TestAFleetUnderOneCertificateIsNotRefused by the defaults: a thousand checkers of one
// caller come at once, come back at once, and are replaced by others.
func TestAFleetUnderOneCertificateIsNotRefused(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		const size = 1000
		conn := f.dial("10.1.0.1")
		come := func(name string) {
			for i := range size {
				c := f.open(conn)
				c.send(hello(nodeIn(fmt.Sprint(name, i), "z1")))
				synctest.Wait()
				c.cancel()
			}
			connected := 0
			for _, call := range f.sink.take() {
				if strings.HasPrefix(call, "connected "+name) {
					connected++
				}
			}
			if connected != size {
				t.Errorf("%d of %s connect", connected, name)
			}
		}
		come("old")
		come("old")
		time.Sleep(50 * time.Second)
		come("new")
	})
}

// TestAFleetUnderOneCertificateIsRenamedTwice by the defaults, within two minutes: each
// checker leaves as its successor comes.
func TestAFleetUnderOneCertificateIsRenamedTwice(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		const size = 1000
		conn := f.dial("10.1.0.1")
		present := make([]*client, size)
		for _, name := range []string{"first", "second", "third"} {
			for i := range present {
				if present[i] != nil {
					present[i].cancel()
				}
				present[i] = f.open(conn)
				present[i].send(hello(nodeIn(fmt.Sprint(name, i), "z1")))
				synctest.Wait()
				time.Sleep(time.Minute / size)
			}
			connected := 0
			for _, call := range f.sink.take() {
				if strings.HasPrefix(call, "connected "+name) {
					connected++
				}
			}
			if connected != size {
				t.Errorf("%d of %s connect", connected, name)
			}
		}
		for _, c := range present {
			c.cancel()
		}
	})
}
