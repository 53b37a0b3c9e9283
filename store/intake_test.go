package store

import (
	"math"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// TestWhatIsWrittenIsNotKept: the queue keeps neither transitions that a group has nor,
// after a burst, the room that they took.
func TestWhatIsWrittenIsNotKept(t *testing.T) {
	in := newIntake(4 * groupSize)
	for range groupSize + 1 {
		in.append([]health.Transition{{Reason: "2 of 3 checkers say HEALTHY"}}, time.Now)
	}
	parts := in.pending.parts
	for _, want := range []int{groupSize, 1} {
		g := in.nextGroup(math.MaxInt)
		if len(g.transitions) != want {
			t.Fatalf("a group of %d transitions, want %d", len(g.transitions), want)
		}
		for i := range parts {
			if kept := parts[i] != nil; kept == (i < len(parts)-in.pending.count) {
				t.Fatalf("%d wait, transition %d of %d is kept: %v", in.pending.count, i, len(parts), kept)
			}
		}
		in.committed(g, longGroup)
	}
	if in.nextGroup(math.MaxInt) != nil {
		t.Fatal("a third group")
	}
	if n := cap(in.pending.parts); n != 0 {
		t.Errorf("room for %d transitions is kept", n)
	}
}

// TestTheGroupOnItsWayCounts: what is being written is in memory, too. While the disk does not
// take it, no more waits than may.
func TestTheGroupOnItsWayCounts(t *testing.T) {
	in := newIntake(64)
	in.append(flips(64), time.Now)
	g := in.nextGroup(math.MaxInt)
	if len(g.transitions) != 16 {
		t.Fatalf("a group of %d transitions", len(g.transitions))
	}
	in.append(flips(16), time.Now)
	if s := in.stats(); s.Pending > 64 || s.Pending+int(s.Dropped) != 80 {
		t.Fatalf("%+v", s)
	}
	in.committed(g, 0)
	if s := in.stats(); s.Pending > 48 || s.Committed != 16 {
		t.Fatalf("%+v", s)
	}
}

// TestGroupsOfParts: groups have the transitions in order, however those were appended.
// The caller's stay as they are.
func TestGroupsOfParts(t *testing.T) {
	all := flips(100)
	all[40].Time = time.Time{}
	in := newIntake(4 * 17)
	var got []health.Transition
	for i, sizes := 0, []int{1, 30, 2, 67}; len(sizes) > 0; sizes = sizes[1:] {
		in.append(all[i:i+sizes[0]], func() time.Time { return day })
		i += sizes[0]
		for g := in.nextGroup(math.MaxInt); g != nil; g = in.nextGroup(math.MaxInt) {
			if len(g.transitions) > 17 {
				t.Fatalf("a group of %d transitions", len(g.transitions))
			}
			got = append(got, g.transitions...)
			in.committed(g, longGroup)
		}
	}
	if !all[40].Time.IsZero() {
		t.Error("the caller's transition has changed")
	}
	all[40].Time = day
	if !reflect.DeepEqual(got, all) {
		t.Error("the groups do not have what was appended")
	}
}

// TestWhatIsDroppedIsNotKept: neither what was dropped of a batch nor what was written of it
// stays in memory because of the rest.
func TestWhatIsDroppedIsNotKept(t *testing.T) {
	const limit = 4096
	var alive atomic.Int64
	batch := func(count int) []health.Transition {
		all := flips(count)
		for i := range all {
			votes := &[1]health.Observation{{Checker: "checker-1"}}
			alive.Add(1)
			runtime.SetFinalizer(votes, func(*[1]health.Observation) { alive.Add(-1) })
			all[i].Observations = votes[:]
		}
		return all
	}
	in := newIntake(limit)
	in.append(batch(limit), time.Now)
	for range limit - limit/16 - 10 {
		in.append(batch(1), time.Now)
	}
	in.mu.Lock()
	in.overflow = nil // the health of each endpoint that was dropped is kept
	in.mu.Unlock()
	for range 100 {
		if runtime.GC(); alive.Load() <= limit+1 {
			break
		}
		runtime.Gosched()
	}
	if n := alive.Load(); n > limit+1 {
		t.Errorf("%d transitions are in memory, of at most %d", n, limit)
	}
	runtime.KeepAlive(in)
}

// TestAGroupShrinks: what is put back is not acknowledged, may be dropped, and takes along what is
// deleted from voted, unless that row has changed since.
func TestAGroupShrinks(t *testing.T) {
	all := flips(8)
	in := newIntake(32)
	in.put(voted, map[string][]byte{"a": nil, "b": nil, "c": {1}})
	in.append(all, time.Now)
	g := in.nextGroup(math.MaxInt)
	in.put(voted, map[string][]byte{"b": {2}})
	in.shrink(g)
	if s := in.stats(); len(g.transitions) != 4 || s.Pending != 8 {
		t.Fatalf("a group of %d, %+v", len(g.transitions), s)
	}
	if want := (changes{"voted": {"c": {1}}}); !reflect.DeepEqual(g.rows, want) {
		t.Errorf("rows %v", g.rows)
	}
	in.committed(g, 0)
	if in.saved.reached(in.submitted) {
		t.Error("the rest is acknowledged")
	}
	rest := in.nextGroup(math.MaxInt)
	if !reflect.DeepEqual(append(g.transitions, rest.transitions...), all) {
		t.Error("the order has changed")
	}
	if want := (changes{"voted": {"a": nil, "b": {2}}}); !reflect.DeepEqual(rest.rows, want) {
		t.Errorf("then rows %v", rest.rows)
	}
	if in.committed(rest, 0); !in.saved.reached(in.submitted) {
		t.Error("the last part does not acknowledge all")
	}
}

// TestDroppedBehindAGroupThatShrinks: what is dropped while the disk does not take a group is
// newer than what is put back of that group.
func TestDroppedBehindAGroupThatShrinks(t *testing.T) {
	s := open(t, t.TempDir())
	in := newIntake(64)
	x := endpoint("c", "z", "10.0.0.1:1")
	at := func(i int) time.Time { return day.Add(time.Duration(i) * time.Second) }
	n := 0
	other := func(count int) (all []health.Transition) {
		for range count {
			n++
			tr := flip(endpoint("other", "z", "10.1.0.1:1"), n)
			tr.Time = at(n)
			all = append(all, tr)
		}
		return all
	}
	n++
	first := append(other(15), health.Transition{Time: at(n), Endpoint: x, From: health.Unknown, To: health.Healthy})
	in.append(first, time.Now)
	g := in.nextGroup(math.MaxInt)
	if len(g.transitions) != 16 {
		t.Fatal(len(g.transitions))
	}
	// While the group fails:
	n++
	in.append([]health.Transition{{Time: at(n), Endpoint: x, From: health.Healthy, To: health.Unhealthy}}, time.Now)
	in.append(other(60), time.Now)
	if in.stats().Dropped == 0 || in.overflow[x.Hash()].To != health.Unhealthy {
		t.Fatal("not dropped")
	}
	in.shrink(g)
	recorded := uint64(0)
	for ; g != nil; g = in.nextGroup(math.MaxInt) {
		g.places = nil
		for i := range g.transitions {
			recorded++
			g.places = append(g.places, placeOf(uint64(day.UnixNano())+recorded, &g.transitions[i]))
		}
		change(t, s, func(tx *bolt.Tx) error { return g.writeCurrent(tx) })
		in.committed(g, 0)
	}
	if got := stateOf(t, s).Current[x.Hash()]; got.Status != health.Unhealthy {
		t.Errorf("stored health is %v, want UNHEALTHY, the latest that was appended", got.Status)
	}
}

// TestAGroupHasAnEntryWhole covers groups that are taken while entries are added: none has a part of an entry.
func TestAGroupHasAnEntryWhole(t *testing.T) {
	const entries = 20_000
	s := &Store{intake: newIntake(4 * entries), clusters: &clusterSet{}, now: time.Now}
	added := make(chan struct{})
	go func() {
		defer close(added)
		for n := range entries {
			s.Apply(&log.Entry{
				Transitions: flips(1), Plan: map[string][]health.Hash{"checker-1": {health.Hash(n)}}, Trials: map[string]*log.Trials{"web": {Blamed: []uint64{uint64(n)}}},
			})
		}
	}()
	for ended := false; !ended; {
		select {
		case <-added:
			ended = true
		default:
		}
		g := s.intake.nextGroup(math.MaxInt)
		if g == nil {
			runtime.Gosched()
			continue
		}
		if (len(g.transitions) > 0) != (len(g.plan) > 0) || (len(g.plan) > 0) != (len(g.rows[string(trials)]) > 0) {
			t.Fatalf("a group has %d transitions, %d rows of the plan and %d of trials", len(g.transitions), len(g.plan), len(g.rows[string(trials)]))
		}
		s.intake.committed(g, 0)
	}
}
