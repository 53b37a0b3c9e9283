package hds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"hdsd/hds"
	"hdsd/health"
)

const (
	webOne  = "web{a:10.0.0.1:80,}"
	webBoth = "web{a:10.0.0.1:80,10.0.0.2:80,}"
	dbOne   = "db{b:10.0.0.9:5432,}"
)

// specifiers collects what a client is sent.
func (c *client) specifiers() func() []string {
	var got recorder
	go func() {
		for {
			m, err := c.stream.Recv()
			if err != nil {
				return
			}
			got.add(specifierText(m))
		}
	}()
	return got.take
}

func TestSpecifierIsSentWhenItDiffers(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		sent := c.specifiers()
		f.sink.take()
		same(t, "before anything is assigned", sent())

		f.server.Assign("a", assignment())
		same(t, "an empty first one", sent(), "")
		f.server.Assign("a", assignment())
		same(t, "an empty one again", sent())
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "one endpoint", sent(), webOne)
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "the same again", sent())
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		same(t, "two endpoints", sent(), webBoth)
		f.server.Assign("b", assignment(checked{1, web1}))
		same(t, "what is for somebody else", sent())
		if n := f.counted("hdsd_hds_specifiers_sent_total"); n != 3 {
			t.Errorf("%v specifiers are counted", n)
		}
	})
}

func TestNothingIsSentBeforeConnectedReturns(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		hold := make(chan struct{})
		f.sink.onConnected = func(health.Checker) { <-hold }
		sent := f.connect("a", "10.1.0.1", "z1").specifiers()
		f.sink.take()
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "while Connected is held", sent())
		f.server.Assign("a", assignment(checked{2, web2}))
		close(hold)
		same(t, "after it", sent(), "web{a:10.0.0.2:80,}")
	})
}

func TestNewStreamStartsWithoutTheOldAssignment(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		f.sink.onConnected = func(health.Checker) { f.server.Assign("a", assignment(checked{2, web2})) }
		hold := make(chan struct{})
		f.sink.onReported = func(string) { <-hold }
		old := f.connect("a", "10.1.0.1", "z1")
		if got := old.next(); got != "web{a:10.0.0.2:80,}" {
			t.Errorf("sent %q", got)
		}
		f.sink.onConnected = nil
		old.send(report(said{web2, up, 0}))
		sent := f.connect("a", "10.1.0.1", "z1").specifiers()
		time.Sleep(4 * time.Second)
		f.server.Assign("a", assignment(checked{1, web1}))
		close(hold)
		time.Sleep(time.Second) // the old one is read, and counts as silent
		same(t, "on the new stream", sent())
		f.server.Assign("a", assignment(checked{1, web1}))
		f.server.Assign("a", nil)
		same(t, "after it was taken back", sent())
		if got := f.server.State("a").Specifier; got != hds.NotSent {
			t.Errorf("the specifier is %s", got)
		}
		f.server.Assign("a", assignment(checked{2, web2}))
		same(t, "when assigned again", sent(), "web{a:10.0.0.2:80,}")
	})
}

func TestRemovedClusterIsEmptiedFirst(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		sent := f.connect("a", "10.1.0.1", "z1").specifiers()
		f.sink.take()
		f.server.Assign("a", assignment(checked{3, db1}, checked{1, web1}))
		same(t, "both", sent(), dbOne+webOne)
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "db is emptied", sent(), webOne+"db{}")
		time.Sleep(500 * time.Millisecond)
		f.server.Assign("a", assignment())
		same(t, "web is emptied as well", sent(), "db{}web{}")
		time.Sleep(499 * time.Millisecond)
		same(t, "just before its time", sent())
		time.Sleep(time.Millisecond)
		same(t, "db is dropped", sent(), "web{}")
		time.Sleep(time.Hour / 2)
		same(t, "web is dropped", sent(), "")
	})
}

func TestClusterThatComesBackIsNotDropped(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		sent := c.specifiers()
		f.sink.take()
		f.server.Assign("a", assignment(checked{1, web1}))
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "first", sent(), webOne)
		f.server.Assign("a", assignment())
		same(t, "emptied", sent(), "web{}")
		time.Sleep(500 * time.Millisecond)
		c.send(report())
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "back", sent(), webOne)
		time.Sleep(time.Minute)
		same(t, "a minute later", sent())
	})
}

// TestWhatComesBackWaitsForAReportWithoutIt: a checker that lost an endpoint checks it anew
// when it comes back. Its reports of before list the same, but say nothing about the new check.
func TestWhatComesBackWaitsForAReportWithoutIt(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		sent := c.specifiers()
		f.sink.take()
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		same(t, "first", sent(), webBoth)
		before := report(said{web1, up, 200}, said{web2, up, 200})
		c.hears("before", before, "1=HEALTHY/200 2=HEALTHY/200")
		f.server.Assign("a", assignment(checked{1, web1}))
		same(t, "without one", sent(), webOne)
		f.server.Assign("a", assignment(checked{1, web1}, checked{3, web2}))
		same(t, "the one is back", sent())
		c.hears("a report on its way", before, "")
		same(t, "after that report", sent())
		f.is(hds.NotSent, 0)
		c.hears("a report without it", report(said{web1, up, 200}), "1=HEALTHY/200")
		same(t, "after that report", sent(), webBoth)
		c.hears("the new check has not ended", report(said{web1, up, 200}, said{web2, down, 0}), "1=HEALTHY/200 3=UNHEALTHY")
	})
}

// TestWhatComesBackDoesNotWaitForever: some checkers follow nothing.
func TestWhatComesBackDoesNotWaitForever(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		sent := c.specifiers()
		f.sink.take()
		f.server.Assign("a", assignment(checked{9, db1}, checked{1, web1}))
		same(t, "first", sent(), dbOne+webOne)
		f.server.Assign("a", assignment(checked{9, db1}))
		same(t, "without one", sent(), dbOne+"web{}")
		f.server.Assign("a", assignment(checked{9, db1}, checked{1, web1}))
		time.Sleep(time.Second)
		same(t, "after an interval", sent(), dbOne)
		f.server.Assign("a", assignment(checked{1, web1}, checked{2, web2}))
		time.Sleep(2*time.Second - time.Millisecond)
		same(t, "another that brings it back", sent())
		time.Sleep(time.Millisecond)
		same(t, "after three intervals", sent(), webBoth+"db{}")
	})
}

// TestVotesAreToldAnewWhenASpecifierWasSkipped has another specifier and the
// first again assigned before either can be sent: whoever took an endpoint away
// and gave it back counts on hearing of it.
func TestVotesAreToldAnewWhenASpecifierWasSkipped(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1})
		said := report(said{web1, up, 0})
		c.hears("first", said, "1=HEALTHY")
		c.hears("the same again", said, "")
		f.server.Assign("a", assignment())
		f.server.Assign("a", assignment(checked{1, web1}))
		synctest.Wait() // else the report may be taken before either
		c.hears("after one that was skipped", said, "1=HEALTHY")
		c.hears("once more", said, "")
	})
}
