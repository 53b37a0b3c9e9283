package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

const year = 365 * 24 * time.Hour

// machine runs hdsd, and its clock may be wrong.
type machine struct {
	t      *testing.T
	dir    string
	passed atomic.Int64 // since day
	wrong  atomic.Int64 // by how much its clock is ahead
	run    atomic.Int64 // of what passed while it ran

	store  *Store
	count  int
	clocks chan Clock
}

func newMachine(t *testing.T, wrong ...time.Duration) *machine {
	m := &machine{t: t, dir: t.TempDir(), clocks: make(chan Clock, 100)}
	for _, by := range wrong {
		m.wrong.Store(int64(by))
	}
	m.start()
	return m
}

// start starts hdsd, with a retention of 100 hours.
func (m *machine) start() {
	m.store = open(m.t, m.dir, func(o *Options) {
		o.Retention = 100 * time.Hour
		o.now = m.now
		o.uptime = func() time.Duration { return time.Duration(m.run.Load()) }
		o.OnClock = func(c Clock) { m.clocks <- c }
	})
}

// now returns what the machine's clock says.
func (m *machine) now() time.Time {
	return day.Add(time.Duration(m.passed.Load() + m.wrong.Load()))
}

func (m *machine) stop() {
	m.t.Helper()
	if err := m.store.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) restart(off time.Duration) {
	m.t.Helper()
	m.stop()
	m.passed.Add(int64(off))
	m.start()
}

// runs lets time pass while hdsd runs, and changes an endpoint each hour.
func (m *machine) runs(hours int) {
	m.t.Helper()
	for range hours {
		m.passed.Add(int64(time.Hour))
		m.run.Add(int64(time.Hour))
		m.flip()
	}
	prune(m.t, m.store)
}

// flip changes an endpoint. The reason is the number of the change.
func (m *machine) flip() {
	m.t.Helper()
	f := flip(endpoint("web", "a", "x"), m.count)
	f.Time, f.Reason = m.now(), fmt.Sprint(m.count)
	for i := range f.Observations {
		f.Observations[i].Time = f.Time
	}
	m.count++
	m.store.Append([]health.Transition{f})
	flush(m.t, m.store)
}

// wantKept fails unless the history begins with a change, and is whole and in order. If at
// is not nil, each change must have its time.
func (m *machine) wantKept(first int, at func(n int) time.Time) {
	m.t.Helper()
	var reasons []string
	all := queryAll(m.t, m.store, Query{})
	for _, t := range all {
		reasons = append(reasons, t.Reason)
	}
	var want []string
	for n := first; n < m.count; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if !slices.Equal(reasons, want) {
		m.t.Fatalf("kept are %v, want %d to %d", reasons, first, m.count-1)
	}
	for i, t := range all {
		if at == nil {
			break
		}
		if want := at(first + i); t.Time.Sub(want).Abs() > 5*time.Minute || !t.Observations[0].Time.Equal(t.Time) {
			m.t.Errorf("change %d is dated %v, want %v", first+i, t.Time, want)
		}
		if found := queryAll(m.t, m.store, Query{Start: t.Time, End: t.Time.Add(1)}); len(found) != 1 || found[0].Reason != t.Reason {
			m.t.Errorf("change %d is not found by its time: %v", first+i, found)
		}
	}
}

func (m *machine) wantDoubted(want bool) {
	m.t.Helper()
	if c := m.store.Clock(); c.Doubted != want || m.store.Stats().Doubted != want {
		m.t.Errorf("the clock is said to be %+v, want doubted %v", c, want)
	}
}

// hourly returns when each change happened on a machine that was never off.
func hourly(n int) time.Time { return day.Add(time.Duration(n+1) * time.Hour) }

// TestOneTransitionDatedAYearAhead: the clock was wrong for a moment.
func TestOneTransitionDatedAYearAhead(t *testing.T) {
	m := newMachine(t)
	m.runs(2)
	ahead := flip(endpoint("web", "a", "x"), m.count)
	ahead.Time, ahead.Reason = day.Add(2*time.Hour+year), fmt.Sprint(m.count)
	m.store.Append([]health.Transition{ahead})
	flush(t, m.store)
	m.count++
	m.runs(98)
	m.wantDoubted(false)
	m.wantKept(0, nil)
	m.runs(5)
	m.wantKept(5, nil)
}

// TestClockAYearAheadForAWhile: nothing is lost, and retention continues. When the clock is
// right again, so are the times.
func TestClockAYearAheadForAWhile(t *testing.T) {
	m := newMachine(t)
	m.runs(50)
	m.wrong.Store(int64(year))
	m.runs(30)
	m.wantDoubted(true)
	m.wantKept(0, nil)
	m.runs(30)
	m.wantKept(9, nil) // by the time that has passed
	m.wrong.Store(0)
	m.runs(10)
	m.wantDoubted(false)
	m.wantKept(19, hourly)
	m.restart(time.Minute)
	prune(t, m.store)
	m.wantKept(20, hourly)

	e := endpoint("web", "a", "x")
	if got := heldAt(t, m.store, e, hourly(79).Add(time.Minute)); got.Reason != "79" {
		t.Errorf("while the clock was wrong it was as after change %s, want 79", got.Reason)
	}
	if got := heldAt(t, m.store, e, hourly(119).Add(time.Minute)); got.Reason != "119" {
		t.Errorf("at last it was as after change %s, want 119", got.Reason)
	}
	spent, err := m.store.TimeInStatus([]health.Endpoint{e}, hourly(49), hourly(119))
	if got := spent[0]; err != nil || got.Transitions != 70 || (got.Durations[health.Healthy]-35*time.Hour).Abs() > time.Minute {
		t.Errorf("%+v, %v, want 70 transitions and half of the time HEALTHY", got, err)
	}
	m.runs(99)
	m.wantKept(119, nil)
	m.stop()
	if s := open(t, m.dir); s.Check() != nil {
		t.Error(s.Check())
	}
}

// TestStartWithTheClockAYearAhead: some restarts later, the clock is right again.
func TestStartWithTheClockAYearAhead(t *testing.T) {
	m := newMachine(t)
	m.runs(90)
	m.wrong.Store(int64(year))
	for range 3 {
		m.restart(time.Minute)
		m.runs(2)
		m.wantDoubted(true)
		m.wantKept(0, nil)
	}
	m.wrong.Store(0)
	m.runs(1)
	m.wantDoubted(false)
	m.wantKept(0, hourly)
	m.runs(10)
	m.wantKept(7, hourly)
}

// TestClockCorrectedWhileOff: the clock is a year ahead, and right at the next
// start.
func TestClockCorrectedWhileOff(t *testing.T) {
	m := newMachine(t)
	m.runs(50)
	m.wrong.Store(int64(year))
	m.runs(30)
	m.wrong.Store(0)
	m.restart(time.Hour)
	m.wantDoubted(false)
	m.wantKept(0, hourly)
}

// TestClockGoesBackADay: then it is right again, or stays there.
func TestClockGoesBackADay(t *testing.T) {
	for restarted, first := range map[bool]int{false: 30, true: 31} { // a minute later
		m := newMachine(t)
		m.runs(50)
		m.wrong.Store(int64(-24 * time.Hour))
		if restarted {
			m.restart(time.Minute)
		}
		m.runs(20)
		m.wantDoubted(true)
		m.wantKept(0, nil)
		m.wrong.Store(0)
		m.runs(1)
		m.wantDoubted(false)
		m.wantKept(0, hourly)
		m.wrong.Store(int64(-24 * time.Hour))
		m.runs(60)
		m.wantDoubted(true)
		m.wantKept(first, nil)
		m.runs(50)
		m.wantDoubted(false) // what was before is gone
		if n := len(queryAll(t, m.store, Query{})); n < 100 {
			t.Errorf("%d changes are kept, want those of 100 hours", n)
		}
		m.runs(110)
		m.wantKept(m.count-101, nil)
	}
}

// TestBeganWithTheClockAYearAhead: when the clock is corrected, queries find the present.
// When somebody confirms it, all dates are right.
func TestBeganWithTheClockAYearAhead(t *testing.T) {
	m := newMachine(t, year)
	m.runs(10)
	m.wrong.Store(0)
	m.runs(10)
	m.wantDoubted(true)
	e := endpoint("web", "a", "x")
	if got := heldAt(t, m.store, e, hourly(19)); got.Reason != "19" {
		t.Errorf("at present it is %+v", got)
	}
	before, err := m.store.ConfirmClock(t.Context(), "ann")
	if err != nil || !before.Doubted {
		t.Errorf("confirmed %+v, %v", before, err)
	}
	m.wantDoubted(false)
	m.wantKept(0, hourly)
	if began, err := m.store.Began(); err != nil || !began.Equal(day) {
		t.Errorf("began at %v, %v, want %v", began, err, day)
	}
	m.runs(90)
	m.wantKept(9, hourly)
}

// TestOffForLong: a start long after looks like a wrong clock. Nothing is deleted until hdsd
// has run for as long as the retention, or somebody confirms the clock.
func TestOffForLong(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		m := newMachine(t)
		m.runs(50)
		m.restart(2400 * time.Hour)
		m.runs(50)
		m.wantDoubted(true)
		m.wantKept(0, nil)
		if confirmed {
			if _, err := m.store.ConfirmClock(t.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
		} else {
			m.runs(51)
		}
		prune(t, m.store)
		m.wantDoubted(false)
		m.wantKept(50, func(n int) time.Time { return hourly(n).Add(2400 * time.Hour) })
		m.runs(100)
		m.wantKept(m.count-101, nil)
	}
}

// TestOffForLongTwice: if somebody confirms the clock, which always was right, transitions
// between keep their dates. Whatever their dates become, queries find them by those.
func TestOffForLongTwice(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		m := newMachine(t)
		m.runs(50)
		m.restart(2400 * time.Hour)
		m.runs(10)
		m.restart(2400 * time.Hour)
		m.runs(10)
		if !confirmed {
			m.runs(81)
			m.wantDoubted(false)
			for _, found := range queryAll(t, m.store, Query{}) {
				if at := queryAll(t, m.store, Query{Start: found.Time, End: found.Time.Add(1)}); len(at) != 1 || at[0].Reason != found.Reason {
					t.Errorf("change %s of %v is not found by its time: %v", found.Reason, found.Time, at)
				}
			}
			continue
		}
		if _, err := m.store.ConfirmClock(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		m.wantKept(0, func(n int) time.Time {
			switch {
			case n < 50:
				return hourly(n)
			case n < 60:
				return hourly(n).Add(2400 * time.Hour)
			default:
				return hourly(n).Add(4800 * time.Hour)
			}
		})
	}
}

// TestFoundByItsTime: queries find what a wrong clock dated long ago, after a restart and a
// confirmation.
func TestFoundByItsTime(t *testing.T) {
	m := newMachine(t)
	m.runs(1)
	m.wrong.Store(int64(-year))
	m.runs(1)
	m.restart(30 * time.Hour)
	m.wrong.Store(0)
	if _, err := m.store.ConfirmClock(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, newest := range []bool{false, true} {
		for _, found := range queryAll(t, m.store, Query{}) {
			q := Query{Start: found.Time, End: found.Time.Add(1), NewestFirst: newest}
			if at := queryAll(t, m.store, q); len(at) != 1 || at[0].Reason != found.Reason {
				t.Errorf("change %s of %v is not found by its time: %v", found.Reason, found.Time, at)
			}
		}
	}
}

// TestSuspended: a clock that jumps by less than a leap is believed.
func TestSuspended(t *testing.T) {
	m := newMachine(t)
	m.runs(50)
	m.passed.Add(int64(9 * time.Hour))
	m.runs(50)
	m.wantDoubted(false)
	m.wantKept(8, nil)
}

// TestOnClock: it is called when the clock becomes doubted, at each start while it is, and when
// it is believed again.
func TestOnClock(t *testing.T) {
	m := newMachine(t)
	m.runs(1)
	m.wrong.Store(int64(year))
	m.runs(2)
	m.restart(time.Minute)
	m.runs(2)
	m.wrong.Store(0)
	m.runs(1)
	m.wrong.Store(int64(-year))
	m.runs(1)
	if _, err := m.store.ConfirmClock(t.Context(), "ann"); err != nil {
		t.Error(err)
	}
	m.stop()
	var clocks []string
	for len(m.clocks) > 0 {
		c := <-m.clocks
		clocks = append(clocks, fmt.Sprintf("%v %v %s", c.Doubted, c.Wall.Sub(c.Steady).Round(time.Hour), c.Reason))
	}
	want := []string{
		"true 8760h0m0s ", "true 8760h0m0s ", "false 0s it is near steady time again", "true -8760h0m0s ", "false 0s ann says that it is right",
	}
	if !slices.Equal(clocks, want) {
		t.Errorf("clocks %q, want %q", clocks, want)
	}
}

// TestFileWithoutTimeline: its age says when it was last written.
func TestFileWithoutTimeline(t *testing.T) {
	for name, c := range map[string]struct {
		age, wrong time.Duration
		doubted    bool
		kept       int
	}{
		"a quiet one":               {age: time.Minute, kept: 39},
		"the clock is a year ahead": {age: time.Minute, wrong: year, doubted: true, kept: 39},
		"nobody wrote it for long":  {age: 30 * 24 * time.Hour, doubted: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.runs(90)
			edit(t, m.store, func(tx *bolt.Tx) error { return tx.Bucket(header).Delete(timeKey) })
			path := filepath.Join(m.dir, fileName)
			kept, err := os.ReadFile(path)
			m.stop()
			now := day.Add(140*time.Hour + c.wrong)
			if err := errors.Join(err, os.WriteFile(path, kept, 0o600), os.Chtimes(path, now, now.Add(-c.wrong-c.age))); err != nil {
				t.Fatal(err)
			}
			m.passed.Store(int64(140 * time.Hour))
			m.wrong.Store(int64(c.wrong))
			m.start()
			prune(t, m.store)
			m.wantDoubted(c.doubted)
			m.wantKept(c.kept, nil)
		})
	}
}

// TestFutureDatesOfAnOlderHdsd: they do not keep the transitions behind them.
func TestFutureDatesOfAnOlderHdsd(t *testing.T) {
	m := newMachine(t)
	m.runs(2)
	edit(t, m.store, func(tx *bolt.Tx) error {
		e := endpoint("web", "a", "y")
		f := flip(e, 1)
		f.Time = day.Add(2*time.Hour + year)
		g := group{transitions: []health.Transition{f}, places: []place{placeOf(nanos(f.Time), &f)}}
		return errors.Join(g.writeHistory(tx), g.writeCurrent(tx))
	})
	m.restart(0)
	m.runs(102)
	if all := queryAll(t, m.store, Query{}); len(all) != 101 || all[0].Reason != "3" {
		t.Errorf("%d are kept, the first is %q", len(all), all[0].Reason)
	}
}

// TestPlaceThatIsTooOld: whatever the clock did, After reports a gap.
func TestPlaceThatIsTooOld(t *testing.T) {
	m := newMachine(t)
	m.runs(10)
	m.wrong.Store(int64(year))
	m.runs(10)
	m.wrong.Store(0)
	m.runs(1)
	_, place, err := m.store.Latest(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.runs(105)
	if _, err := m.store.After(place, 1); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "begins at") {
		t.Errorf("behind what is deleted: %v", err)
	}
	_, place, _ = m.store.Latest(nil)
	m.runs(2)
	if got, err := m.store.After(place, 10); err != nil || len(got) != 2 {
		t.Errorf("%d behind what is kept, %v", len(got), err)
	}
}

// TestFoundByItsTimeAfterAKill: queries find what a start corrects, too.
func TestFoundByItsTimeAfterAKill(t *testing.T) {
	m := newMachine(t)
	m.runs(2)
	m.wrong.Store(int64(year))
	m.runs(3)
	path := filepath.Join(m.dir, fileName)
	kept, err := os.ReadFile(path)
	m.stop()
	if err := errors.Join(err, os.WriteFile(path, kept, 0o600)); err != nil {
		t.Fatal(err)
	}
	m.wrong.Store(0)
	m.start()
	m.wantDoubted(false)
	m.wantKept(0, hourly)
}
