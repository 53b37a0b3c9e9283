package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// answer is how an endpoint answers probes.
type answer uint8

const (
	passes answer = iota
	degrades
	fails // with 503
	refuses
	hangs
	answers
)

// release is a version of Envoy, by how it reports status codes.
type release uint8

const (
	codeless  release = iota // 1.36
	codeKept                 // 1.38 keeps the code of the last answer
	codeFresh                // 1.40
	releases
)

// probed is an endpoint at an Envoy.
type probed struct {
	begun            bool // a probe has ended since the health checker was made
	failed, timeout  bool
	degraded         bool
	passing, failing uint32
	code             uint16
	next             time.Duration // when the next probe ends
}

// prober is a checker that behaves as Envoy does.
type prober struct {
	name      string
	release   release
	lies      bool
	here      bool
	hosts     []probed
	reportsAt time.Duration
}

// probe ends a probe of an endpoint.
func (h *probed) probe(r release, a answer, expected aggregate.Codes, timing aggregate.Timing) {
	code := map[answer]uint16{passes: 200, degrades: 200, fails: 503}[a]
	if r == codeFresh || code != 0 {
		h.code = code
	}
	first := !h.begun
	h.begun = true
	switch {
	case code != 0 && expected.Has(code):
		h.passing, h.failing = h.passing+1, 0
		if first || h.passing >= timing.HealthyThreshold {
			h.failed, h.timeout = false, false
		}
		h.degraded = a == degrades
	case code != 0:
		h.failed, h.timeout, h.passing = true, false, 0
	default:
		h.passing, h.failing = 0, h.failing+1
		if first || h.failing >= timing.UnhealthyThreshold {
			h.failed, h.timeout = true, a == hangs
		}
	}
}

// vote returns what an Envoy reports.
func (h *probed) vote(r release) (health.Status, uint16) {
	code := h.code
	if r == codeless {
		code = 0
	}
	switch {
	case h.failed && h.timeout:
		return health.Timeout, code
	case h.failed, h.degraded:
		return health.Unhealthy, code
	}
	return health.Healthy, code
}

// degradedGameOf is what a game is made of. The seed decides the rest.
type degradedGameOf struct {
	seed             uint64
	releases         [3]release
	liar             bool // the last checker says what it likes
	healthyThreshold uint32
	zones            int
	events           int
}

// degradedGame plays endpoints that pass, degrade, fail and recover, while checkers are lost
// and restart, hdsd restarts, and the check changes.
type degradedGame struct {
	degradedGameOf
	t          interface{ Fatalf(string, ...any) }
	random     *rand.Rand
	aggregator *aggregate.Aggregator
	now        time.Duration
	timing     aggregate.Timing
	expected   aggregate.Codes
	probers    []*prober
	truth      []answer
	verdicts   []health.Verdict
	changed    []time.Duration // when each endpoint last began to answer otherwise
	degraded   []time.Duration // when each endpoint last answered that it is degraded
	disturbed  time.Duration   // when something else last happened
}

const inGame = 10 // endpoints

func newDegradedGame(t interface{ Fatalf(string, ...any) }, of degradedGameOf) *degradedGame {
	g := &degradedGame{
		degradedGameOf: of, t: t, random: rand.New(rand.NewPCG(of.seed, 1)), expected: codes(200),
		truth: make([]answer, inGame), verdicts: make([]health.Verdict, inGame), changed: make([]time.Duration, inGame),
		degraded: make([]time.Duration, inGame),
	}
	g.timing = aggregate.Timing{
		Interval: time.Duration(1+g.random.IntN(3)) * time.Second, Timeout: 500 * time.Millisecond, UnhealthyThreshold: uint32(1 + g.random.IntN(3)),
		ReportInterval: time.Second, HealthyThreshold: of.healthyThreshold,
	}
	for i := range 3 {
		g.probers = append(g.probers, &prober{name: fmt.Sprint("c", i), release: of.releases[i], lies: of.liar && i == 2})
	}
	for i := range g.truth {
		g.truth[i] = answer(g.random.IntN(int(answers)))
	}
	g.start()
	for _, p := range g.probers {
		g.restart(p)
	}
	return g
}

// start starts hdsd with the verdicts that it has stored.
func (g *degradedGame) start() {
	g.aggregator = aggregate.New(aggregate.Options{})
	g.set()
	for _, p := range g.probers {
		if p.here {
			g.connect(p)
		}
	}
	g.disturbed = g.now
}

func (g *degradedGame) wall() time.Time { return epoch.Add(g.now) }

func (g *degradedGame) zone(i int) health.Locality {
	return health.Locality{Zone: fmt.Sprint("z", i%g.zones)}
}

// set says how endpoints are checked and judged, and assigns them to all checkers.
func (g *degradedGame) set() {
	for i := range inGame {
		g.aggregator.Set(aggregate.Endpoint{
			ID: health.EndpointID(i), Timing: g.timing, Zone: g.zone(i), Cluster: "web",
			Rule: aggregate.Rule{DegradedWhen: g.expected, Passing: g.expected},
		}, g.verdicts[i])
		for _, p := range g.probers {
			g.aggregator.Assign(g.wall(), health.EndpointID(i), p.name)
		}
	}
}

func (g *degradedGame) connect(p *prober) {
	k := health.Checker{ID: p.name, Locality: g.zone(int(p.name[1] - '0'))}
	if p.release == codeFresh {
		k.Abilities = freshCodes
	}
	p.here, p.reportsAt = true, g.now+g.within(time.Second)
	g.aggregator.Connected(g.wall(), k)
	g.disturbed = g.now
}

func (g *degradedGame) lose(p *prober) {
	p.here = false
	g.aggregator.Lost(p.name)
	g.disturbed = g.now
}

// restart restarts an Envoy: it has probed nothing.
func (g *degradedGame) restart(p *prober) {
	p.hosts = make([]probed, inGame)
	for i := range p.hosts {
		p.hosts[i] = probed{failed: true, next: g.now + g.within(g.timing.Interval)}
	}
	g.connect(p)
}

func (g *degradedGame) within(d time.Duration) time.Duration {
	return time.Duration(g.random.Int64N(int64(d/time.Millisecond))) * time.Millisecond
}

// event lets something happen.
func (g *degradedGame) event() {
	p := g.probers[g.random.IntN(len(g.probers))]
	switch g.random.IntN(7) {
	case 0, 1:
		i := g.random.IntN(inGame)
		g.truth[i], g.changed[i] = answer(g.random.IntN(int(answers))), g.now
	case 2:
		if p.here {
			g.lose(p)
		} else if g.random.IntN(2) == 0 {
			g.connect(p)
		} else {
			g.restart(p)
		}
	case 3:
		if p.here {
			g.lose(p)
		}
		g.restart(p)
	case 4:
		for _, each := range g.probers {
			if each.here {
				g.lose(each)
			}
			g.restart(each)
		}
	case 5:
		g.start()
	case 6:
		g.changeCheck()
	}
}

// changeCheck has other answers expected. Envoys make new health checkers; flags of their hosts stay.
func (g *degradedGame) changeCheck() {
	g.expected = [...]aggregate.Codes{codes(200), codes(200, 503), codes(200, 204)}[g.random.IntN(3)]
	g.timing.UnhealthyThreshold = uint32(1 + g.random.IntN(3))
	g.set()
	for _, p := range g.probers {
		for i := range p.hosts {
			h := &p.hosts[i]
			h.begun, h.passing, h.failing, h.next = false, 0, 0, g.now+g.within(g.timing.Interval)
		}
	}
	g.disturbed = g.now
	for i := range g.changed {
		g.changed[i] = g.now
	}
}

// step lets some time pass.
func (g *degradedGame) step() {
	g.now += 100 * time.Millisecond
	for at, due := g.aggregator.NextDeadline(); due && !at.After(g.wall()); at, due = g.aggregator.NextDeadline() {
		g.apply(g.aggregator.Tick(g.wall()))
	}
	for _, i := range g.random.Perm(len(g.probers)) {
		p := g.probers[i]
		for j := range p.hosts {
			if h := &p.hosts[j]; g.now >= h.next {
				if g.truth[j] == degrades {
					g.degraded[j] = g.now
				}
				h.probe(p.release, g.truth[j], g.expected, g.timing)
				h.next += g.timing.Interval
				if g.truth[j] == hangs {
					h.next += g.timing.Timeout
				}
			}
		}
		if p.here && g.now >= p.reportsAt {
			p.reportsAt += g.timing.ReportInterval
			g.apply(g.aggregator.Report(g.wall(), p.name, g.votes(p)))
		}
	}
	g.check()
}

func (g *degradedGame) votes(p *prober) (all []health.Vote) {
	lie := g.random.IntN(8)
	for _, j := range g.random.Perm(inGame) {
		v := health.Vote{Endpoint: health.EndpointID(j)}
		v.Status, v.HTTPStatusCode = p.hosts[j].vote(p.release)
		if p.lies {
			switch lie {
			case 0, 1, 2:
				v.Status, v.HTTPStatusCode = health.Healthy, 200
			case 3, 4:
				v.Status, v.HTTPStatusCode = health.Unhealthy, 200
			case 5:
				v.Status, v.HTTPStatusCode = health.Timeout, 0
			case 6:
				v.Status, v.HTTPStatusCode = health.Unhealthy, 0
			}
		}
		all = append(all, v)
	}
	return all
}

// up reports whether probes of an endpoint pass, and whether it is degraded.
func (g *degradedGame) up(i int) (up, degraded bool) {
	switch g.truth[i] {
	case passes:
		return true, false
	case degrades:
		return true, true
	case fails:
		return g.expected.Has(503), false
	}
	return false, false
}

// pipeline is how long it takes until what an endpoint answers is reported, and no more than that.
func (g *degradedGame) pipeline() time.Duration {
	rounds := time.Duration(max(g.timing.UnhealthyThreshold, g.timing.HealthyThreshold) + 1)
	return rounds*(g.timing.Interval+g.timing.Timeout) + 2*g.timing.ReportInterval
}

// settles is how long it takes until verdicts follow, once nothing happens any more: two
// wait budgets, and a recovery.
func (g *degradedGame) settles() time.Duration { return 2 * (g.pipeline()*2 + 15*time.Second) }

// seesDegraded reports how many checkers can tell that an endpoint is degraded, and how many not.
func (g *degradedGame) seesDegraded() (can, cannot int) {
	for _, p := range g.probers {
		switch {
		case p.lies:
		case p.release == codeFresh:
			can++
		default:
			cannot++
		}
	}
	return can, cannot
}

// side returns the side that the honest checkers come to see; ok is false where they may not agree.
func (g *degradedGame) side(i int) (up, ok bool) {
	up, degraded := g.up(i)
	can, cannot := g.seesDegraded()
	if degraded && can > 0 && cannot > 0 {
		return false, false
	}
	return up && !(degraded && can == 0), true
}

func (g *degradedGame) apply(e aggregate.Effects) {
	for _, c := range e.Changes {
		i := int(c.Endpoint)
		before := g.verdicts[i]
		g.verdicts[i] = health.Verdict{Status: c.To, Since: g.wall()}
		if c.To == health.Degraded && !g.liar && g.now-max(g.degraded[i], g.disturbed) > g.settles() {
			g.t.Fatalf("at %s %d, which last was degraded at %s, becomes %s: %s", g.now, i, g.degraded[i], c.To, c.Reason)
		}
		up, ok := g.side(i)
		if !ok && g.liar || g.now-g.changed[i] <= g.pipeline() {
			continue
		}
		calm := g.now-g.disturbed > g.settles() && g.now-g.changed[i] > g.settles()
		if calm && (!g.liar || ok && before.Status.Up() != c.To.Up()) && g.allHere() { // a liar may choose between names of one side
			g.t.Fatalf("at %s %d changes from %s to %s although nothing happens: %s", g.now, i, before.Status, c.To, c.Reason)
		}
		if ok && !g.liar && (c.To.Up() && !up || c.To.Down() && up) {
			g.t.Fatalf("at %s %d, which answers %d since %s, becomes %s: %s", g.now, i, g.truth[i], g.changed[i], c.To, c.Reason)
		}
	}
}

func (g *degradedGame) allHere() bool {
	for _, p := range g.probers {
		if !p.here {
			return false
		}
	}
	return true
}

// check checks that verdicts are true when nothing has happened for long enough.
func (g *degradedGame) check() {
	if !g.allHere() || g.now-g.disturbed <= g.settles() {
		return
	}
	for i, v := range g.verdicts {
		up, ok := g.side(i)
		if g.now-g.changed[i] <= g.settles() || !ok {
			continue
		}
		if v.Status.Up() != up || v.Status.Down() == up {
			g.t.Fatalf("at %s %d, which answers %d since %s, is %s: %s", g.now, i, g.truth[i], g.changed[i], v.Status, g.aggregator.Verdict(health.EndpointID(i)).Reason)
		}
	}
}

func (g *degradedGame) play() {
	for range g.events {
		wait := g.within(6 * time.Second)
		if g.random.IntN(3) == 0 {
			wait += g.settles()
		}
		for end := g.now + wait; g.now < end; {
			g.step()
		}
		g.event()
	}
	for _, p := range g.probers {
		if !p.here {
			g.connect(p)
		}
	}
	for end := g.now + g.settles() + 30*time.Second; g.now < end; {
		g.step()
	}
}

// TestVerdictsOfDegradedEndpoints: whatever happens to checkers, hdsd and the check, no endpoint
// whose probes pass goes down, and none whose probes fail comes up, where checkers are honest.
// None becomes DEGRADED that has not answered so, as it does while it recovers.
// One liar of three changes nothing that the others agree on. When nothing happens any more,
// verdicts are true and stay.
func TestVerdictsOfDegradedEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := degradedGameOf{
			seed: rapid.Uint64().Draw(t, "seed"), liar: rapid.Bool().Draw(t, "liar"), zones: rapid.IntRange(1, 3).Draw(t, "zones"),
			healthyThreshold: rapid.Uint32Range(1, 3).Draw(t, "healthy threshold"), events: rapid.IntRange(0, 12).Draw(t, "events"),
		}
		for i := range of.releases {
			of.releases[i] = release(rapid.IntRange(0, int(releases)-1).Draw(t, "release"))
		}
		newDegradedGame(t, of).play()
	})
}
