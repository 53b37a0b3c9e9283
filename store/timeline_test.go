package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLook: what is made of readings of the wall clock, in minutes.
func TestLook(t *testing.T) {
	const minute, retention, last = uint64(time.Minute), 100 * time.Hour, 77
	const leap, year = 10 * 60, 365 * 24 * 60
	at := func(steady, wall, since uint64) timeline {
		l := timeline{steady: steady * minute, wall: wall * minute}
		if since > 0 {
			l.doubt = doubt{since: since * minute, after: last}
		}
		return l
	}
	for _, c := range []struct {
		name         string
		before       timeline
		wall, passed uint64
		want         timeline
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
		got := c.before.look(c.wall*minute, time.Duration(c.passed*minute), retention, last)
		if c.want.doubted() && !c.before.doubted() {
			c.want.doubt.wall = c.wall * minute
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(timeline{}, doubt{}, stray{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestPassedOver: what has passed between two processes is what the clock says,
// unless it says too much.
func TestPassedOver(t *testing.T) {
	l := timeline{wall: nanos(day)}
	for after, want := range map[time.Duration]time.Duration{
		0: 0, time.Minute: time.Minute, 10 * time.Hour: 10 * time.Hour, 11 * time.Hour: 0, -time.Minute: 0,
	} {
		if got := l.passedOver(nanos(day.Add(after)), 100*time.Hour); got != want {
			t.Errorf("%v later: %v passed, want %v", after, got, want)
		}
	}
}

// TestLeap: a clock that is wrong costs a tenth of what is kept, or a week.
func TestLeap(t *testing.T) {
	for retention, want := range map[time.Duration]time.Duration{
		0: mostLeap, time.Second: leastLeap, time.Hour: 6 * time.Minute, 240 * time.Hour: 24 * time.Hour, 3650 * 24 * time.Hour: mostLeap,
	} {
		if got := leapOf(retention); got != want {
			t.Errorf("kept for %v: %v, want %v", retention, got, want)
		}
	}
}

// TestConfirm: where the clock went back, what is from before was dated ahead.
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
		l := timeline{wall: c.wall, steady: c.steady, doubt: doubt{since: 1, after: 50}, strays: append(append([]stray{}, before...), stray{51, 60, int64(c.wall - c.steady)})}
		got := l.confirm(true)
		if diff := cmp.Diff(timeline{wall: c.wall, steady: c.wall, strays: c.want}, got, cmp.AllowUnexported(timeline{}, doubt{}, stray{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestStraysAreBounded: what finds no room is dated by steady time.
func TestStraysAreBounded(t *testing.T) {
	const start = uint64(1e18)
	l := timeline{steady: start, doubt: doubt{since: 1}}
	last := uint64(0)
	for i := range uint64(2 * mostStrays) {
		own := start + (i%2+1)*uint64(365*24*time.Hour)
		recorded, dated := l.place(own, last, time.Hour)
		if recorded <= last {
			t.Fatal("out of order")
		}
		if want := own; i >= mostStrays && dated != start || i < mostStrays && dated != want {
			t.Fatalf("transition %d is dated %v", i, timeOf(dated))
		}
		last = recorded
	}
	if len(l.strays) != mostStrays {
		t.Errorf("%d strays", len(l.strays))
	}
}
