package fleet

import (
	"testing"
	"time"
)

// drift is what the checkers that report got in the course of time.
type drift struct {
	*lab
	before map[string]int // endpoints
	gains  []gain         // by tick, the latest last
}

// gain is what they got in one tick, and what they had.
type gain struct{ got, had int }

// reporting returns how many endpoints each checker has that reports.
func (d *drift) reporting() map[string]int {
	parts := map[string]int{}
	for id := range d.checkers {
		if d.Connected(id) && !d.silent[id] {
			parts[id] = d.Part(id).Endpoints
		}
	}
	return parts
}

// pass lets time go by. In no stretch of a grace period, wherever it begins, may they get more
// than a twentieth of what they had, and none may get anything that brings it far above the mean.
func (d *drift) pass(t time.Duration) {
	d.Helper()
	for range t / (report / 2) {
		d.lab.pass(report / 2)
		now, one := d.reporting(), gain{}
		for id, part := range now {
			one.got += part - d.before[id]
			one.had += d.before[id]
		}
		for id, part := range now {
			if mean := (one.had + one.got) / len(now); part > d.before[id] && part > mean*115/100+1 {
				d.Fatalf("%s has %d endpoints, and had %d: the mean is %d", id, part, d.before[id], mean)
			}
		}
		d.before, d.gains = now, append(d.gains, one)
		got, had := 0, 0
		for _, one := range d.gains[max(0, len(d.gains)-int(grace/(report/2))):] {
			got, had = got+one.got, max(had, one.had)
		}
		if got > had/20 {
			d.Fatalf("the rest got %d endpoints in a grace period, and had %d", got, had)
		}
	}
}

// TestTheRestGetNoMoreThanAMargin, whether checkers are lost, silent or both, at once or one
// after the other, for a while or for good. In the end all is checked, and when they are back
// all is as before.
func TestTheRestGetNoMoreThanAMargin(t *testing.T) {
	for _, test := range []struct {
		name         string
		lost, silent int
		apart        time.Duration // between two
		back         bool
	}{
		{"lost at once", 40, 0, 0, false},
		{"silent at once", 0, 40, 0, false},
		{"lost and silent", 20, 20, 0, false},
		{"lost one after the other", 40, 0, 700 * time.Millisecond, false},
		{"lost in turns with silent ones", 20, 20, 1200 * time.Millisecond, false},
		{"lost for a while", 40, 0, 0, true},
		{"most lost at once", 140, 0, 0, true},
		{"most silent at once", 0, 140, 0, true},
		{"most lost or silent", 70, 70, 0, true},
		{"most lost one after the other", 140, 0, 100 * time.Millisecond, true},
		{"most lost for good", 140, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, options(), 200, 10_000)
			count := test.lost + test.silent
			gone, digest := numbered(0, count), l.Digest()
			d := &drift{lab: l}
			d.before = d.reporting()
			since := time.Duration(0)
			for i, id := range gone {
				if i%2 == 0 && i/2 < test.silent || i >= 2*test.lost {
					l.hush(id)
				} else {
					l.lose(id)
				}
				if since += test.apart; since >= report {
					d.pass(since.Truncate(report / 2))
					since -= since.Truncate(report / 2)
				}
			}
			if test.back {
				d.pass(time.Minute)
				for _, id := range gone {
					if l.Connected(id) {
						l.speak(id)
					} else {
						l.join(id)
					}
				}
				l.pass(30 * time.Second)
				if l.Digest() != digest {
					t.Error("the plan is not what it was")
				}
				return
			}
			d.pass(time.Duration(boolToInt(count > 60))*longestHold + time.Duration(count/2)*grace)
			for _, id := range gone {
				if part := l.Part(id).Endpoints; part > 0 {
					t.Fatalf("%s has %d endpoints in the end", id, part)
				}
			}
			checked := 0
			for _, part := range d.reporting() {
				checked += part
			}
			if checked != 20_000 {
				t.Errorf("%d seats are with the rest in the end", checked)
			}
		})
	}
}

// TestASmallFleetMovesAsOne: the work of one of few is moved at once if it is little. If it is
// more than the others may get in a grace period, it waits for as many of these as it needs.
func TestASmallFleetMovesAsOne(t *testing.T) {
	for _, test := range []struct {
		endpoints int
		after     time.Duration // the loss
	}{{100, grace}, {4000, 3 * grace}} {
		l := newLab(t, options(), 8, test.endpoints)
		l.lose("c0")
		l.pass(test.after - report)
		if n := l.Part("c0").Endpoints; n < test.endpoints/8 {
			t.Errorf("of %d endpoints: it keeps %d after %v", test.endpoints, n, test.after-report)
		}
		l.pass(3 * report)
		if n := l.Part("c0").Endpoints; n > 0 {
			t.Errorf("of %d endpoints: it has %d after %v", test.endpoints, n, test.after+2*report)
		}
	}
}

// TestWhoWaitsLongestIsNext: what is more than a margin waits for three periods, though others come and go.
func TestWhoWaitsLongestIsNext(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newShift(grace)
	for passed := time.Duration(0); ; passed += report {
		now := begun.Add(passed)
		if s.allows(now, begun, passed, 250, 100) {
			return
		}
		if passed > 3*grace {
			t.Fatalf("it still waits after %v", passed)
		}
		if s.allows(now, now, 0, 60, 100) {
			s.settle(now, 60)
		}
	}
}
