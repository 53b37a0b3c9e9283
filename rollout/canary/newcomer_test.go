package canary

import (
	"fmt"
	"hdsd/envoy/specifier"
	"slices"
	"testing"
	"time"
)

// newcomersDesk is a desk at which some checkers are established.
func newcomersDesk(t *testing.T, established ...string) *desk {
	d := &desk{t: t, now: epoch, Ledger: New(Options{Report: report, Calm: calm, Established: func(id string) bool {
		return slices.Contains(established, id)
	}})}
	for _, id := range established {
		d.connect(id)
	}
	d.pass(time.Minute)
	return d
}

// die loses a checker, which comes back.
func (d *desk) die(id string) {
	d.Lost(d.now, id)
	d.pass(calm)
	d.connect(id)
	d.pass(calm)
}

// TestSaboteursBlockNothing: three newcomers ask first for two new clusters, and would
// hang up on them.
func TestSaboteursBlockNothing(t *testing.T) {
	d := newcomersDesk(t, "a", "b", "c")
	saboteurs := []string{"x", "y", "z"}
	for _, id := range saboteurs {
		d.connect(id)
	}
	d.pass(calm)
	for i, name := range []string{"one", "two"} {
		d.set(name, specifier.Shape(i), 77)
		for _, id := range saboteurs {
			d.want(id+" first", d.try(id, name), false)
		}
		d.prove("a", name)
		d.want("blocked", d.Blocked(name), false)
	}
}

func TestANewcomerTriesWhereNobodyElseCan(t *testing.T) {
	t.Run("among newcomers", func(t *testing.T) {
		d := newcomersDesk(t)
		d.connect("x")
		d.connect("y")
		d.set("web", 1)
		d.want("at once", d.try("x", "web"), true)
	})
	t.Run("nobody established asks", func(t *testing.T) {
		d := newcomersDesk(t, "a")
		d.connect("x")
		d.set("web", 1)
		d.want("at once", d.try("x", "web"), false)
		d.pass(patience*report - 1)
		d.want("before patience ends", d.try("x", "web"), false)
		if at, ok := d.NextDeadline(); !ok || at.After(d.now.Add(1)) {
			t.Errorf("due at %v, want when patience ends", at)
		}
		d.pass(1)
		d.want("when patience has ended", d.try("x", "web"), true)
	})
	t.Run("an established one has to wait", func(t *testing.T) {
		d := newcomersDesk(t, "a", "b")
		d.connect("x")
		d.set("web", 1)
		d.want("a", d.try("a", "web"), true)
		d.Lost(d.now, "a")
		d.want("b in unrest", d.try("b", "web"), false)
		d.pass(calm - time.Millisecond)
		d.want("a newcomer meanwhile", d.try("x", "web"), false)
		d.pass(time.Millisecond)
		d.want("a newcomer then", d.try("x", "web"), false)
		d.want("b", d.try("b", "web"), true)
	})
	t.Run("it is proven for the build of the others", func(t *testing.T) {
		d := newcomersDesk(t, "a")
		other := checkerOf("new")
		other.Version = "envoy/1.41.0"
		d.Connected(d.now, other)
		d.pass(calm)
		d.set("web", 1)
		d.prove("a", "web")
		d.want("another build", d.try("new", "web"), true)
	})
}

// TestOneCheckerIsBlamedOnce: the second loss is another checker's wherever there is
// another.
func TestOneCheckerIsBlamedOnce(t *testing.T) {
	d := newcomersDesk(t, "a", "b")
	d.set("web", 1)
	d.want("a", d.try("a", "web"), true)
	d.die("a")
	d.want("a again", d.try("a", "web"), false)
	d.pass(calm)
	d.want("b", d.try("b", "web"), true)
	d.follow("b")
	d.pass(3 * time.Second)
	d.Reported(d.now, "b")
	d.want("proven", d.proven("web"), true)
	if s := d.Standing("web"); len(s.Losses) != 0 {
		t.Errorf("it stands like this: %+v", s)
	}
}

// TestNewcomersDisturbNobody: they come and go all the time, and a suspect is tried all
// the same.
func TestNewcomersDisturbNobody(t *testing.T) {
	d := newcomersDesk(t, "a", "b")
	d.set("web", 1)
	d.try("a", "web")
	d.Lost(d.now, "a")
	for i := range calm / time.Second {
		id := fmt.Sprint("new-", i)
		d.connect(id)
		d.pass(time.Second)
		d.Lost(d.now, id)
		d.Forget(id)
	}
	d.want("the suspect", d.try("b", "web"), true)
}

func TestABlockedVersionIsRetried(t *testing.T) {
	d := newcomersDesk(t, "a", "b", "c")
	d.set("web", 1)
	d.condemn("web", "a", "b")
	d.connect("x")
	retry := d.Standing("web").Retry
	for i, wait := range []time.Duration{30, 60, 120, 240, 480, 960, 1440, 1440} {
		last := d.Standing("web").Losses[1].Time
		if wait *= time.Minute; !retry.Equal(last.Add(wait)) {
			t.Fatalf("retry %d is due %v after the loss, want %v", i, retry.Sub(last), wait)
		}
		d.pass(retry.Sub(d.now) - 1)
		d.want("too soon", d.try("c", "web"), false)
		if at, ok := d.NextDeadline(); !ok || at.After(retry) {
			t.Errorf("due at %v, want %v", at, retry)
		}
		d.pass(1)
		d.want("a newcomer", d.try("x", "web"), false)
		d.want("a retry", d.try("c", "web"), true)
		d.want("nobody else", d.try("b", "web"), false)
		d.die("c")
		d.want("blocked", d.Blocked("web"), true)
		if n := d.BlockedClusters(); n != 1 {
			t.Errorf("%d are blocked", n)
		}
		retry = d.Standing("web").Retry
	}
	// A record carries the back-off over a restart.
	again := newDesk(t, "c")
	again.restore(d)
	again.set("web", 1)
	if !again.Standing("web").Retry.Equal(retry) {
		t.Errorf("after a restart it is retried at %v, want %v", again.Standing("web").Retry, retry)
	}
	d.pass(retry.Sub(d.now))
	d.prove("c", "web")
	d.want("blocked in the end", d.Blocked("web"), false)
	for name, r := range d.records() {
		if r.Retries != 0 || len(r.Losses) != 0 {
			t.Errorf("kept as %q: %+v", name, r)
		}
	}
}

// TestAClockSetBackDelaysNoRetry: the loss is dated a year ahead.
func TestAClockSetBackDelaysNoRetry(t *testing.T) {
	d := newcomersDesk(t, "a")
	ahead := d.now.Add(365 * 24 * time.Hour)
	d.Restore(Record{Blamed: []specifier.Shape{1}, Losses: []Loss{{Checker: "b", Time: ahead}, {Checker: "c", Time: ahead}}})
	d.set("web", 1)
	d.want("at once", d.try("a", "web"), false)
	d.pass(firstBlockedRetry)
	d.want("after the back-off", d.try("a", "web"), true)
}

// TestIdentitiesAreBlamedOnce: two ids of one certificate count as one checker, wherever
// another identity can try.
func TestIdentitiesAreBlamedOnce(t *testing.T) {
	d := newDesk(t)
	for id, identity := range map[string]string{"a": "spiffe://prod/x", "b": "spiffe://prod/x", "c": "spiffe://prod/y"} {
		h := checkerOf(id)
		h.Identity = identity
		d.Connected(d.now, h)
	}
	d.pass(time.Minute)
	d.set("web", 1)
	d.want("a", d.try("a", "web"), true)
	d.Lost(d.now, "a")
	d.pass(calm)
	d.want("b, of the same identity", d.try("b", "web"), false)
	d.want("c", d.try("c", "web"), true)
	d.Withdraw(d.now, "web")
	d.Lost(d.now, "c")
	d.pass(calm)
	d.pass(calm)
	d.want("b, where nobody else can", d.try("b", "web"), true)
}
