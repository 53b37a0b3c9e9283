package replica

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// jumped is the time of a wall clock that was set to another, as time.Now gives it then: its monotonic part goes on.
// The layout is that of package time.
func jumped(t testing.TB, now time.Time, by time.Duration) time.Time {
	t.Helper()
	before := now
	r := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&now))
	if r.wall>>63 == 0 {
		t.Fatalf("%v has no monotonic part", now)
	}
	r.wall += uint64(by/time.Second) << 30
	if now.Sub(before) != 0 || now.Round(0).Sub(before.Round(0)) != by {
		t.Fatalf("%v is no jump of %v from %v: package time has changed", now, by, before)
	}
	return now
}

// TestClocksJump covers replicas whose wall clocks are set an hour forth and back, while leaders change and endpoints
// fail and recover. No health is false, and no transition is lost or doubled.
func TestClocksJump(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed, func(l *lab) { now := time.Now(); l.base = jumped(t, now, start.Sub(now).Truncate(time.Second)) })
			changed := 0
			for range 30 {
				for range 1 + l.IntN(2) {
					p := l.running()[l.IntN(3)]
					p.skew = time.Duration(l.IntN(3)-1) * time.Hour
				}
				if l.IntN(3) == 0 {
					l.log.endEpoch()
				}
				for range 2 {
					before := len(l.truth[l.addresses()[0]])
					l.turn(l.addresses()[0])
					changed += len(l.truth[l.addresses()[0]]) - before
				}
				l.pass(l.between(500*time.Millisecond, 14*time.Second))
			}
			l.pass(30 * reportInterval)
			l.settled("at the end")
			l.explained()
			l.checkHistory()
			for _, p := range l.running() {
				for key, course := range p.planes {
					if key.Address == l.addresses()[0] && len(course) != changed+2 { // with UNKNOWN and the first health
						t.Errorf("%s has published %d changes of %d", p.id, len(course)-2, changed)
					}
				}
			}
			if changed < 5 {
				t.Errorf("only %d changes", changed)
			}
		})
	}
}
