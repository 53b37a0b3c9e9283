package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/rollout"
)

// outflow is a Pace whose owner is the test.
type outflow struct {
	*rollout.Pace
	now    time.Time
	serial uint64
	last   map[string]*specifier.Specifier
}

func newOutflow() *outflow {
	return &outflow{Pace: rollout.NewPace(report), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), last: map[string]*specifier.Specifier{}}
}

// send sends specifiers of so many endpoints to those whose turn it is, and returns who they
// are.
func (o *outflow) send(endpoints int) (to []string) {
	for {
		id, ok := o.Next(o.now)
		if !ok {
			return to
		}
		to = append(to, id)
		o.push(id, endpoints)
	}
}

func (o *outflow) push(id string, endpoints int) {
	o.serial++
	s := &specifier.Specifier{Serial: o.serial}
	for i := range endpoints {
		s.Order = append(s.Order, health.EndpointID(int(o.serial)*10+i))
		s.Addresses = append(s.Addresses, "10.0.0.1:80")
	}
	o.last[id] = s
	o.Sent(o.now, id, s)
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestTheNextSpecifierWaitsForTheLast to be followed. However often it is wanted
// meanwhile, it is one.
func TestTheNextSpecifierWaitsForTheLast(t *testing.T) {
	o := newOutflow()
	o.Want(o.now, "a")
	o.Want(o.now, "b")
	want(t, "first", o.send(10), "a", "b")
	first := o.last["a"]
	for range 5 {
		o.Want(o.now, "a")
	}
	want(t, "before it is followed", o.send(10))
	if !o.Waits("a") || o.Waits("b") {
		t.Errorf("a waits: %t, b: %t", o.Waits("a"), o.Waits("b"))
	}
	o.Followed("a", &specifier.Specifier{Serial: 99})
	want(t, "when another is followed", o.send(10))
	o.Followed("a", first)
	want(t, "then", o.send(10), "a")
	want(t, "then no more", o.send(10))

	// Nothing is awaited of an empty specifier, of the same again, or of a new stream.
	o = newOutflow()
	o.Want(o.now, "a")
	want(t, "empty", o.send(0), "a")
	o.Want(o.now, "a")
	want(t, "after an empty one", o.send(10), "a")
	o.Followed("a", o.last["a"])
	o.Sent(o.now, "a", o.last["a"])
	o.Want(o.now, "a")
	want(t, "after the same again", o.send(10), "a")
	o.Want(o.now, "a")
	o.Gone("a")
	want(t, "when it is gone", o.send(10))
	o.Want(o.now, "a")
	want(t, "when it is back", o.send(10), "a")
}

// TestASpecifierThatIsNeverFollowedHoldsUpNobody for long.
func TestASpecifierThatIsNeverFollowedHoldsUpNobody(t *testing.T) {
	o := newOutflow()
	o.Want(o.now, "a")
	o.send(10)
	o.Want(o.now, "a")
	at, ok := o.NextDeadline()
	if !ok || !at.Equal(o.now.Add(8*time.Second)) {
		t.Fatalf("due at %v, want after 8 s", at)
	}
	o.now = at.Add(-1)
	want(t, "before", o.send(10))
	o.now = at
	want(t, "then", o.send(10), "a")
	if at, ok := o.NextDeadline(); ok {
		t.Errorf("due at %v, though nobody waits", at)
	}
}

// TestTheBytesOnTheirWayAreBounded over all checkers; who waits comes in turn, and who must
// be told at once does not wait.
func TestTheBytesOnTheirWayAreBounded(t *testing.T) {
	const endpoints = 5000
	o := newOutflow()
	for i := range 500 {
		o.Want(o.now, fmt.Sprintf("checker-%03d", i))
	}
	began, sent := o.now, 0
	for waves := 0; sent < 500; waves++ {
		to := o.send(endpoints)
		size := 0
		for i, id := range to {
			if number := fmt.Sprintf("checker-%03d", sent+i); id != number {
				t.Fatalf("%s is sent its specifier in the turn of %s", id, number)
			}
			size += o.last[id].Size()
		}
		if one := o.last[to[0]].Size(); size > 32<<20+one || sent+len(to) < 500 && size < 32<<20 {
			t.Errorf("%d bytes are on their way", size)
		}
		if o.push("at once", 1); waves == 0 && o.Waits("at once") {
			t.Error("a checker that was told at once waits")
		}
		sent += len(to)
		o.now = o.now.Add(report)
		for _, id := range to {
			o.Followed(id, o.last[id])
		}
	}
	if took := o.now.Sub(began); took < 3*report {
		t.Errorf("it took %v", took)
	}
}

// TestNobodyWaitsForOthersForEver: the specifiers of others are always too many.
func TestNobodyWaitsForOthersForEver(t *testing.T) {
	o := newOutflow()
	o.push("others", 1_000_000)
	o.Want(o.now, "a")
	for _, passed := range []time.Duration{7, 7, 5} { // before the ones before have lasted too long
		o.now = o.now.Add(passed * time.Second)
		want(t, "while others are told", o.send(10))
		o.push("others", 1_000_000)
	}
	o.now = o.now.Add(time.Second)
	want(t, "in the end", o.send(10), "a")
}

// TestManyLateCheckersWait: when many do not follow at once, they are sent nothing more until
// they do, half a minute at most; the others are told. When a few are left, these are let go.
func TestManyLateCheckersWait(t *testing.T) {
	o := newOutflow()
	all := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	o.tell(all...)
	for _, id := range all[4:] {
		o.Followed(id, o.last[id])
	}
	o.now = o.now.Add(20 * time.Second)
	for _, id := range all {
		o.Want(o.now, id)
	}
	want(t, "while four are late", o.send(10), all[4:]...)
	for _, id := range all[4:] {
		o.Followed(id, o.last[id])
	}
	o.Followed("a", o.last["a"])
	want(t, "one of four follows", o.send(10), "a")
	o.Followed("a", o.last["a"])
	o.Gone("b")
	want(t, "another is gone", o.send(10), "c", "d")

	o = newOutflow()
	o.tell(all...)
	for _, id := range all {
		o.Want(o.now, id)
	}
	began := o.now
	for at, ok := o.NextDeadline(); ok && !o.now.After(began.Add(time.Hour)); at, ok = o.NextDeadline() {
		if !at.After(o.now) {
			t.Fatalf("due at %v, and it is %v", at, o.now)
		}
		o.now = at
		if to := o.send(10); len(to) > 0 {
			want(t, "in the end", to, all...)
			break
		}
	}
	if took := o.now.Sub(began); took != 38*time.Second {
		t.Errorf("they were told after %v", took)
	}
}

// tell sends specifiers to checkers.
func (o *outflow) tell(ids ...string) {
	for _, id := range ids {
		o.Want(o.now, id)
	}
	o.send(10)
}

// BenchmarkPace has 1,000 checkers wait for what they were sent to be followed, and one after
// the other follow.
func BenchmarkPace(b *testing.B) {
	const checkers = 1000
	o, ids := newOutflow(), make([]string, checkers)
	for i := range ids {
		ids[i] = fmt.Sprintf("checker-%03d", i)
	}
	o.tell(ids...)
	for _, id := range ids {
		o.Want(o.now, id)
	}
	for n := 0; b.Loop(); n++ {
		id := ids[n%checkers]
		o.now = o.now.Add(time.Millisecond)
		o.Followed(id, o.last[id])
		o.send(1)
		o.Want(o.now, id)
	}
}
