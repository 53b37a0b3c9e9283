//go:build !race || soak

package coordinator

import (
	"strings"
	"testing"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

const flapper, steady = "10.0.0.1:80", "10.0.0.2:80"

// newFlappingLab returns a lab in which an endpoint went down so often that it is held down.
func newFlappingLab(t *testing.T) *lab {
	l := newLab(t)
	l.rules.Verdict = &configv1.Verdict{Damping: &configv1.Damping{}}
	l.serve(web("web", flapper, steady))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	for range 3 {
		l.truth[flapper] = health.Unhealthy
		l.pass(5 * time.Second)
		l.truth[flapper] = health.Healthy
		l.pass(5 * time.Second)
	}
	l.wantHeld(true)
	return l
}

func (l *lab) wantHeld(want bool) {
	l.t.Helper()
	v := l.verdict("web", flapper)
	if held := strings.Contains(v.Reason, "it flaps, and is held down until"); held != want || v.Status.Up() == want {
		l.t.Errorf("at %v it is %v: %s", l.now, v.Status, v.Reason)
	}
}

// restartFromStore starts a new core from the stored state, as after a kill.
func (l *lab) restartFromStore() {
	l.restart()
	l.serve(web("web", flapper, steady))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
}

// heldFor returns the time until the hold of the endpoint ends.
func (l *lab) heldFor() time.Duration {
	began := l.now
	for l.now.Sub(began) < 10*time.Minute && !l.verdict("web", flapper).Status.Up() {
		l.pass(time.Second)
	}
	return l.now.Sub(began)
}

// TestRestartKeepsPenalties covers many restarts: an endpoint that flaps is held down for the same time.
func TestRestartKeepsPenalties(t *testing.T) {
	l := newFlappingLab(t)
	want := l.heldFor()
	l = newFlappingLab(t)
	began := l.now
	for range 2 {
		l.restartFromStore()
		l.wantHeld(true)
	}
	l.heldFor()
	if took := l.now.Sub(began); (took - want).Abs() > 2*time.Second {
		t.Errorf("it is held for %v with restarts, %v without", took, want)
	}
	l.pass(time.Minute)
	if len(l.penalties) > 0 {
		t.Errorf("stored for ever: %v", l.penalties)
	}
}

// TestPenaltyOfOneDownIsKept covers an endpoint that goes down once before and once after a restart: both
// count.
func TestPenaltyOfOneDownIsKept(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict = &configv1.Verdict{Damping: &configv1.Damping{Suppress: 1500}}
	l.serve(web("web", flapper, steady))
	l.join("1a", "2b", "3c")
	l.pass(settle + 10*time.Second)
	for i := range 2 {
		l.truth[flapper] = health.Unhealthy
		l.pass(3 * time.Second)
		l.truth[flapper] = health.Healthy
		l.pass(3 * time.Second)
		if l.wantHeld(i == 1); i == 0 {
			l.restartFromStore()
		}
	}
}

// TestPenaltiesAndClock covers wrong clocks at the start: hdsd holds the endpoint for at most four
// half-lives.
func TestPenaltiesAndClock(t *testing.T) {
	const longest = 4 * 30 * time.Second
	for name, jump := range map[string]time.Duration{"back": -365 * 24 * time.Hour, "ahead": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newFlappingLab(t)
			l.now = l.now.Add(jump)
			began := l.now
			l.restartFromStore()
			l.wantHeld(jump < 0)
			if l.heldFor(); l.now.Sub(began) > longest+2*time.Second {
				t.Errorf("it is held for %v", l.now.Sub(began))
			}
		})
	}
	t.Run("a penalty without end", func(t *testing.T) {
		l := newFlappingLab(t)
		began := l.now
		for hash := range l.penalties {
			l.penalties[hash] = log.Penalty{Value: 1e300, At: l.now.Add(1e6 * time.Hour), Suppressed: true}
		}
		l.restartFromStore()
		l.wantHeld(true)
		if l.heldFor(); l.now.Sub(began) > longest+2*time.Second {
			t.Errorf("it is held for %v", l.now.Sub(began))
		}
	})
}

// TestPenaltyWrites covers an endpoint that is held down and flaps all the time: it costs one row a second.
func TestPenaltyWrites(t *testing.T) {
	l := newFlappingLab(t)
	l.saves = 0
	for i := range 600 {
		l.truth[flapper] = []health.Status{health.Unhealthy, health.Healthy}[i%2]
		l.now = l.now.Add(100 * time.Millisecond)
		for _, id := range []string{"1a", "2b", "3c"} {
			l.report(id)
		}
		l.step(machine.Tick{})
	}
	if l.saves < 30 || l.saves > 61 {
		t.Errorf("stored %d times in a minute", l.saves)
	}
}

// TestPenaltiesOfGoneEndpoints covers endpoints that leave with a restart and without: hdsd forgets their
// penalties.
func TestPenaltiesOfGoneEndpoints(t *testing.T) {
	for _, restart := range []bool{false, true} {
		l := newFlappingLab(t)
		if restart {
			l.restart()
			l.serve(web("web", steady))
			l.join("1a", "2b", "3c")
		} else {
			l.setClusters(web("web", steady))
		}
		if l.pass(settle + 5*time.Second); len(l.penalties) > 0 {
			t.Errorf("restart %t: %v", restart, l.penalties)
		}
	}
}
