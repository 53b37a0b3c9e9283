package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/health"
)

// loop is a checker that comes and goes.
type loop struct {
	up, down time.Duration
	next     time.Time
	mute     bool // it never reports
}

// gaps is for how long endpoints have had no connected checker, although others could take them.
type gaps struct {
	*lab
	checkers []string
	loops    map[string]*loop
	since    map[health.EndpointID]time.Time
	longest  time.Duration
}

// bound is the longest time that docs/architecture.md states, for what there is to move.
func (g *gaps) bound() time.Duration {
	periods := 2*len(g.present)/leastShift + len(g.checkers)
	return longestHold + grace + time.Duration(periods)*leastPeriod + 5*report
}

// pass lets a time go by, in which checkers come and go in loops.
func (g *gaps) pass(d time.Duration) {
	for end := g.now.Add(d); g.now.Before(end); {
		g.now = g.now.Add(report / 2)
		for _, id := range sortedKeys(g.loops) {
			g.turn(id, g.loops[id])
		}
		g.now = g.now.Add(report / 2) // longer than plans are apart
		for _, id := range sortedKeys(g.Fleet.checkers) {
			if g.Connected(id) && !g.silent[id] && (g.loops[id] == nil || !g.loops[id].mute) {
				g.do(g.Report(g.now, id, true))
			}
		}
		g.do(g.Tick(g.now, g.now))
		g.do(g.Dispatch(g.now))
		g.look()
	}
	g.wantInStep()
}

func (g *gaps) turn(id string, is *loop) {
	if g.now.Before(is.next) {
		return
	}
	if g.Connected(id) {
		g.lose(id)
		is.next = g.now.Add(is.down)
		return
	}
	g.back(id)
	is.next = g.now.Add(is.up)
}

func (g *gaps) back(id string) {
	delete(g.silent, id)
	g.join(id)
}

// look finds endpoints that no connected checker checks.
func (g *gaps) look() {
	covered := map[health.EndpointID]bool{}
	able := false
	for _, id := range g.checkers {
		if !g.Connected(id) {
			continue
		}
		able = able || !g.OnProbation(id) && g.Fleet.silent[id] == nil && !g.silent[id]
		for endpoint := range g.votes[id] {
			covered[endpoint] = true
		}
	}
	for id := range g.present {
		if covered[id] || !able {
			delete(g.since, id)
			continue
		}
		if _, is := g.since[id]; !is {
			g.since[id] = g.now
		}
		lasts := g.now.Sub(g.since[id])
		g.longest = max(g.longest, lasts)
		if bound := g.bound(); lasts > bound {
			g.Errorf("nobody checks endpoint %d for more than %v", id, bound)
		}
	}
}

// TestNoEndpointIsUncheckedForLong: no sequence of losses, crash loops, joins, silence, doubts, drained
// endpoints and reloads leaves an endpoint without a connected checker for longer than the bound, while
// others can take it.
func TestNoEndpointIsUncheckedForLong(t *testing.T) {
	var longest, bound time.Duration
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(4, 10).Draw(rt, "checkers")
		g := &gaps{
			lab:   newLab(t, options(), count, rapid.SampledFrom([]int{100, 300, 600}).Draw(rt, "endpoints")),
			loops: map[string]*loop{}, since: map[health.EndpointID]time.Time{}, checkers: numbered(0, count),
		}
		g.TB = shrinking{t, rt}
		someone := rapid.SampledFrom(g.checkers)
		some := rapid.SliceOfNDistinct(someone, 1, count-1, rapid.ID[string])
		seconds := func(rt *rapid.T, least, most int, what string) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(rt, what)) * time.Second
		}
		rt.Repeat(map[string]func(*rapid.T){
			"are lost": func(rt *rapid.T) {
				for _, id := range some.Draw(rt, "ids") {
					delete(g.loops, id)
					g.lose(id)
				}
			},
			"are back": func(rt *rapid.T) {
				for _, id := range some.Draw(rt, "ids") {
					delete(g.loops, id)
					g.back(id)
				}
			},
			"loops": func(rt *rapid.T) {
				g.loops[someone.Draw(rt, "id")] = &loop{
					up: seconds(rt, 1, 10, "up"), down: seconds(rt, 1, 80, "down"), next: g.now, mute: rapid.Bool().Draw(rt, "mute"),
				}
			},
			"are mute": func(rt *rapid.T) { g.hush(some.Draw(rt, "ids")...) },
			"speak":    func(rt *rapid.T) { g.speak(some.Draw(rt, "ids")...) },
			"are doubted": func(rt *rapid.T) {
				g.judge(rapid.SampledFrom([]Standing{Believed, Blind, Doubted, Distrusted}).Draw(rt, "standing"), some.Draw(rt, "ids")...)
			},
			"endpoints change": func(rt *rapid.T) {
				for _, id := range rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 640), func(i int) health.EndpointID { return health.EndpointID(i) }), 1, 20, rapid.ID).Draw(rt, "endpoints") {
					if g.present[id] {
						g.remove(id)
						delete(g.since, id)
					} else {
						g.add(id)
					}
				}
				g.do(g.Apply(g.now))
			},
			"is reloaded": func(rt *rapid.T) {
				g.SetProbation(g.now, rapid.SampledFrom([]time.Duration{0, probationTime}).Draw(rt, "probation"))
				g.SetCapacity(g.capacity)
				g.do(g.Apply(g.now))
			},
			"a while passes": func(rt *rapid.T) { g.pass(seconds(rt, 1, 300, "seconds")) },
		})
		g.pass(g.bound())
		longest, bound = max(longest, g.longest), max(bound, g.bound())
	})
	t.Logf("the longest time without a connected checker: %v, where at most %v is allowed", longest, bound)
}

// TestALoopKeepsNobodySeated: one checker in a crash loop does not renew the time for which three lost
// ones keep their seats.
func TestALoopKeepsNobodySeated(t *testing.T) {
	for _, mute := range []bool{false, true} {
		l := newLab(t, options(), 9, 900)
		g := &gaps{
			lab: l, checkers: numbered(0, 9), since: map[health.EndpointID]time.Time{},
			loops: map[string]*loop{"c3": {up: 5 * time.Second, down: 30 * time.Second, next: l.now, mute: mute}},
		}
		g.lose("c0", "c1", "c2")
		g.pass(longestHold + 10*grace)
		for _, id := range []string{"c0", "c1", "c2"} {
			if n := g.Part(id).Endpoints; n > 0 {
				t.Errorf("%s has %d endpoints, though lost for long (the loop is mute: %t)", id, n, mute)
			}
		}
	}
}

// TestALoopTakesNobodysTurn: what substitutes of a checker in a crash loop get, again and again, delays no
// other that was lost with it, even though it counts as lost since then.
func TestALoopTakesNobodysTurn(t *testing.T) {
	l := newLab(t, options(), 9, 600)
	g := &gaps{lab: l, checkers: numbered(0, 9), since: map[health.EndpointID]time.Time{}, loops: map[string]*loop{}}
	g.lose("c4", "c3", "c2", "c0", "c8", "c7", "c1", "c5")
	g.pass(3 * report)
	g.hush("c6")
	g.back("c8")
	g.loops["c0"] = &loop{up: 5 * time.Second, down: time.Second, next: g.now}
	g.loops["c3"] = &loop{up: 8 * time.Second, down: 4 * time.Second, next: g.now, mute: true}
	g.pass(2 * g.bound())
}

// TestNoSeatGoesToALostChecker: the seats of checkers that were lost first go to present ones when their time
// is over, not to others that were lost later and are still held.
func TestNoSeatGoesToALostChecker(t *testing.T) {
	l := newLab(t, options(), 10, 100)
	l.lose("c2", "c3", "c4", "c7")
	l.pass(longestHold - grace)
	later := []string{"c1", "c5", "c6", "c8"}
	seats := map[string]int{}
	for _, id := range later {
		seats[id] = l.Part(id).Endpoints
	}
	l.lose(later...)
	l.pass(2 * grace)
	for _, id := range []string{"c2", "c3", "c4", "c7"} {
		if n := l.Part(id).Endpoints; n > 0 {
			t.Errorf("%s still has %d endpoints", id, n)
		}
	}
	for _, id := range later {
		if n := l.Part(id).Endpoints; n > seats[id] {
			t.Errorf("%s has %d endpoints, %d more than when it was lost", id, n, n-seats[id])
		}
	}
}
