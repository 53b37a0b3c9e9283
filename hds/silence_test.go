package hds_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hdsd/hds"
)

// listener is a recorder that is told of silence, too.
type listener struct{ recorder }

func (l *listener) Silent(id string, silent bool) { l.add(fmt.Sprintf("silent %s %v", id, silent)) }

func TestCheckerThatNeverReportsIsFoundOut(t *testing.T) {
	l := &listener{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		time.Sleep(time.Minute)
		same(t, "before anything was sent", f.sink.take())
		sent := c.specifiers()
		for i, wait := range []time.Duration{1000, 1000, 999} { // changes do not give it more time
			f.server.Assign("a", assignment([]checked{{1, web1}, {2, web2}}[:2-(i+1)%2]...))
			if n := len(sent()); n != 1 {
				t.Fatalf("sent %d specifiers", n)
			}
			time.Sleep(wait * time.Millisecond)
		}
		same(t, "just before its time", f.sink.take())
		if s := f.server.State("a"); s.Silent || s.Reason != "" {
			t.Errorf("state %+v", s)
		}
		time.Sleep(time.Millisecond)
		same(t, "three intervals after the first specifier", f.sink.take(), "silent a true")
		if s := f.server.State("a"); !s.Silent || s.Specifier != hds.Sent || !strings.Contains(s.Reason, "within 3s") {
			t.Errorf("state %+v", s)
		}
		time.Sleep(time.Minute)
		same(t, "a minute later", f.sink.take())

		c.send(report(said{web1, up, 0}))
		same(t, "calls", f.sink.take(), "silent a false", "reported a 1=HEALTHY")
		if s := f.server.State("a"); s.Silent || s.Reason != "" || s.Specifier != hds.Synced {
			t.Errorf("state %+v", s)
		}
		f.server.Assign("a", assignment(checked{2, web2}))
		sent()
		time.Sleep(time.Minute)
		same(t, "one that has reported once is not silent", f.sink.take())
		if n := f.counted("hdsd_hds_silent_checkers_total"); n != 1 {
			t.Errorf("%v are counted", n)
		}
	})
}

func TestCheckerThatOnlyBeatsIsFoundOut(t *testing.T) {
	l := &listener{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		f.assigning() // nothing, which an Envoy takes
		c := f.connect("a", "10.1.0.1", "z1")
		c.next()
		beat := func(seconds int) { // in between, so that nothing else is due at the same instant
			for range seconds {
				time.Sleep(500 * time.Millisecond)
				c.send(report())
				time.Sleep(500 * time.Millisecond)
			}
		}
		beat(60)
		f.server.Assign("a", assignment(checked{1, web1}))
		c.next()
		beat(2)
		f.server.Assign("a", assignment()) // taken back before its time was up
		c.next()
		beat(60)
		if f.server.State("a").Silent {
			t.Error("it is called silent without anything to report")
		}
		f.server.Assign("a", assignment(checked{1, web1}))
		c.next()
		beat(2)
		f.sink.take()
		beat(2)
		same(t, "calls", f.sink.take(), "reported a", "silent a true", "reported a")
		c.send(report(said{web1, up, 0}))
		same(t, "calls", f.sink.take(), "silent a false", "reported a 1=HEALTHY")
	})
}

func TestCheckerThatFetchesAndNeverReportsIsFoundOut(t *testing.T) {
	l := &listener{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		f.assigning(checked{1, web1})
		for range 4 {
			f.gets("fetch", f.fetch("10.1.0.1", hello(nodeIn("a", "z1"))), webOne)
			time.Sleep(time.Second)
		}
		same(t, "calls", f.sink.take(), "connected a", "silent a true")
		f.gets("report", f.fetch("10.1.0.1", report(said{web1, up, 0}), "a"), webOne)
		same(t, "calls", f.sink.take(), "silent a false", "reported a 1=HEALTHY")
		time.Sleep(time.Minute)
		same(t, "calls", f.sink.take(), "disconnected a")
	})
}

func TestSilenceEndsWithItsStream(t *testing.T) {
	l := &listener{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		f.assigning(checked{1, web1})
		c := f.connect("a", "10.1.0.1", "z1")
		c.next()
		time.Sleep(3 * time.Second)
		same(t, "calls", f.sink.take(), "connected a", "silent a true")
		f.connect("a", "10.1.0.1", "z1").next()
		same(t, "calls", f.sink.take(), "connected a")
		if s := f.server.State("a"); s.Silent {
			t.Errorf("state %+v", s)
		}
	})
}

// TestNobodyIsSilentWhileHdsdDoesNotRead: the time of a checker stands still while hdsd handles
// what it said before, and while its connection waits for room.
func TestNobodyIsSilentWhileHdsdDoesNotRead(t *testing.T) {
	for _, how := range []string{"handles", "waits"} {
		t.Run(how, func(t *testing.T) {
			l := &listener{}
			var waited atomic.Int64
			o := hds.Options{Interval: time.Second, Waited: func(context.Context) (all, present time.Duration) { return time.Duration(waited.Load()), 0 }}
			bubbleWith(t, o, l, &l.recorder, func(f *fixture) {
				handle := make(chan struct{})
				f.assigning(checked{1, web1})
				c := f.connect("a", "10.1.0.1", "z1")
				c.next()
				f.sink.take()
				for range 10 {
					if how == "waits" {
						waited.Add(int64(time.Second))
					} else if waited.Add(1) == 1 {
						l.onReported = func(string) { <-handle }
						c.send(report()) // a heartbeat
					}
					time.Sleep(time.Second)
				}
				if f.server.State("a").Silent {
					t.Error("it is silent after 10 s in which hdsd did not read")
				}
				close(handle)
				time.Sleep(2900 * time.Millisecond)
				if f.server.State("a").Silent {
					t.Error("it is silent 2.9 s later")
				}
				time.Sleep(200 * time.Millisecond)
				if !f.server.State("a").Silent {
					t.Error("it is not silent 3.1 s later")
				}
			})
		})
	}
}
