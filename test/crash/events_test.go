package crash

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"

	storev1 "hdsd/gen/hdsd/store/v1"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/store"
)

// Variables that name the folders of children.
const (
	diaristVariable   = "HDSD_CRASH_DIARIST"
	annotatorVariable = "HDSD_CRASH_ANNOTATOR"
)

// keptEvents is how many events of a kind the history keeps.
const keptEvents = 10_000

// event is the n-th of all; its text is its number.
func event(n int) store.Event {
	return store.Event{Time: time.Unix(1_700_000_000, int64(n)*1000).UTC(), Kind: storev1.EventKind_CHECKER_LOST, Checker: "checker-1", Text: strconv.Itoa(n)}
}

// diarist records events among transitions without end, and prints the number of the last
// event that a query has shown to it. It lives with a disk that fails.
func diarist(dir string, first int) error {
	s, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		return err
	}
	random, out, place, n := rand.New(rand.NewPCG(uint64(first), 1)), json.NewEncoder(os.Stdout), uint64(0), max(first, 1)
	for {
		for range 1 + random.IntN(4) {
			some := make([]store.Event, 1+random.IntN(100))
			for i := range some {
				some[i] = event(n)
				n++
			}
			s.AppendEvents(some)
			s.Append([]health.Transition{transition(n)})
		}
		for random.IntN(2) == 0 && s.Durable(context.Background()) != nil {
			continue // each asks for one more attempt
		}
		found, _, err := s.Events(store.EventQuery{After: place, Limit: keptEvents})
		if err != nil || len(found) == 0 { // the disk has not taken what there is: it is asked again
			continue
		}
		last := found[len(found)-1]
		place = last.Place
		number, err := strconv.Atoi(last.Text)
		if err != nil {
			return err
		}
		if err := out.Encode(number); err != nil {
			return err
		}
	}
}

// inspectEvents opens what is left: the events are the latest of those that were recorded,
// without a hole, and have all that was shown. It gives the number of the last one.
func inspectEvents(t *testing.T, dir string, shown int) (last int) {
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
	found, next, err := s.Events(store.EventQuery{Limit: keptEvents + 1})
	if err != nil || next != 0 {
		t.Fatalf("%d events, and more after %d: %v", len(found), next, err)
	}
	first := 1
	for i, e := range found {
		if i == 0 {
			first, _ = strconv.Atoi(e.Text)
		}
		if want := event(first + i); e.Event != want {
			t.Fatalf("event %d is %+v, want %+v", i, e.Event, want)
		}
	}
	if last = first + len(found) - 1; last < shown || first > 1 && len(found) < keptEvents {
		t.Errorf("event %d was shown; there are those from %d to %d", shown, first, last)
	}
	return last
}

// TestKill9WhileRecordingEvents kills the writer at random moments: what a query has shown
// is there, and nothing is missing before it.
func TestKill9WhileRecordingEvents(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random, dir, last := rand.New(rand.NewPCG(seed, 0)), filepath.Join(t.TempDir(), "data"), 0
	for round := range 12 {
		shown := killCounting(t, diaristVariable, dir, last+1, 1+random.IntN(30), time.Duration(random.IntN(25_000))*time.Microsecond)
		last = inspectEvents(t, dir, shown)
		if t.Failed() {
			t.Fatalf("round %d, seed %d", round, seed)
		}
	}
	t.Logf("%d events", last)
}

// annotator puts notes into the history of a coordinator without end, and prints the number
// of each that was acknowledged.
func annotator(dir string, first int) error {
	return operate(dir, first, func(control hdsdv1.ControlClient, n int) error {
		_, err := control.Annotate(context.Background(), &hdsdv1.AnnotateRequest{Text: strconv.Itoa(n)}, grpc.WaitForReady(true))
		return err
	})
}

// TestKill9WhileAnnotating: a note that was acknowledged is there.
func TestKill9WhileAnnotating(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random, dir, last := rand.New(rand.NewPCG(seed, 0)), operatedSite(t), 0
	for round := range 6 {
		last = killCounting(t, annotatorVariable, dir, last+1, 1+random.IntN(8), time.Duration(random.IntN(25_000))*time.Microsecond)
		s, err := store.Open(t.Context(), filepath.Join(dir, "data"), store.Options{OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := s.Events(store.EventQuery{Kind: "NOTE", Limit: keptEvents})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := len(found); n != last && n != last+1 {
			t.Fatalf("round %d, seed %d: note %d was acknowledged, %d are there", round, seed, last, n)
		}
		last = len(found)
	}
}
