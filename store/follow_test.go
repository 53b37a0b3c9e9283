package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/log/sample"
)

const fleetName = "fleet-1"

func setFleet(t testing.TB, s *Store, fleet string, cursor uint64) {
	t.Helper()
	if err := s.SetFleet(t.Context(), fleet, cursor); err != nil {
		t.Fatal(err)
	}
}

func wantCursor(t testing.TB, s *Store, want Cursor) {
	t.Helper()
	if got := s.Cursor(); got != want {
		t.Errorf("the cursor is %+v, want %+v", got, want)
	}
}

// totals has what a database has after each entry of a log.
type totals struct {
	states      []log.State // index: the cursor
	transitions []int
	events      []int
	audit       []int
}

// totalsOf sums up a log. Each entry has an event for each of its transitions.
func totalsOf(entries []*log.Entry) totals {
	var state log.State
	all := totals{states: []log.State{{}}, transitions: []int{0}, events: []int{0}, audit: []int{0}}
	for i, e := range entries {
		state.Apply(e)
		all.states = append(all.states, state.Clone())
		all.transitions = append(all.transitions, all.transitions[i]+len(e.Transitions))
		all.events = append(all.events, all.events[i]+len(eventsOf(e)))
		all.audit = append(all.audit, all.audit[i]+len(auditOf(e)))
	}
	return all
}

func eventsOf(e *log.Entry) (all []Event) {
	for i := range e.Transitions {
		all = append(all, Event{Time: e.Transitions[i].Time, Kind: storev1.EventKind_NOTE, Text: e.Transitions[i].Reason})
	}
	return all
}

func auditOf(e *log.Entry) (all []AuditEntry) {
	for i := range e.Overrides {
		all = append(all, AuditEntry{Time: e.Overrides[i].Override.Since, Action: "SetOverride", Reason: e.Overrides[i].Override.Reason})
	}
	return all
}

// equalStates compares states as a restart does.
var equalStates = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b log.Override) bool { return a.Scope.Compare(b.Scope) < 0 }),
	cmpopts.IgnoreFields(log.State{}, "Attendance"),
}

// check reads the database in one transaction, and compares it with the sum of the log up to its cursor. It
// returns the cursor.
func (all *totals) check(s *Store) (cursor uint64, err error) {
	err = s.db.view(func(tx *bolt.Tx) error {
		c, _ := readCursor(tx)
		cursor = c.Sequence
		rows := stateReader{tx: tx, damage: s.damage, time: s.time}
		got := log.State{
			Current: rows.current(), Voted: rows.voted(), Plan: rows.plan(), Clusters: rows.clusters(), Freeze: rows.freeze(),
			Overrides: rows.overrides(), Trust: rows.trust(), Trials: rows.trials(), Established: rows.established(),
			Penalties: rows.penalties(), GivenBack: rows.namesIn(givenBack), TakenOver: rows.namesIn(takenOver),
		}
		if diff := cmp.Diff(all.states[cursor], got, equalStates); diff != "" {
			return fmt.Errorf("at entry %d: %s", cursor, diff)
		}
		missing := uint64(0)
		for _, g := range s.gaps(tx) {
			missing += g.Transitions
		}
		if count := tx.Bucket(transitions).Stats().KeyN + int(missing); count != all.transitions[cursor] {
			return fmt.Errorf("at entry %d: %d transitions, %d of them in gaps, want %d", cursor, count, missing, all.transitions[cursor])
		}
		for _, journal := range []struct {
			bucket []byte
			wants  []int
		}{{events, all.events}, {audit, all.audit}} {
			count := 0
			if rows := tx.Bucket(journal.bucket); rows != nil {
				count = rows.Stats().KeyN
			}
			if count != journal.wants[cursor] {
				return fmt.Errorf("at entry %d: %d %s, want %d", cursor, count, journal.bucket, journal.wants[cursor])
			}
		}
		return nil
	})
	return cursor, err
}

// TestFollow follows a log over restarts, while another goroutine reads the database again and again: it
// always is the sum of the log up to its cursor.
func TestFollow(t *testing.T) {
	for seed := range uint64(5) {
		follow(t, seed, false)
	}
}

// TestFollowOnAFailingDisk: so it is with a disk that fails until the queue is full.
func TestFollowOnAFailingDisk(t *testing.T) {
	for seed := range uint64(5) {
		follow(t, seed, true)
	}
}

func follow(t *testing.T, seed uint64, fails bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	entries := sample.Entries(random, 300)
	for i, size := 40, 200_000; i < len(entries) && fails; i, size = i+100, 5*size { // each needs a larger file
		entries[i].Trust = &log.TrustChange{Checker: "large", After: &log.Trust{Level: log.Trusted, Reason: strings.Repeat("x", size)}}
	}
	all := totalsOf(entries)
	var clock wall
	clock.set(sample.Start)
	dir := t.TempDir()
	var failures atomic.Int64
	options := func(o *Options) {
		clock.keep(o)
		o.MaxPending, o.Retention, o.OnError = 40, 0, func(err error) {
			if !errors.Is(err, ErrDropped) {
				failures.Add(1)
			}
		}
	}
	s := open(t, dir, options)
	setFleet(t, s, fleetName, 0)
	dropped := uint64(0)
	for next := 0; next < len(entries); {
		stop, done := make(chan struct{}), sync.WaitGroup{}
		done.Go(func() {
			for last := uint64(0); ; {
				cursor, err := all.check(s)
				if err != nil || cursor < last {
					t.Errorf("seed %d, behind %d: %v", seed, last, err)
					return
				}
				last = cursor
				select {
				case <-stop:
					return
				case <-s.Committed():
				}
			}
		})
		for end := min(next+75, len(entries)); next < end; {
			count := min(1+random.IntN(3), end-next)
			some := entries[next : next+count]
			var made Records
			for _, e := range some {
				made.Events = append(made.Events, eventsOf(e)...)
				made.Audit = append(made.Audit, auditOf(e)...)
			}
			large := fails && next%100 <= 40 && next%100+count > 40
			if large {
				setRoom(s, 1)
			}
			next += count
			s.Follow(some, uint64(next), made)
			s.Follow(some, uint64(next), made) // twice changes nothing
			if large && s.Durable(t.Context()) == nil {
				t.Fatalf("seed %d: entry %d is durable on a full disk", seed, next)
			}
			switch random.IntN(20) {
			case 0:
				setRoom(s, 0)
				flush(t, s)
				wantCursor(t, s, Cursor{Fleet: fleetName, Sequence: uint64(next)})
			case 1:
				_ = s.Durable(t.Context()) // an attempt more
			}
		}
		setRoom(s, 0)
		flush(t, s)
		close(stop)
		done.Wait()
		dropped += s.Stats().Dropped
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, options)
		wantCursor(t, s, Cursor{Fleet: fleetName, Sequence: uint64(next)})
		if cursor, err := all.check(s); err != nil || cursor != uint64(next) {
			t.Fatalf("seed %d: %d, %v", seed, cursor, err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	t.Logf("seed %d: %d failures, %d of %d transitions dropped", seed, failures.Load(), dropped, all.transitions[len(entries)])
}

// setRoom bounds the size of the file; 0 is no bound.
func setRoom(s *Store, bytes int) {
	s.db.committing.Lock()
	defer s.db.committing.Unlock()
	s.db.bolt.MaxSize = bytes
}

// TestAPortionIsNotDivided: a group has a call of Follow as a whole, also after the disk did not take it.
func TestAPortionIsNotDivided(t *testing.T) {
	in := newIntake(64) // a group takes 16
	in.fleet.move(advance{fleet: new(fleetName)}, &in.submitted)
	in.committed(in.nextGroup(1<<20), 0)
	follow := func(cursor uint64, count int) {
		in.follow(&portion{advance: advance{sequence: cursor}}, [][]health.Transition{flips(count)})
	}
	for i, count := range []int{20, 5, 6, 7, 12} { // 5 and 6 are one portion
		follow(uint64(i+1), count)
	}
	want := func(g *group, cursor uint64, size int) {
		t.Helper()
		if got := g.cursor(); len(g.transitions) != size || got != (Cursor{Fleet: fleetName, Sequence: cursor}) {
			t.Errorf("a group of %d at %+v, want %d at %d", len(g.transitions), got, size, cursor)
		}
	}
	g := in.nextGroup(1 << 20)
	want(g, 1, 20)
	in.shrink(g) // to 8, in vain
	want(g, 1, 20)
	in.committed(g, longGroup)
	in.pending.largest = 18
	g = in.nextGroup(1 << 20)
	want(g, 4, 18)
	in.shrink(g) // to 9, less than the first portion
	want(g, 3, 11)
	if in.committed(g, longGroup); in.saved.reached(in.submitted) || in.fleet.cursor.Sequence != 3 {
		t.Errorf("%+v of %+v, at %+v", in.saved, in.submitted, in.fleet.cursor)
	}
	in.pending.largest = 100
	g = in.nextGroup(1 << 20)
	want(g, 5, 19)
	if in.committed(g, 0); !in.saved.reached(in.submitted) {
		t.Errorf("%+v of %+v", in.saved, in.submitted)
	}
}

// TestEventsOfPortionsAreBounded: while the disk fails, the oldest events make room, and one says so.
func TestEventsOfPortionsAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	setFleet(t, s, fleetName, 0)
	s.db.committing.Lock()               // the disk does not answer
	for n := range 3 * maxWaiting / 16 { // a third at most is in the group on its way
		events := make([]Event, 16)
		for i := range events {
			events[i] = Event{Time: sec(float64(16*n + i)), Kind: storev1.EventKind_NOTE, Text: "note"}
		}
		s.Follow([]*log.Entry{{Clusters: []string{fmt.Sprint(n)}}}, uint64(n+1), Records{Events: events})
	}
	s.intake.mu.Lock()
	waiting := 0
	for _, p := range s.intake.fleet.portions {
		waiting += len(p.events.waiting)
	}
	s.intake.mu.Unlock()
	s.db.committing.Unlock()
	if waiting > maxWaiting || waiting < maxWaiting/2 {
		t.Errorf("%d events wait", waiting)
	}
	flush(t, s)
	found, _, err := s.Events(EventQuery{Limit: 1, Kind: "EVENTS_LOST"})
	if err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}
