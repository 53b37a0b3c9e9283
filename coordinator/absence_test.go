//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"hdsd/health"
)

var honest = []string{"c0a", "c1b", "c2c", "c3a", "c4b", "c5c"}

// TestAbsenceEstablishesNoLiar lets all established checkers be absent for longer than hdsd keeps their
// seats, while liars are connected. No endpoint is down after their return.
func TestAbsenceEstablishesNoLiar(t *testing.T) {
	for _, liars := range []int{3, 12, 50} {
		for _, away := range []time.Duration{6 * time.Second, time.Minute, 10 * time.Minute} {
			if away > time.Minute && liars != 12 {
				continue // long to run
			}
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d for %v, restart %v", liars, away, restarts), func(t *testing.T) {
					l, addresses := newProbationLab(t)
					var ids []string
					for i := range liars {
						ids = append(ids, fmt.Sprintf("x%d%c", i, 'a'+rune(i%3)))
					}
					l.join(ids...)
					l.reportDown(addresses, ids...)
					l.pass(5 * report)
					for _, id := range honest {
						l.lose(id)
					}
					l.pass(away / 2)
					if restarts {
						l.restartAs(l.sets[0].Clusters, ids...)
						l.reportDown(addresses, ids...)
					}
					l.pass(away / 2)
					during := l.countDown(addresses)
					l.join(honest...)
					l.pass(10 * report)
					after := l.countDown(addresses)
					t.Logf("%d down during the absence, %d after", during, after)
					if after > 0 {
						t.Errorf("%d of 600 are down 10 rounds after the established checkers came back", after)
					}
					if away <= time.Minute && during > 0 {
						t.Errorf("%d of 600 went down during an absence of %v", during, away)
					}
					if n := l.figures().Probation; n != liars {
						t.Errorf("%d are on probation, want %d", n, liars)
					}
					l.truth[addresses[0]] = health.Unhealthy
					l.pass(10 * report)
					l.wantPublished("web0", addresses[0], health.Unhealthy)
					l.pass(time.Minute)
					if n := l.countDown(addresses); n != 1 {
						t.Errorf("%d of 600 are down a minute later, want 1", n)
					}
				})
			}
		}
	}
}

// TestLiarsWaitForAbsence lets liars agree with the others until an absence. No endpoint is down after the
// return of the established checkers, however few return.
func TestLiarsWaitForAbsence(t *testing.T) {
	for name, back := range map[string][]string{"all come back": honest, "one comes back": honest[:1]} {
		t.Run(name, func(t *testing.T) {
			l, addresses := newProbationLab(t)
			liars := []string{"x0a", "x1b", "x2c", "x3a", "x4b", "x5c", "x6a", "x7b", "x8c", "x9a"}
			l.join(liars...)
			l.pass(5 * report)
			for _, id := range honest {
				l.lose(id)
			}
			l.reportDown(addresses, liars...)
			l.pass(6 * report)
			early := l.countDown(addresses)
			l.pass(time.Minute)
			t.Logf("%d down after 6 s, %d after a minute more", early, l.countDown(addresses))
			l.join(back...)
			l.pass(10 * report)
			if n := l.countDown(addresses); n > 0 {
				t.Errorf("%d of 600 are down 10 rounds after", n)
			}
			l.pass(time.Minute)
			if n := l.countDown(addresses); n > 0 {
				t.Errorf("%d of 600 are down a minute later", n)
			}
		})
	}
}

// restartAs restarts hdsd while some checkers are connected.
func (l *lab) restartAs(clusters []*sourceCluster, ids ...string) {
	l.restart()
	l.serve(clusters...)
	l.join(ids...)
}

// TestStandInReturnsToProbation covers a checker that became established in an absence. It is on probation
// again when an established checker returns, and established once it has agreed with that checker.
func TestStandInReturnsToProbation(t *testing.T) {
	l, addresses := newProbationLab(t)
	l.join("n0a", "n1b", "n2c")
	l.pass(5 * report)
	for _, id := range honest {
		l.lose(id)
	}
	l.pass(grace + 10*report)
	if n := l.figures().Probation; n > 0 || l.established["n0a"].StandIn.IsZero() {
		t.Fatalf("%d are on probation; stored are %v", n, l.established)
	}
	l.join("n3a") // judged by those that stand in
	l.pass(time.Minute)
	if n := l.figures().Probation; n > 0 || l.established["n3a"].StandIn.IsZero() {
		t.Fatalf("%d are on probation; stored are %v", n, l.established)
	}
	l.join("c0a")
	l.pass(5 * report)
	if n := l.figures().Probation; n != 4 {
		t.Errorf("%d are on probation, want 4", n)
	}
	if _, stored := l.established["n0a"]; stored {
		t.Error("n0a is stored as established")
	}
	l.pass(40 * report)
	if n := l.figures().Probation; n > 0 || !l.established["n0a"].StandIn.IsZero() {
		t.Errorf("%d are on probation; stored are %v", n, l.established)
	}
	if n := l.countDown(addresses); n > 0 {
		t.Errorf("%d are down", n)
	}
}

// TestStandInStaysEstablished covers established checkers that never return.
func TestStandInStaysEstablished(t *testing.T) {
	l, _ := newProbationLab(t)
	l.join("n0a", "n1b", "n2c")
	l.pass(5 * report)
	for _, id := range honest {
		l.lose(id)
	}
	l.pass(3 * time.Hour)
	for _, id := range []string{"n0a", "n1b", "n2c"} {
		if e, ok := l.established[id]; !ok || !e.StandIn.IsZero() {
			t.Errorf("%s: %+v, %v", id, e, ok)
		}
	}
	l.join("c0a")
	l.pass(5 * report)
	if n := l.figures().Probation; n > 0 {
		t.Errorf("%d are on probation", n)
	}
}

// TestNewcomersStandIn covers newcomers that connect during an absence: they are established at once if they
// confirm the last verdicts.
func TestNewcomersStandIn(t *testing.T) {
	l, addresses := newProbationLab(t)
	for id := range maps.Clone(l.checkers) {
		l.lose(id)
	}
	l.pass(grace + report)
	l.truth[addresses[0]] = health.Unhealthy
	l.join("n0a", "n1b", "n2c")
	l.pass(15 * report)
	l.wantPublished("web0", addresses[0], health.Unhealthy)
	if n := l.countDown(addresses); n != 1 {
		t.Errorf("%d are down, want 1", n)
	}
}
