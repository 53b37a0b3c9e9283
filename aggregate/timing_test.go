package aggregate

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"hdsd/health"
)

func TestWarmUp(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name   string
		timing Timing
		want   uint32
	}{
		{"usual", Timing{time.Second, 500 * time.Millisecond, 2 * time.Second, 2, time.Second, 0}, 6500},
		{"nothing", Timing{}, 0},
		{"rounded up", Timing{Timeout: time.Millisecond + 1}, 2},
		{"slow", Timing{Interval: time.Minute, UnhealthyThreshold: 3}, 240_000},
		{"forever", Timing{Interval: 1000 * day, UnhealthyThreshold: 3}, math.MaxUint32},
		{"too large for sums", Timing{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxUint32, math.MaxInt64, 0}, math.MaxUint32},
	} {
		if got := test.timing.warmUp(); got != test.want {
			t.Errorf("%s: warm-up of %d ms, want %d", test.name, got, test.want)
		}
	}
}

func TestDefaultStaleness(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		50 * time.Millisecond: 2 * time.Second, 250 * time.Millisecond: 2 * time.Second,
		time.Second: 2500 * time.Millisecond, 10 * time.Second: 25 * time.Second,
	} {
		if got := DefaultStaleness(interval); got != want {
			t.Errorf("%s: %s, want %s", interval, got, want)
		}
	}
}

// TestSizes: rows are as small as doc.go promises.
func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(seat{}); got != 20 {
		t.Errorf("a seat takes %d bytes, want 20 (and 8 in its checker's list)", got)
	}
	if got := unsafe.Sizeof(endpoint{}); got > 40 {
		t.Errorf("an endpoint takes %d bytes, want 40", got)
	}
}

// TestClock: a time that jumps back is ignored, and no deadline is too early.
func TestClock(t *testing.T) {
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var c clock
	c.advance(base)
	c.advance(base.Add(1500 * time.Microsecond))
	c.advance(base.Add(-time.Hour))
	if want := base.Add(1500 * time.Microsecond); !c.now.Equal(want) || c.tick() != 1 {
		t.Errorf("now %s, tick %d; want %s, 1", c.now, c.tick(), want)
	}
	if got := c.tickAfter(time.Millisecond); got != 3 {
		t.Errorf("a millisecond after 1.5 ms is tick %d, want 3", got)
	}
	if got := c.tickAfter(math.MaxInt64); got < 1<<40 {
		t.Errorf("the far future is tick %d", got)
	}
}

// TestNextDeadline: a call that only records is due at once.
func TestNextDeadline(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := New(Options{})
	if at, ok := a.NextDeadline(); ok {
		t.Fatalf("something is due at %s", at)
	}
	a.Set(Endpoint{ID: 1}, health.Verdict{})
	a.Assign(now, 1, "a")
	if at, ok := a.NextDeadline(); !ok || !at.Equal(now) {
		t.Fatalf("next deadline %s, %v; want %s", at, ok, now)
	}
	a.Tick(now)
	if at, ok := a.NextDeadline(); !ok || !at.Equal(now.Add(5*time.Second)) {
		t.Fatalf("next deadline %s, %v; want the end of the wait for the first report", at, ok)
	}
}
