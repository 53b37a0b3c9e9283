package sim

import (
	"hdsd/test/sim/truth"
)

// Times of a run, in steps: start and end of the trouble, end of the run.
const (
	begin = 20 * round
	until = 40 * round
	end   = 60 * round
)

var trouble = truth.Span{From: begin, To: until}

// deadZone is the zone of scenarios that concern one zone.
const deadZone = 2

// Scenario is something that can go wrong.
type Scenario struct {
	Name, What string
	start      func(*fleet)
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return append([]Scenario{
		{"nothing wrong", "only what every scenario has: noise, lost and late reports, outages", func(*fleet) {}},
		{"reports in time", "the same, with no report lost or late", func(f *fleet) { f.Late, f.Lost = 0, 0 }},
		{"1 % cut off", "one in a hundred checkers reaches nothing", func(f *fleet) { f.cutOff(f.Observers / 100) }},
		{"5 % cut off", "one in twenty checkers reaches nothing", func(f *fleet) { f.cutOff(f.Observers / 20) }},
		{"20 % cut off", "one in five checkers reaches nothing", func(f *fleet) { f.cutOff(f.Observers / 5) }},
		{"zone partition", "one zone and the others do not reach each other; each endpoint has one checker in its own zone", (*fleet).partition},
		{"zone dead", "every endpoint of one zone is down, and its checkers are gone", func(f *fleet) { f.failZone(); f.loseZone() }},
		{"zone dead, checkers not", "every endpoint of one zone is down, its checkers go on", (*fleet).failZone},
		{"5 % stuck up", "one in twenty checkers takes every probe for a success, from the start", (*fleet).stick},
		{"flapping", "one in twenty endpoints is down for four rounds, up for four, and so on", (*fleet).flap},
		{"mass failure", "every endpoint of the largest cluster, one in fifty of all, is down", (*fleet).failCluster},
		{"brown-out", "20 % of all probes fail", func(f *fleet) { f.world.Brown(0.2, trouble) }},
		{"10 % just moved", "one in ten checkers gives its seat up at once, in the midst of the outages", (*fleet).move},
		{"rolling restart", "all checkers restart, one in forty a round; each is back after two rounds and says UNHEALTHY until it has probed", (*fleet).roll},
		{"all restart at once", "the same in one moment, back after two to four rounds", (*fleet).restartAll},
		{"hdsd restart", "hdsd is gone for four rounds, in the midst of the outages; its checkers come back within two", (*fleet).restartCoordinator},
		{"partition and restarts", "a zone partition, while all checkers restart one after the other", func(f *fleet) { f.partition(); f.roll() }},
		{"reassignment storm", "every other round, one in fifty checkers gives its seat up, and returns eight rounds later", (*fleet).storm},
	}, liars()...)
}

// Outcome is the result of a run.
type Outcome struct {
	Moved      int      // added assignments, by the first rule
	Specifiers int      // sent specifiers, by the first rule
	Results    []Result // by rule
}

// Run plays a scenario by each rule, once for all rules with the same threshold. In
// each run, a share Size.Failing of the endpoints is truly down for twenty rounds.
// Their outages start within ten rounds of the trouble.
func (s Scenario) Run(size Size, seed uint64, rules []Rule) Outcome {
	outcome := Outcome{Results: make([]Result, len(rules))}
	for _, alike := range byThreshold(rules) {
		var some []Rule
		for _, i := range alike {
			some = append(some, rules[i])
		}
		f := s.play(size, seed, some)
		if alike[0] == 0 {
			outcome.Moved, outcome.Specifiers = f.moved, f.specifiers
		}
		for n, i := range alike {
			outcome.Results[i] = f.contenders[n].judge.result()
		}
	}
	return outcome
}

// byThreshold groups the indexes of rules by threshold.
func byThreshold(rules []Rule) map[int][]int {
	alike := map[int][]int{}
	for i := range rules {
		alike[rules[i].threshold()] = append(alike[rules[i].threshold()], i)
	}
	return alike
}

func (s Scenario) play(size Size, seed uint64, rules []Rule) *fleet {
	f := newFleet(size, seed, rules...)
	s.start(f)
	for range int(f.Failing * float64(f.Endpoints)) {
		if i := f.random.IntN(f.Endpoints); f.world.Sound(i) {
			from := begin + f.random.IntN(10*round)
			f.world.Fail(i, truth.Span{From: from, To: from + 20*round})
		}
	}
	f.run(end)
	return f
}

// cutOff keeps some of the checkers from reaching anything.
func (f *fleet) cutOff(count int) {
	for _, i := range f.random.Perm(f.Observers)[:count] {
		f.world.Cut(i, trouble)
	}
}

// partition keeps a zone and all others from reaching each other.
func (f *fleet) partition() {
	for zone := range f.Zones {
		if zone != deadZone {
			f.world.Wall(zone, deadZone, trouble)
			f.world.Wall(deadZone, zone, trouble)
		}
	}
}

func (f *fleet) failZone() {
	for i := range f.Endpoints {
		if f.Zone(i) == deadZone {
			f.world.Fail(i, trouble)
		}
	}
}

func (f *fleet) loseZone() {
	for _, o := range f.observers {
		if f.Zone(o.number) == deadZone {
			f.when(begin, func() { f.restart(o, until-begin) })
		}
	}
}

func (f *fleet) stick() {
	for _, i := range f.random.Perm(f.Observers)[:f.Observers/20] {
		f.world.Stick(i)
	}
}

func (f *fleet) flap() {
	const half = 4 * round
	for _, i := range f.random.Perm(f.Endpoints)[:f.Endpoints/20] {
		for from := begin + f.random.IntN(half); from < until; from += 2 * half {
			f.world.Fail(i, truth.Span{From: from, To: from + half})
		}
	}
}

func (f *fleet) failCluster() {
	for i := range f.list {
		if f.list[i].ClusterHash == f.list[0].ClusterHash {
			f.world.Fail(i, trouble)
		}
	}
}

func (f *fleet) move() {
	f.when(begin+5*round, func() { f.leave(f.random.Perm(f.Observers)[:f.Observers/10]) })
}

func (f *fleet) roll() {
	for i, n := range f.random.Perm(f.Observers) {
		f.when(settled+i*40/f.Observers*round, func() { f.restart(f.observers[n], absence*round) })
	}
}

func (f *fleet) restartAll() {
	for _, o := range f.observers {
		f.when(begin, func() { f.restart(o, absence*round+f.random.IntN(2*round)) })
	}
}

func (f *fleet) restartCoordinator() {
	f.when(begin+5*round, func() {
		plan := f.kill()
		f.when(begin+9*round, func() { f.revive(plan, 2*round) })
	})
}

func (f *fleet) storm() {
	for step := begin; step < until; step += 2 * round {
		f.when(step, func() {
			var some []int
			for _, n := range f.random.Perm(f.Observers) {
				if f.observers[n].running && len(some) < f.Observers/50 {
					some = append(some, n)
				}
			}
			f.leave(some)
			f.when(step+8*round, func() {
				for _, n := range some {
					f.observers[n].restart()
					f.observers[n].running = true
					f.connect(f.observers[n])
				}
			})
		})
	}
}
