package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// gapped is a history with a gap: of four endpoints, from second 10 to 29.
type gapped struct {
	*Store
	flapping, moved, still, lost health.Endpoint
	gap                          Gap
	dir                          string
}

// newGapped has the disk fail until the queue is full.
func newGapped(t *testing.T, change ...func(*Options)) *gapped {
	t.Helper()
	failed := make(chan struct{}, 1000)
	g := &gapped{
		flapping: endpoint("web", "a", "10.0.0.1:80"), moved: endpoint("web", "a", "10.0.0.2:80"),
		still: endpoint("web", "a", "10.0.0.3:80"), lost: endpoint("web", "a", "10.0.0.4:80"), dir: t.TempDir(),
	}
	g.Store = open(t, g.dir, append(change, func(o *Options) {
		o.OnError = func(error) { failed <- struct{}{} }
		o.MaxPending, o.maxSize = 20, 256<<10
	})...)
	first := flip(g.lost, 3)
	first.From = health.Unknown
	g.Append([]health.Transition{flip(g.flapping, 0), flip(g.moved, 1), flip(g.still, 2), first})
	flush(t, g.Store)
	g.intake.savePlan(map[string][]health.Hash{"big": make([]health.Hash, 100_000)})
	<-failed // the plan does not fit, and is tried again and again
	missing := []health.Transition{flip(g.moved, 10)}
	for n := 11; n < 29; n++ {
		missing = append(missing, flip(g.flapping, n))
	}
	missing = append(missing, flip(g.lost, 29))
	g.gap = Gap{Start: missing[0].Time, End: missing[len(missing)-1].Time, Transitions: uint64(len(missing))}
	g.Append(missing)
	var kept []health.Transition
	for n := 40; n < 58; n++ { // with the next, a sixteenth fewer than fit
		kept = append(kept, flip(g.flapping, n))
	}
	g.Append(append(kept, flip(g.moved, 60)))
	edit(t, g.Store, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	flush(t, g.Store)
	if stats := g.Stats(); stats.Gaps != 1 || stats.Dropped != g.gap.Transitions {
		t.Errorf("%+v", stats)
	}
	return g
}

func sec(n float64) time.Time { return day.Add(time.Duration(n * float64(time.Second))) }

// TestTheHistoryMarksItsGap: what could not be recorded is a gap, for queries of any kind
// and after a restart.
func TestTheHistoryMarksItsGap(t *testing.T) {
	g := newGapped(t)
	for range 2 {
		for _, newest := range []bool{false, true} {
			q := Query{NewestFirst: newest, Limit: 3}
			var found []Gap
			for more := true; more; more = q.Token != "" {
				_, next, err := g.Transitions(q)
				if err != nil {
					t.Fatal(err)
				}
				some, err := g.Gaps(q, next)
				if err != nil {
					t.Fatal(err)
				}
				found, q.Token = append(found, some...), next
			}
			if diff := cmp.Diff([]Gap{g.gap}, found); diff != "" {
				t.Errorf("newest first %v: %s", newest, diff)
			}
		}
		for at, want := range map[float64]int{0: 1, 29: 1, 29.5: 0} {
			if some, err := g.Gaps(Query{Start: sec(at)}, ""); err != nil || len(some) != want {
				t.Errorf("from second %v: %v, %v", at, some, err)
			}
		}
		g.wantPast(t)
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		g.Store = open(t, g.dir)
	}
}

// wantPast sees that what the gap hides is unknown, and the rest as it was.
func (g *gapped) wantPast(t *testing.T) {
	t.Helper()
	for _, want := range []struct {
		endpoint health.Endpoint
		at       float64
		status   health.Status
		says     string
	}{
		{g.flapping, 9, health.Healthy, "2 of 3"},
		{g.flapping, 20, health.Unknown, "not known: the history has a gap"},
		{g.flapping, 35, health.Unhealthy, "the transition to it is missing: the history has a gap"},
		{g.flapping, 58, health.Unhealthy, "2 of 3"},
		{g.moved, 9, health.Unhealthy, "2 of 3"},
		{g.moved, 10, health.Unknown, "not known"},
		{g.moved, 30, health.Unhealthy, "the transition to it is missing"}, // what the next one is from
		{g.moved, 60, health.Healthy, "2 of 3"},
		{g.still, 20, health.Healthy, "2 of 3"}, // its last one
		{g.lost, 4, health.Unhealthy, "2 of 3"},
		{g.lost, 28, health.Unknown, "not known"},
		{g.lost, 29, health.Unhealthy, "2 of 3"}, // its last one, though it is missing
	} {
		if got := heldAt(t, g.Store, want.endpoint, sec(want.at)); got.Status != want.status || !strings.Contains(got.Reason, want.says) {
			t.Errorf("%s at %v: %+v, want %v, %q", want.endpoint.Address, want.at, got, want.status, want.says)
		}
	}
	times, err := g.TimeInStatus([]health.Endpoint{g.flapping, g.moved, g.still, g.lost}, sec(5), sec(65))
	if err != nil {
		t.Fatal(err)
	}
	in := func(unknown, healthy, unhealthy float64) (all [6]time.Duration) {
		all[health.Unknown], all[health.Healthy], all[health.Unhealthy] =
			sec(unknown).Sub(day), sec(healthy).Sub(day), sec(unhealthy).Sub(day)
		return all
	}
	for i, want := range [][6]time.Duration{in(19, 5+9, 11+8+8), in(19, 5, 36), in(0, 60, 0), in(19, 0, 41)} {
		got := times[i].Durations
		for status := range got {
			got[status] = got[status].Round(time.Millisecond)
		}
		if got != want {
			t.Errorf("endpoint %d: %v, want %v", i, got, want)
		}
	}
}

// TestWatchesDoNotCrossAGap: who goes on from before a gap has to begin anew, and who is
// behind it has not.
func TestWatchesDoNotCrossAGap(t *testing.T) {
	g := newGapped(t)
	if _, err := g.After(0, 1); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "gap") {
		t.Error(err)
	}
	_, place, err := g.Latest(nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Append([]health.Transition{flip(g.still, 71)})
	flush(t, g.Store)
	if found, err := g.After(place, 10); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestGapsNearEachOtherAreOne, and those beyond the limit are part of the last.
func TestGapsNearEachOtherAreOne(t *testing.T) {
	s := open(t, t.TempDir())
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
	put := func(seconds ...int) {
		t.Helper()
		if err := s.db.update(func(tx *bolt.Tx) (err error) {
			for _, n := range seconds {
				g := group{gap: &gap{from: nanos(at(n)), to: nanos(at(n + 1)), Gap: Gap{Start: at(n), End: at(n + 1), Transitions: 1}}}
				err = errors.Join(err, g.writeGap(tx), g.writeGap(tx)) // as a retry does
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 61, 123)
	want := []Gap{{at(0), at(62), 2}, {at(123), at(124), 1}}
	if found, err := s.Gaps(Query{}, ""); err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v", found, err)
	}
	var more []int
	for n := range maxGaps {
		more = append(more, 1000*n+1000)
	}
	put(more...)
	found, err := s.Gaps(Query{}, "")
	if err != nil || len(found) != maxGaps || found[maxGaps-1].Transitions != 3 {
		t.Errorf("%d gaps, the last is %v; %v", len(found), found[len(found)-1], err)
	}
}

func TestGapsArePruned(t *testing.T) {
	var now wall
	now.set(day)
	g := newGapped(t, now.keep)
	for _, step := range []struct {
		after float64
		want  int
	}{{29.5, 1}, {57.5, 0}} {
		now.set(sec(3600 + step.after))
		prune(t, g.Store)
		if found, err := g.Gaps(Query{}, ""); err != nil || len(found) != step.want {
			t.Errorf("after %v: %v, %v", step.after, found, err)
		}
	}
}

// TestAGapHasWhatAnEarlierClockDated: while transitions are lost, the clock is set back.
// What happened then is not known, either.
func TestAGapHasWhatAnEarlierClockDated(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		var now wall
		now.set(day)
		s := open(t, t.TempDir(), now.keep)
		e := endpoint("web", "a", "10.0.0.1:80")
		s.Append([]health.Transition{flip(e, 0)})
		flush(t, s)
		for _, at := range []int{40, 30, 31, 10, 20} {
			now.set(sec(float64(at)))
			lose(s, flip(e, at))
			if flushed {
				flush(t, s)
			}
		}
		now.set(sec(50))
		s.Append([]health.Transition{flip(e, 50)})
		flush(t, s)
		found, err := s.Gaps(Query{}, "")
		if want := (Gap{Start: sec(10), End: sec(40), Transitions: 5}); err != nil || !slices.Equal(found, []Gap{want}) {
			t.Errorf("flushed after each one: %v: %v, %v, want %v", flushed, found, err, want)
		}
		for at, want := range map[float64]health.Status{5: health.Healthy, 15: health.Unknown, 35: health.Unknown, 51: health.Healthy} {
			held, err := s.AsOf([]health.Endpoint{e}, sec(at))
			if err != nil || held[0].Status != want {
				t.Errorf("flushed after each one: %v: at second %v: %+v, %v, want %v", flushed, at, held, err, want)
			}
		}
	}
}

func TestAGapInWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for missing, want := range map[uint64]string{
		0: "what was there is lost, because the database was damaged",
		1: "1 transition was not recorded, because the disk did not take everything",
		2: "2 transitions were not recorded, because the disk did not take everything",
	} {
		g := Gap{Start: at, End: at.Add(time.Second), Transitions: missing}
		if got := g.String(); got != "the history has a gap from 2026-03-01T00:00:00Z to 2026-03-01T00:00:01Z: "+want {
			t.Errorf("%d missing: %s", missing, got)
		}
	}
}
