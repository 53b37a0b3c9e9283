package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/log"
	"hdsd/log/sample"
	"hdsd/store"
)

// followerVariable names the folder of a child that follows the log of a fleet.
const followerVariable = "HDSD_CRASH_FOLLOWER"

const followed = "fleet-1"

// entryAt is the n-th entry of the log, from 1, with its events.
func entryAt(n uint64) (*log.Entry, []store.Event) {
	e := sample.Entries(rand.New(rand.NewPCG(n, 0)), 1)[0]
	var events []store.Event
	for i := range e.Transitions {
		t := &e.Transitions[i]
		t.Moved = nil // queries show one transition of a move
		t.Time, t.Reason = time.Unix(1_700_000_000, int64(n)*1000+int64(i)).UTC(), fmt.Sprint(n, " ", i)
		events = append(events, store.Event{Time: t.Time, Kind: storev1.EventKind_NOTE, Text: t.Reason})
	}
	return e, events
}

// follower follows the log from its cursor without end, and prints the cursor on disk.
func follower(dir string, _ int) error {
	ctx := context.Background()
	s, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		return err
	}
	for s.Cursor().Fleet == "" {
		_ = s.SetFleet(ctx, followed, 0) // also on a disk that fails now and then
	}
	random, out := rand.New(rand.NewPCG(s.Cursor().Sequence, 0)), json.NewEncoder(os.Stdout)
	for n := s.Cursor().Sequence; ; {
		var entries []*log.Entry
		var events []store.Event
		for range 1 + random.IntN(20) {
			n++
			e, its := entryAt(n)
			entries, events = append(entries, e), append(events, its...)
		}
		s.Follow(entries, n, store.Records{Events: events})
		if random.IntN(8) == 0 {
			for s.Durable(ctx) != nil {
				continue
			}
		}
		if err := out.Encode(s.Cursor().Sequence); err != nil {
			return err
		}
	}
}

// inspectFollower opens what is left: it is the sum of the log up to the cursor, which is not before the one
// that the follower has shown. It returns the cursor.
func inspectFollower(t *testing.T, dir string, shown int) int {
	t.Helper()
	s, err := store.Open(t.Context(), dir, store.Options{OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	cursor := s.Cursor()
	if cursor.Sequence < uint64(shown) || cursor.Diverged || (cursor.Fleet != followed && shown > 0) {
		t.Fatalf("the cursor is %+v, and was %d", cursor, shown)
	}
	var want log.State
	var reasons []string
	for n := uint64(1); n <= cursor.Sequence; n++ {
		e, _ := entryAt(n)
		want.Apply(e)
		for i := range e.Transitions {
			reasons = append(reasons, e.Transitions[i].Reason)
		}
	}
	got, err := s.State()
	options := cmp.Options{
		cmpopts.EquateEmpty(), cmpopts.IgnoreFields(log.State{}, "Attendance"),
		cmpopts.SortSlices(func(a, b log.Override) bool { return a.Scope.Compare(b.Scope) < 0 }),
	}
	if diff := cmp.Diff(want, got, options); diff != "" || err != nil {
		t.Errorf("at %d: %s, %v", cursor.Sequence, diff, err)
	}
	if diff := cmp.Diff(reasons, recordedReasons(t, s)); diff != "" {
		t.Errorf("at %d: transitions: %s", cursor.Sequence, diff)
	}
	kept := reasons[max(0, len(reasons)-10_000):] // the limit of events
	if diff := cmp.Diff(kept, eventTexts(t, s), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("at %d: events: %s", cursor.Sequence, diff)
	}
	return int(cursor.Sequence)
}

// recordedReasons returns the reasons of all transitions.
func recordedReasons(t *testing.T, s *store.Store) (reasons []string) {
	t.Helper()
	for q := (store.Query{Limit: 10_000}); ; {
		page, token, err := s.Transitions(q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			reasons = append(reasons, page[i].Reason)
		}
		if q.Token = token; token == "" {
			return reasons
		}
	}
}

// eventTexts returns the texts of all events.
func eventTexts(t *testing.T, s *store.Store) (texts []string) {
	t.Helper()
	for q := (store.EventQuery{Limit: 1000}); ; {
		page, next, err := s.Events(q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			texts = append(texts, page[i].Text)
		}
		if q.After = next; next == 0 {
			return texts
		}
	}
}

// TestKill9OfAFollower kills a replica at random moments. Its database has exactly the entries up to its cursor.
func TestKill9OfAFollower(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	dir, cursor, rounds := filepath.Join(t.TempDir(), "data"), 0, 20
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	for round := range rounds {
		shown := max(cursor, killCounting(t, followerVariable, dir, 0, 1+random.IntN(30), time.Duration(random.IntN(25_000))*time.Microsecond))
		if cursor = inspectFollower(t, dir, shown); t.Failed() {
			t.Fatalf("round %d, seed %d", round, seed)
		}
	}
	if cursor == 0 {
		t.Error("nothing was ever written")
	}
	t.Logf("killed %d times, %d entries, seed %d", rounds, cursor, seed)
}
