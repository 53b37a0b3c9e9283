package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLook reads the wall clock, in minutes.
func TestLook(t *testing.T) {
	const minute, retention, last = uint64(time.Minute), 100 * time.Hour, 77
	const leap, year = 10 * 60, 365 * 24 * 60
	at := func(steady, wall, since uint64) Timeline {
		l := Timeline{steady: steady * minute, wall: wall * minute}
		if since > 0 {
			l.doubt = doubt{began: since * minute, after: last}
		}
		return l
	}
	for _, c := range []struct {
		name         string
		before       Timeline
		wall, passed uint64
		want         Timeline
	}{
		{"nothing happens", at(1000, 1000, 0), 1001, 1, at(1001, 1001, 0)},
		{"a little ahead", at(1000, 1000, 0), 1001 + leap, 1, at(1001+leap, 1001+leap, 0)},
		{"too far ahead", at(1000, 1000, 0), 1002 + leap, 1, at(1001, 1002+leap, 1001)},
		{"a little back", at(1000, 1000, 0), 1001 - leap, 1, at(1001-leap, 1001-leap, 0)},
		{"too far back", at(1000, 1000, 0), 1000 - leap, 1, at(1001, 1000-leap, 1001)},
		{"a suspended machine", at(1000, 1000, 0), 1000 + leap, 0, at(1000+leap, 1000+leap, 0)},
		{"to the beginning of time", at(1000, 1000, 0), 0, 1, at(1001, 0, 1001)},
		{"still wrong", at(1000, year, 900), year + 1, 1, at(1001, year+1, 900)},
		{"wrong in another way", at(1000, year, 900), 2 * year, 1, at(1001, 2*year, 900)},
		{"right again", at(1000, year, 900), 1002, 1, at(1002, 1002, 0)},
		{"nothing from before is left", at(900+6000-1, year, 900), year + 1, 1, at(year+1, year+1, 0)},
	} {
		got := c.before.Look(c.wall*minute, time.Duration(c.passed*minute), retention, last)
		if c.want.Doubted() && !c.before.Doubted() {
			c.want.doubt.wall = c.wall * minute
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Timeline{}, doubt{}, stray{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestElapsed: between two processes passes what the clock says, unless that is too
// much.
func TestElapsed(t *testing.T) {
	const start = uint64(1e18)
	l := Timeline{wall: start}
	for after, want := range map[time.Duration]time.Duration{
		0: 0, time.Minute: time.Minute, 10 * time.Hour: 10 * time.Hour, 11 * time.Hour: 0, -time.Minute: 0,
	} {
		if got := l.Elapsed(start+uint64(after), 100*time.Hour); got != want {
			t.Errorf("%v later: %v passed, want %v", after, got, want)
		}
	}
}

// TestLeap: a clock that is wrong costs a tenth of what is kept, or a week.
func TestLeap(t *testing.T) {
	for retention, want := range map[time.Duration]time.Duration{
		0: maxLeap, time.Second: minLeap, time.Hour: 6 * time.Minute, 240 * time.Hour: 24 * time.Hour, 3650 * 24 * time.Hour: maxLeap,
	} {
		if got := Leap(retention); got != want {
			t.Errorf("kept for %v: %v, want %v", retention, got, want)
		}
	}
}

// TestConfirm: if the clock went back, what is from before was dated ahead.
func TestConfirm(t *testing.T) {
	before := []stray{{10, 19, 5}, {30, 39, -5}}
	for _, c := range []struct {
		name         string
		wall, steady uint64
		want         []stray
	}{
		{"ahead", 1100, 1000, before},
		{"back", 1000, 1100, []stray{{0, 9, 100}, {10, 19, 105}, {20, 29, 100}, {30, 39, 95}, {40, 50, 100}}},
	} {
		l := Timeline{wall: c.wall, steady: c.steady, doubt: doubt{began: 1, after: 50}, strays: append(append([]stray{}, before...), stray{51, 60, int64(c.wall - c.steady)})}
		got := l.Confirm(true)
		if diff := cmp.Diff(Timeline{wall: c.wall, steady: c.wall, strays: c.want}, got, cmp.AllowUnexported(Timeline{}, doubt{}, stray{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestStraysAreBounded: transitions that find no room are dated by steady time.
func TestStraysAreBounded(t *testing.T) {
	const start = uint64(1e18)
	l := Timeline{steady: start, doubt: doubt{began: 1}}
	last := uint64(0)
	for i := range uint64(2 * maxStrays) {
		own := start + (i%2+1)*uint64(365*24*time.Hour)
		recorded, dated := l.Record(own, last, time.Hour)
		if recorded <= last {
			t.Fatal("out of order")
		}
		if want := own; i >= maxStrays && dated != start || i < maxStrays && dated != want {
			t.Fatalf("transition %d is dated %v", i, dated)
		}
		last = recorded
	}
	if len(l.strays) != maxStrays {
		t.Errorf("%d strays", len(l.strays))
	}
}

// TestSearchFindsAll: whatever the clock does, each transition lies in exactly one of
// the ranges for the time at which it is shown, and the ranges stay few.
func TestSearchFindsAll(t *testing.T) {
	type transition struct{ recorded, own uint64 }
	rapid.Check(t, func(t *rapid.T) {
		// However often the clock jumps, no time is before 1970.
		const retention, hour, start = 100 * time.Hour, uint64(time.Hour), uint64(4e18)
		line, skew, wall, last := New(start, 0), Skew{}, start, uint64(0)
		var all []transition
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				wall = start + uint64(rapid.Int64Range(-15_000, 15_000).Draw(t, "hours"))*hour
			case 1:
				line = line.Confirm(rapid.Bool().Draw(t, "said"))
			default:
				passed := rapid.Int64Range(0, 30).Draw(t, "passed") * int64(hour)
				wall += uint64(passed)
				next := line.Look(wall, time.Duration(passed), retention, last)
				line = next.Clone()
				recorded, dated := line.Record(wall, last, retention)
				if recorded <= last || recorded < dated {
					t.Fatalf("recorded at %d behind %d, dated %d", recorded, last, dated)
				}
				skew.Note(recorded, dated)
				all, last = append(all, transition{recorded, dated}), recorded
			}
			for _, tr := range all {
				at := line.Shown(tr.recorded, tr.own)
				found, end := 0, uint64(0)
				for i, r := range line.Search(ParseSkew(skew.Append(nil)), at, at+1) {
					if i > 0 && r.From <= end {
						t.Fatal("ranges touch or are out of order")
					}
					if end = r.To; r.From <= tr.recorded && tr.recorded < r.To {
						found++
					}
				}
				if found != 1 {
					t.Fatalf("%d ranges hold %+v, shown at %d", found, tr, at)
				}
			}
		}
	})
}

// TestSkewDoesNotGrow: doubts that end leave nothing behind in it.
func TestSkewDoesNotGrow(t *testing.T) {
	const retention, year = 100 * time.Hour, uint64(365 * 24 * time.Hour)
	now := uint64(1e18)
	line, skew, last := New(now, 0), Skew{}, uint64(0)
	record := func(wall uint64) {
		line = line.Look(wall, time.Hour, retention, last)
		recorded, dated := line.Record(wall, last, retention)
		skew.Note(recorded, dated)
		last = recorded
	}
	for range 20 {
		now += uint64(time.Hour)
		record(now)
		record(now + year)
		now += uint64(time.Hour)
		record(now) // the doubt ends
	}
	if skew.limit > 2*year {
		t.Errorf("the skew is %v after 20 doubts", time.Duration(skew.limit))
	}
	if left := skew.Prune(last); left != (Skew{}) {
		t.Errorf("of a history that is gone, %+v is left", left)
	}
}

// FuzzParse: no bytes panic, and what is read is written the same.
func FuzzParse(f *testing.F) {
	line := New(1, 2)
	f.Add(line.Append(nil))
	line.strays = []stray{{3, 4, -5}}
	f.Add(line.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if line, ok := Parse(b); ok && string(line.Append(nil)) != string(b) {
			t.Errorf("%x became %x", b, line.Append(nil))
		}
		if skew := ParseSkew(b); len(b) == skewSize && string(skew.Append(nil)) != string(b) {
			t.Errorf("%x became %x", b, skew.Append(nil))
		}
	})
}
