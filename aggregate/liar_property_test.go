package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// liarGame is a fleet in which one checker reports whatever it likes, and may leave and
// come back. Each endpoint has it and two honest checkers, which may all be anywhere.
type liarGame struct {
	t          rapid.TB
	random     *rand.Rand
	aggregator *aggregate.Aggregator
	fails      []span // by endpoint: when it is down, in milliseconds
	honest     []honestChecker
	lies       []health.Vote
	down       []bool // by endpoint: as the changes say
	away       bool
}

type span struct{ from, to int }

type honestChecker struct {
	name string
	sees map[int]int // by endpoint: how much later it sees a change
	said map[int]health.Status
}

const (
	played = 60          // endpoints
	notice = 2500        // by when a change is seen and reported, in milliseconds
	patent = 10*1000 + 1 // by when an outage that is seen must be published
)

// liarGameOf is what one game differs from others in.
type liarGameOf struct {
	seed          uint64
	zones, honest int
	together      bool // all endpoints fail at once
}

func newLiarGame(t rapid.TB, of liarGameOf) *liarGame {
	g := &liarGame{t: t, random: rand.New(rand.NewPCG(of.seed, 5)), aggregator: aggregate.New(aggregate.Options{}), down: make([]bool, played)}
	zones := []string{"a", "b", "c"}[:of.zones]
	locality := func() health.Locality { return health.Locality{Zone: zones[g.random.IntN(len(zones))]} }
	g.aggregator.Connected(epoch, health.Checker{ID: "liar", Locality: locality()})
	for i := range of.honest {
		g.honest = append(g.honest, honestChecker{fmt.Sprint("h", i), map[int]int{}, map[int]health.Status{}})
		g.aggregator.Connected(epoch, health.Checker{ID: g.honest[i].name, Locality: locality()})
	}
	for i := range played {
		id := health.EndpointID(i)
		g.aggregator.Set(aggregate.Endpoint{ID: id, Timing: usual, Zone: locality(), Cluster: fmt.Sprint(i % 3)}, health.Verdict{Status: health.Healthy, Since: epoch})
		g.aggregator.Assign(epoch, id, "liar")
		g.lies = append(g.lies, health.Vote{Endpoint: id})
		for _, h := range g.random.Perm(len(g.honest))[:2] {
			g.aggregator.Assign(epoch, id, g.honest[h].name)
			g.honest[h].sees[i] = 1000 + g.random.IntN(500)
		}
		from := 15_000
		if !of.together {
			from += g.random.IntN(30_000)
		}
		g.fails = append(g.fails, span{from, from + 15_000 + g.random.IntN(20_000)})
	}
	return g
}

func (s span) holds(at int) bool { return s.from <= at && at < s.to }

// lie changes some of the votes of the liar, or all in the same way.
func (g *liarGame) lie() []health.Vote {
	says := []health.Status{health.Healthy, health.Healthy, health.Timeout, health.Unhealthy, health.Degraded, health.Unknown}
	status, all := says[g.random.IntN(len(says))], g.random.IntN(4) == 0
	for i := range g.lies {
		if !all && g.random.IntN(4) > 0 {
			continue
		}
		if !all {
			status = says[g.random.IntN(len(says))]
		}
		g.lies[i].Status, g.lies[i].HTTPStatusCode = status, []uint16{0, 0, 200, 503}[g.random.IntN(4)]
	}
	return slices.Clone(g.lies)
}

func (g *liarGame) play() {
	stays := 1 + g.random.IntN(20) // rounds until it changes its mind
	for at := 0; at < 90_000; at += 100 {
		now := epoch.Add(time.Duration(at) * time.Millisecond)
		g.check(at, g.aggregator.Tick(now))
		if at%1000 == 0 && !g.away {
			votes := []health.Vote(nil)
			if at == 0 || g.random.IntN(stays) == 0 {
				votes = g.lie()
			}
			g.check(at, g.aggregator.Report(now, "liar", votes))
		}
		if at > 5000 && g.random.IntN(100) == 0 {
			if g.away = !g.away; g.away {
				g.aggregator.Lost("liar")
			} else {
				g.aggregator.Connected(now, health.Checker{ID: "liar", Locality: health.Locality{Zone: "a"}})
			}
		}
		for i, h := range g.honest {
			if at%1000 == 100*i+100 {
				g.check(at, g.aggregator.Report(now, h.name, g.votes(at, h)))
			}
		}
	}
}

func (g *liarGame) votes(at int, h honestChecker) (votes []health.Vote) {
	for i := range played {
		late, seated := h.sees[i]
		status := health.Healthy
		if g.fails[i].holds(at - late) {
			status = health.Timeout
		}
		if seated && h.said[i] != status {
			h.said[i] = status
			votes = append(votes, health.Vote{Endpoint: health.EndpointID(i), Status: status})
		}
	}
	return votes
}

func (g *liarGame) check(at int, effects aggregate.Effects) {
	for _, c := range effects.Changes {
		i := int(c.Endpoint)
		g.down[i] = c.To.Down()
		switch fails := g.fails[i]; {
		case c.To.Down() && (at < fails.from || at > fails.to+notice):
			g.t.Fatalf("at %d endpoint %d, which is down from %d to %d, went down: %s", at, i, fails.from, fails.to, c.Reason)
		case c.From.Down() && c.To.Up() && at > fails.from+notice && at < fails.to:
			g.t.Fatalf("at %d endpoint %d, which is down from %d to %d, came up: %s", at, i, fails.from, fails.to, c.Reason)
		}
	}
	for i, fails := range g.fails {
		if !g.down[i] && at > fails.from+notice+patent && at < fails.to {
			v := g.aggregator.Verdict(health.EndpointID(i))
			g.t.Fatalf("at %d endpoint %d, which is down from %d to %d, is %s: %s", at, i, fails.from, fails.to, v.Status, v.Reason)
		}
	}
}

// TestOneCheckerDecidesNothing: one checker, whatever it reports, changes no verdict
// against two others, and holds no outage that they see for longer than 10 rounds.
func TestOneCheckerDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newLiarGame(t, liarGameOf{
			rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "zones"), rapid.IntRange(2, 6).Draw(t, "honest"), rapid.Bool().Draw(t, "all fail at once"),
		}).play()
	})
}

// TestGamesThatALiarWon, once: by downs that took the others' votes over its path away, and by
// a wait for its first report before it contradicted them.
func TestGamesThatALiarWon(t *testing.T) {
	for name, of := range map[string]liarGameOf{
		"by downs":   {0x63e, 2, 6, false},
		"by waiting": {0xc47caec, 2, 2, true},
	} {
		t.Run(name, func(t *testing.T) { newLiarGame(t, of).play() })
	}
}
