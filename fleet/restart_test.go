package fleet

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"hdsd/health"
)

// served is a lab whose endpoints have three checkers each.
func served(t *testing.T, checkers, endpoints int) *lab {
	l := newLab(t, options(), checkers, 0)
	l.redundancy = 3
	for id := range endpoints {
		l.add(health.EndpointID(id))
	}
	l.do(l.Apply(l.now))
	l.pass(report)
	return l
}

// checkedByFewer counts the endpoints that fewer connected checkers check.
func (l *lab) checkedByFewer(than int) (count int) {
	for id := range l.present {
		connected := 0
		for _, checker := range l.planner.Checkers(id) {
			connected += boolToInt(l.Connected(checker))
		}
		count += boolToInt(connected < than)
	}
	return count
}

// TestAFleetUnderOtherIdsIsServedAfterARestart: few of the old checkers are back, and as many as
// before under other ids, which are not on probation. They get what the others had at once, and keep
// it over another restart.
func TestAFleetUnderOtherIdsIsServedAfterARestart(t *testing.T) {
	for _, test := range []struct{ old, kept, endpoints int }{{20, 0, 4000}, {20, 1, 4000}, {20, 4, 4000}, {200, 2, 40_000}} {
		t.Run(fmt.Sprintf("%d of %d kept", test.kept, test.old), func(t *testing.T) {
			l := served(t, test.old, test.endpoints)
			for again := range 2 {
				l.restart()
				for i := range test.old {
					if l.join(fmt.Sprintf("c%d", i+boolToInt(i >= test.kept)*1000)); again == 0 && i == 0 {
						l.pass(report)
					}
				}
				if l.pass(report); again > 0 && l.checkedByFewer(1) > 0 {
					t.Errorf("nobody checks %d endpoints after another restart", l.checkedByFewer(1))
				}
				l.pass(settle + 2*grace)
				if n := l.checkedByFewer(3); n > 0 {
					t.Errorf("%d endpoints lack checkers after restart %d", n, again+1)
				}
			}
		})
	}
}

// TestWhoIsLostWhileSettlingKeepsItsSeats for the grace period, however many have not come back.
func TestWhoIsLostWhileSettlingKeepsItsSeats(t *testing.T) {
	o := options()
	o.Grace = time.Minute
	for missing := range 3 {
		l := newLab(t, o, 10, 400)
		l.restartWith(o)
		for _, id := range numbered(0, 10-missing) {
			l.join(id)
		}
		l.pass(settle - report)
		l.lose("c0")
		l.pass(o.Grace - 5*report)
		if _, known := l.checkers["c0"]; !known {
			t.Errorf("%d are missing: c0 has given up its seats", missing)
		}
	}
}

// TestSettlesInTime: no later than it may, whatever the report interval is.
func TestSettlesInTime(t *testing.T) {
	// They come back half a minute apart, so it waits where that is within three intervals.
	for every, waits := range map[time.Duration]bool{time.Second: false, 20 * time.Second: true} {
		o := options()
		o.Report, o.Settle, o.Grace = every, 3*every, 3*every
		l := newLab(t, o, 20, 2000)
		l.pass(10 * every)
		l.restartWith(o)
		began := l.now
		for _, id := range numbered(0, 14) {
			l.join(id)
		}
		for i := 0; l.Settling(); i++ {
			if i%30 == 29 && i/30 < 6 {
				l.join(fmt.Sprintf("c%d", 14+i/30)) // one by one
			}
			l.pass(report)
		}
		late := l.now.Sub(began) - o.Settle
		if late > longestSettling+report || waits && late < every {
			t.Errorf("reports every %v: it settles %v late", every, late)
		}
	}
}

// TestOneThatFlapsDoesNotHoldUpSettling: some are late, and one that was back at once comes and goes.
func TestOneThatFlapsDoesNotHoldUpSettling(t *testing.T) {
	l := newLab(t, options(), 200, 2000)
	l.restart()
	began := l.now
	for _, id := range numbered(0, 150) {
		l.join(id)
	}
	for l.Settling() {
		l.pass(report / 2)
		switch l.now.Sub(began) {
		case settle - report:
			for _, id := range numbered(150, 175) {
				l.join(id)
			}
		case settle + report:
			for _, id := range numbered(175, 200) {
				l.join(id)
			}
		}
		if l.Connected("c0") {
			l.lose("c0")
		} else {
			l.join("c0")
		}
	}
	if took := l.now.Sub(began); took > settle+10*report {
		t.Errorf("it settles after %v", took)
	}
}

// TestLateFoundersAreStoredOnce: a reload ends probation for a while, so that they are established.
func TestLateFoundersAreStoredOnce(t *testing.T) {
	l := withLateFounders(t)
	l.probation.lasts = 0
	l.restart()
	for _, id := range numbered(0, 10) {
		l.join(id)
	}
	l.pass(10 * report)
	l.SetProbation(l.now, probationTime)
	l.pass(10 * report)
	if l.probation.roll.late > 0 || len(l.probation.roll.records) != 10 {
		t.Errorf("%d are late and %d established", l.probation.roll.late, len(l.probation.roll.records))
	}
	l.lose("c6")
	l.pass(longestHold)
	if _, known := l.checkers["c6"]; known {
		t.Fatal("c6 keeps its seats")
	}
	if !maps.Equal(l.stored, l.probation.roll.records) || len(l.stored) != 10 {
		t.Errorf("stored are %v, want %v", l.stored, l.probation.roll.records)
	}
}
