//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/catalog"
	"hdsd/coordinator/feed"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source/hold"
)

// jumped is the time of a wall clock that was set to another, as time.Now gives it then: its
// monotonic part goes on. The layout is that of package time.
func jumped(t testing.TB, at time.Time, by time.Duration) time.Time {
	t.Helper()
	was := at
	r := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&at))
	if r.wall>>63 == 0 {
		t.Fatalf("%v has no monotonic part", at)
	}
	r.wall += uint64(by/time.Second) << 30
	if at.Sub(was) != 0 || at.Round(0).Sub(was.Round(0)) != by.Truncate(time.Second) {
		t.Fatalf("%v is no jump of %v from %v: package time has changed", at, by, was)
	}
	return at
}

// clockRun runs outages, a lost checker, probation, damping and a held source by rounds, and
// notes what is decided in each. jump may change the clock before a round.
func clockRun(t *testing.T, restarts bool, jump func(l *lab, round int)) (decided []string) {
	l := newLab(t)
	l.now = time.Now() // with a monotonic part
	l.rules.Checkers.Probation = durationpb.New(20 * time.Second)
	l.rules.Verdict = &configv1.Verdict{Damping: &configv1.Damping{}}
	addresses := addressList(60)
	full, few := web("web0", addresses...), web("web0", addresses[:20]...)
	l.serve(full)
	holding := func() {
		var readers []feed.Reader
		for _, r := range l.intake.readers {
			readers = append(readers, r)
		}
		l.intake.Restart(readers, catalog.NewRules(l.rules), map[string]hold.Rule{"local": {Share: 0.5, For: 30 * time.Second}})
	}
	holding()
	l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c")
	l.pass(settle + 10*report)
	for round := range 120 {
		jump(l, round)
		switch round {
		case 5:
			l.join("n0a", "n1b")
		case 8, 14, 20, 26, 32: // flaps; what is stored of that ages by the clock
			if !restarts {
				l.truth[addresses[1]] = health.Unhealthy
			}
		case 11, 17, 23, 29, 35:
			l.truth[addresses[1]] = health.Healthy
		case 10:
			l.truth[addresses[0]] = health.Unhealthy
		case 12:
			l.lose("c0a") // for longer than the grace period
		case 22:
			l.join("c0a")
		case 40:
			l.intake.take(localSet([]*sourceCluster{few}))
		case 75:
			if restarts {
				strip(l)
				l.restart()
				l.serve(few)
				l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c", "n0a", "n1b")
			}
		case 77:
			l.truth[addresses[2]] = health.Unhealthy
		case 100:
			l.truth[addresses[0]] = health.Healthy
		}
		if round >= 40 && round < 75 { // as the feed's own clock does
			l.intake.take(localSet([]*sourceCluster{few}))
		}
		before := len(l.transitions)
		l.pass(report)
		note := func(format string, args ...any) {
			decided = append(decided, fmt.Sprintf("%d: ", round)+fmt.Sprintf(format, args...))
		}
		new := slices.Clone(l.transitions[before:])
		slices.SortFunc(new, func(a, b health.Transition) int { return a.Endpoint.Compare(b.Endpoint) })
		for _, tr := range new {
			note("%s %v to %v", tr.Endpoint.Address, tr.From, tr.To)
		}
		f := l.figures()
		note("%d on probation, %d seated, %d in use, plan %x", f.Probation, f.Seated, len(l.present()), l.digest())
	}
	return decided
}

// strip leaves of what was stored what a store keeps of times.
func strip(l *lab) {
	for i := range l.transitions {
		l.transitions[i].Time = l.transitions[i].Time.Round(0)
	}
	for id, e := range maps.Clone(l.established) {
		e.Seen, e.StandIn = e.Seen.Round(0), e.StandIn.Round(0)
		l.established[id] = e
	}
	for hash, v := range maps.Clone(l.voted) {
		v.Since = v.Since.Round(0)
		l.voted[hash] = v
	}
}

// TestClockJumps lets the wall clock jump by a year in both directions during an outage, the grace period of
// a lost checker, probation, damping and a hold, and at a start. All decisions and their times stay the same.
// Only the penalties that damping keeps over a restart age by the wall clock.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, restarts := range []bool{false, true} {
		want := clockRun(t, restarts, func(*lab, int) {})
		if n := len(want); n < 123 {
			t.Fatalf("too little is decided: %q", want)
		}
		for name, c := range map[string]map[int]time.Duration{
			"ahead in an outage":             {11: year},
			"back in an outage":              {11: -year},
			"in grace":                       {14: -year, 16: 2 * year},
			"to and fro":                     {7: year, 15: -2 * year, 30: year, 50: -year, 60: 2 * year},
			"ahead while a source is held":   {45: year},
			"back while a source is held":    {45: -year},
			"ahead when it starts":           {75: year},
			"back when it starts":            {75: -year},
			"ahead before it starts":         {60: year, 75: -year},
			"ahead after the start":          {76: year},
			"back soon after it has settled": {79: -year},
		} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restarts), func(t *testing.T) {
				got := clockRun(t, restarts, func(l *lab, round int) {
					if by, ok := c[round]; ok {
						l.now = jumped(t, l.now, by)
					}
				})
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("decided is %q, want %q", got[i], want[i])
					}
				}
				if len(got) != len(want) {
					t.Errorf("%d decisions, want %d", len(got), len(want))
				}
			})
		}
	}
}
