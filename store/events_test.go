package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// eventOf gives an event, told apart by its text.
func eventOf(text string, kind EventKind, at time.Time) Event {
	return Event{
		Time: at, Kind: kind, Cluster: "web", Address: "10.0.0.1:80", Checker: "checker-1",
		Locality: health.Locality{Region: "eu", Zone: "a"}, Author: "ann", Identity: "spiffe://prod/ann", Text: text, Whole: true,
	}
}

// eventPages reads the events page by page, and returns their texts.
func eventPages(t *testing.T, s *Store, q EventQuery) (texts []string) {
	t.Helper()
	for {
		found, next, err := s.Events(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			texts = append(texts, e.Text)
		}
		if next == 0 {
			return texts
		}
		q.After = next
	}
}

func TestEventsAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if found, next, err := s.Events(EventQuery{Limit: 1}); len(found) > 0 || next > 0 || err != nil {
		t.Errorf("without events: %v, %d, %v", found, next, err)
	}
	hour := func(n int) time.Time { return day.Add(time.Duration(n) * time.Hour) }
	const lost, note = storev1.EventKind_CHECKER_LOST, storev1.EventKind_NOTE
	for i := range 5 {
		s.AppendEvents([]Event{eventOf(fmt.Sprint(i), lost, hour(i))})
	}
	s.AppendEvents([]Event{eventOf("late", note, hour(2)), {Time: hour(4), Kind: note, Text: "bare", Cluster: "pay", Checker: "checker-2"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	s.AppendEvents([]Event{eventOf("again", storev1.EventKind_CHECKER_JOINED, hour(2))})
	flush(t, s)
	all := []string{"0", "1", "2", "late", "again", "3", "4", "bare"}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for name, c := range map[string]struct {
		q    EventQuery
		want []string
	}{
		"all, at once":      {EventQuery{Limit: 100}, all},
		"exactly a page":    {EventQuery{Limit: 8}, all},
		"pages":             {EventQuery{Limit: 2}, all},
		"newest first":      {EventQuery{Limit: 3, NewestFirst: true}, backwards},
		"start":             {EventQuery{Limit: 2, Start: hour(3)}, []string{"3", "4", "bare"}},
		"end":               {EventQuery{Limit: 2, End: hour(2)}, []string{"0", "1"}},
		"both, backwards":   {EventQuery{Limit: 1, Start: hour(1), End: hour(3), NewestFirst: true}, []string{"again", "late", "2", "1"}},
		"cluster":           {EventQuery{Limit: 1, Cluster: "pay"}, []string{"bare"}},
		"address":           {EventQuery{Limit: 5, Address: "10.0.0.1:80", Start: hour(4)}, []string{"4"}},
		"checker":           {EventQuery{Limit: 1, Checker: "checker-2"}, []string{"bare"}},
		"locality":          {EventQuery{Limit: 1, Locality: health.Locality{Zone: "b"}}, []string{"bare"}},
		"its own locality":  {EventQuery{Limit: 5, Locality: health.Locality{Zone: "a"}}, all},
		"kind":              {EventQuery{Limit: 1, Kind: "NOTE"}, []string{"late", "bare"}},
		"beginning of kind": {EventQuery{Limit: 3, Kind: "CHECKER"}, []string{"0", "1", "2", "again", "3", "4"}},
		"who may see less":  {EventQuery{Limit: 3, Visible: func(e *Event) bool { return e.Cluster == "pay" }}, []string{"bare"}},
	} {
		if diff := cmp.Diff(c.want, eventPages(t, s, c.q)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	found, _, err := s.Events(EventQuery{Limit: 1})
	if err != nil || !cmp.Equal(found[0].Event, eventOf("0", lost, day)) {
		t.Errorf("%v: %s", err, cmp.Diff(eventOf("0", lost, day), found[0].Event))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestEventsAreBoundedByKind: of a kind that has too many, the oldest go, over restarts too.
// Other kinds stay.
func TestEventsAreBoundedByKind(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s := open(t, dir)
		s.diary.limit = 3
		s.AppendEvents([]Event{eventOf(fmt.Sprint("note ", round), storev1.EventKind_NOTE, day)})
		for i := range 4 {
			s.AppendEvents([]Event{eventOf(fmt.Sprint(round, i), storev1.EventKind_CHECKER_LOST, day)})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	if got := eventPages(t, s, EventQuery{Limit: 2, Kind: "CHECKER"}); len(got) != 3 {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]string{"note 0", "note 1", "note 2"}, eventPages(t, s, EventQuery{Limit: 2, Kind: "NOTE"})); diff != "" {
		t.Error(diff)
	}
}

// TestEventsAgeAsTransitionsDo: by steady time, so that an event that says it is old stays as
// long as any other.
func TestEventsAgeAsTransitionsDo(t *testing.T) {
	var clock wall
	clock.set(day)
	s := open(t, t.TempDir(), clock.keep) // an hour
	s.AppendEvents([]Event{eventOf("old", storev1.EventKind_CHECKER_LOST, day), eventOf("said to be old", storev1.EventKind_NOTE, day.Add(-1000*time.Hour))})
	flush(t, s)
	clock.set(day.Add(50 * time.Minute))
	s.AppendEvents([]Event{eventOf("young", storev1.EventKind_CHECKER_LOST, day.Add(50*time.Minute))})
	flush(t, s)
	prune(t, s)
	if diff := cmp.Diff([]string{"said to be old", "old", "young"}, eventPages(t, s, EventQuery{Limit: 9})); diff != "" {
		t.Error(diff)
	}
	clock.set(day.Add(70 * time.Minute))
	prune(t, s)
	if diff := cmp.Diff([]string{"young"}, eventPages(t, s, EventQuery{Limit: 9})); diff != "" {
		t.Error(diff)
	}
	if n := len(s.diary.places[storev1.EventKind_NOTE]); n != 0 {
		t.Errorf("%d places of events that are gone", n)
	}
}

// TestEventsAreBoundedWhileTheDiskFails: the oldest that wait go, and an event says so.
func TestEventsAreBoundedWhileTheDiskFails(t *testing.T) {
	failed := make(chan struct{}, 1000)
	s := open(t, t.TempDir(), func(o *Options) {
		o.maxSize = 256 << 10
		o.OnError = func(error) { failed <- struct{}{} }
	})
	s.intake.savePlan(map[string][]health.Hash{"big": make([]health.Hash, 100_000)})
	<-failed // the plan does not fit, and is tried again and again
	const count = 3 * maxWaiting
	for n := range count {
		s.AppendEvents([]Event{eventOf(fmt.Sprint(n), storev1.EventKind_CHECKER_LOST, day.Add(time.Duration(n)*time.Second))})
	}
	if waiting := len(s.diary.waiting); waiting > maxWaiting {
		t.Errorf("%d events wait", waiting)
	}
	edit(t, s, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	flush(t, s)
	got := eventPages(t, s, EventQuery{Limit: 1000})
	kept := len(got) - 1
	if kept < maxWaiting*7/8 || kept > maxWaiting || !strings.HasPrefix(got[0], fmt.Sprintf("%d events until ", count-kept)) || got[kept] != fmt.Sprint(count-1) {
		t.Errorf("%d of %d are kept: %q … %q", kept, count, got[0], got[kept])
	}
}

// TestEventsSurviveASalvage, but for a damaged row.
func TestEventsSurviveASalvage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Append([]health.Transition{flip(endpoint("web", "a", "10.0.0.1:80"), 1)})
	s.AppendEvents([]Event{eventOf("good", storev1.EventKind_NOTE, day), eventOf("bad", storev1.EventKind_NOTE, day)})
	flush(t, s)
	edit(t, s, func(tx *bolt.Tx) error {
		k, v := tx.Bucket(events).Cursor().Last()
		v = slices.Clone(v)
		v[3]++
		return tx.Bucket(events).Put(slices.Clone(k), v)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, done := salvaged(t, content(t, dir))
	if diff := cmp.Diff([]string{"good"}, eventPages(t, s, EventQuery{Limit: 9})); diff != "" || !slices.Contains(done.Lost, "1 row of events") {
		t.Errorf("%s; %+v", diff, done)
	}
}

// BenchmarkEvents is what an event costs: time of the writer, and room in the file.
func BenchmarkEvents(b *testing.B) {
	s := open(b, b.TempDir(), func(o *Options) { o.mapSize = 0 })
	s.diary.limit = 1 << 30
	flush(b, s)
	before, n := s.db.used.Load(), 0
	for b.Loop() {
		s.AppendEvents([]Event{{
			Time: day.Add(time.Duration(n) * time.Second), Kind: storev1.EventKind_CHECKER_LOST, Checker: fmt.Sprint("checker-", n%200),
			Text: "disconnected; its seats are kept for the grace period",
		}})
		if n++; n%1000 == 0 {
			flush(b, s)
		}
	}
	flush(b, s)
	b.ReportMetric(float64(s.db.used.Load()-before)/float64(n), "bytes/event")
}
