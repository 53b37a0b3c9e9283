package canary

import (
	"fmt"
	"hdsd/envoy/specifier"
	"testing"
	"time"
)

// TestAShapeIsTriedOnce: other clusters that have it wait for that trial, and need none.
func TestAShapeIsTriedOnce(t *testing.T) {
	d := newDesk(t, "a", "b")
	for i := range 100 {
		d.set(fmt.Sprint("cluster-", i), 1)
	}
	d.want("the first", d.try("a", "cluster-0"), true)
	d.want("the same shape at the same checker", d.try("a", "cluster-1"), false)
	d.want("the same shape elsewhere", d.try("b", "cluster-1"), false)
	if s := d.Standing("cluster-1"); s.Canary != "a" || s.With != "cluster-0" {
		t.Errorf("it stands like this: %+v", s)
	}
	d.follow("a")
	d.pass(3 * time.Second)
	d.Reported(d.now, "a")
	for i := range 100 {
		d.want("proven", d.proven(fmt.Sprint("cluster-", i)), true)
	}
	d.set("new", 1)
	d.want("a new cluster", d.proven("new"), true)
	if n := len(d.Events()); n != 2 {
		t.Errorf("%d events, want a start and a proof", n)
	}
}

// TestARemovedClusterEndsItsTrialForAll: others may try its shapes then, and a loss soon
// after counts.
func TestARemovedClusterEndsItsTrialForAll(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("web", 1)
	d.set("db", 1)
	d.want("web", d.try("a", "web"), true)
	d.Remove(d.now, "web")
	if at, ok := d.NextDeadline(); !ok || at.After(d.now) {
		t.Errorf("due at %v, want at once", at)
	}
	d.want("db", d.try("b", "db"), true)
	d.Withdraw(d.now, "db")
	d.Lost(d.now, "a")
	d.want("db is suspect", len(d.Standing("db").Losses) == 1, true)
}

// TestBlameIsShared: whoever has the shapes is blocked with the first cluster, also one
// that comes later.
func TestBlameIsShared(t *testing.T) {
	d := newDesk(t, "a", "b", "c")
	for i := range 100 {
		d.set(fmt.Sprint("cluster-", i), 1, 2)
	}
	d.condemn("cluster-0", "a", "b")
	d.set("cluster-100", 2, 1)
	d.set("larger", 1, 2, 3)
	for i := range 101 {
		name := fmt.Sprint("cluster-", i)
		d.want(name, d.Blocked(name), true)
		d.want(name+" is tried", d.try("c", name), false)
	}
	d.want("larger", d.Blocked("larger"), true)
	if n := d.BlockedClusters(); n != 102 {
		t.Errorf("%d are blocked", n)
	}
	d.Remove(d.now, "cluster-0")
	d.want("the others once the first is gone", d.Blocked("cluster-1"), true)
}

// TestLossesPointToWhatTheyShare: two clusters with a killer, each with a shape of its
// own, cost two checkers, and block whatever has the killer.
func TestLossesPointToWhatTheyShare(t *testing.T) {
	const killer = 1
	d := newDesk(t, "a", "b", "c")
	d.set("web", killer, 2)
	d.want("web", d.try("a", "web"), true)
	d.Lost(d.now, "a")
	d.set("db", killer, 3)
	d.set("good", 2)
	d.want("what shares a shape, in unrest", d.try("b", "db"), false)
	d.pass(calm)
	d.want("then", d.try("b", "db"), true)
	d.Lost(d.now, "b")
	d.pass(calm)
	d.set("another", killer, 4)
	for _, name := range []string{"web", "db", "another"} {
		d.want(name, d.Blocked(name), true)
		d.want(name+" is tried", d.try("c", name), false)
	}
	d.want("good", d.Blocked("good"), false)
	d.prove("c", "good")
}

// TestWhatIsProvenIsNotToBlame: a checker survives one of two shapes that are blamed.
func TestWhatIsProvenIsNotToBlame(t *testing.T) {
	d := newDesk(t, "a", "b", "c")
	d.set("web", 1, 2)
	d.try("a", "web")
	d.Lost(d.now, "a")
	d.pass(calm)
	d.set("good", 1)
	d.prove("b", "good")
	d.set("bad", 2)
	d.pass(calm)
	d.want("what is left of it", d.try("b", "bad"), true)
	d.Lost(d.now, "b")
	d.want("web", d.Blocked("web"), true)
	d.want("good", d.Blocked("good"), false)
}

// TestTheSmallerVersionIsTriedFirst, so that a killer beside a shape that most clusters
// have does not make those suspect. If nobody tries it, the larger one does not wait long.
func TestTheSmallerVersionIsTriedFirst(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("large", 1, 2)
	d.set("small", 1)
	d.want("the larger one", d.try("a", "large"), false)
	d.prove("a", "small")
	d.want("then", d.try("a", "large"), true)
	d.Lost(d.now, "a")
	d.want("the smaller one after a loss", d.Standing("small").Losses == nil, true)

	d = newDesk(t, "a")
	d.set("large", 1, 2)
	d.set("small", 1)
	d.want("the larger one", d.try("a", "large"), false)
	d.pass(patience*report - 1)
	d.want("before patience ends", d.try("a", "large"), false)
	if at, ok := d.NextDeadline(); !ok || at.After(d.now.Add(1)) {
		t.Errorf("due at %v, want when patience ends", at)
	}
	d.pass(1)
	d.want("when patience has ended", d.try("a", "large"), true)
}

// TestATrialDoesNotGoOnWithWhatIsBlocked elsewhere, or on trial there.
func TestATrialDoesNotGoOnWithWhatIsBlocked(t *testing.T) {
	d := newDesk(t, "a", "b", "c")
	d.set("bad", 1)
	d.condemn("bad", "a", "b")
	d.set("web", 2)
	d.set("db", 3)
	d.want("db", d.try("b", "db"), true)
	for i, shape := range []specifier.Shape{1, 3} {
		d.set("web", specifier.Shape(10+i))
		d.want("web", d.try("c", "web"), true)
		d.set("web", shape)
		if s := d.Standing("web"); s.Canary != "" && s.With == "" {
			t.Errorf("shape %d: it stands like this: %+v", shape, s)
		}
	}
	d.Lost(d.now, "c")
	d.want("db", d.Blocked("db"), false)
}
