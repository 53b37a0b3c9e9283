package assign_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"
)

// motley is a small fleet where weights, abilities, reach, ceilings and zone
// policies meet, with endpoints for it.
type motley struct {
	random  *rand.Rand
	planner *assign.Planner
	classes []assign.Class
	fleet   []health.Checker
	all     []assign.Endpoint
	zones   int
	light   bool    // some weigh next to nothing
	ceiling float64 // about what a checker has to do; 0 if none has a ceiling
}

func newMotley(seed uint64, ceilings, light bool) *motley {
	m := &motley{random: rand.New(rand.NewPCG(seed, 7)), planner: assign.New(assign.Options{}), light: light}
	blue, green := map[string]string{"vpc": "blue"}, map[string]string{"vpc": "green"}
	m.classes = []assign.Class{
		{}, {Needs: []health.Ability{health.Redis}}, {Reach: &health.Reach{Metadata: blue}},
		{Reach: &health.Reach{Localities: []health.Locality{zoneName(0), zoneName(1)}}},
		{Needs: []health.Ability{health.Redis}, Reach: &health.Reach{Metadata: green}},
	}
	for _, c := range m.classes {
		m.planner.Class(c)
	}
	m.zones = 1 + m.random.IntN(5)
	checkers := 4 + m.random.IntN(20)
	count := checkers * (20 + m.random.IntN(150))
	m.all = cost(endpoints(count, m.zones, 0, 1+m.random.IntN(3)), 1)
	if ceilings {
		m.ceiling = float64(count*m.all[0].Redundancy) / float64(checkers)
	}
	special, places := uint64(2*m.random.IntN(4)), m.random.IntN(2) == 0
	for i := range m.all {
		h := uint64(m.all[i].ClusterHash)
		if h%16 < special {
			m.all[i].Class = assign.ClassID(1 + h>>8%4)
		}
		if places {
			m.all[i].Zones = []assign.Placement{assign.Spread, assign.Spread, assign.Anywhere, assign.OwnFirst, assign.OwnOnly}[h>>16%5]
		}
	}
	for range checkers {
		m.fleet = append(m.fleet, m.checker())
	}
	m.planner.Apply(assign.Change{Upsert: m.all, Join: m.fleet})
	return m
}

func (m *motley) weight() float64 {
	all := []float64{0, 0, 0, 0, 0.5, 2, 4}
	if m.light {
		all = append(all, 0.01, 0.01, 0.01)
	}
	return all[m.random.IntN(len(all))]
}

func (m *motley) most() float64 {
	if m.ceiling == 0 || m.random.IntN(3) > 0 {
		return 0
	}
	return m.ceiling * (0.5 + 1.5*m.random.Float64())
}

// checker makes the next one.
func (m *motley) checker() health.Checker {
	c := checker(m.random.IntN(1e9), 1)
	c.Locality, c.Weight, c.MaxChecksPerSecond = zoneName(len(m.fleet)%m.zones), m.weight(), m.most()
	if m.random.IntN(4) == 0 {
		c.Abilities = health.Abilities{health.HTTP: {}, health.TCP: {}, health.Redis: {}}
	}
	c.Metadata = map[string]string{"vpc": []string{"blue", "green"}[m.random.IntN(2)]}
	return c
}

// change changes the fleet at random.
func (m *motley) change() string {
	i := m.random.IntN(len(m.fleet))
	switch m.random.IntN(4) {
	case 0:
		m.fleet[i].Weight = m.weight()
		m.planner.Apply(assign.Change{Join: m.fleet[i : i+1]})
		return "another weight"
	case 1:
		m.fleet[i].MaxChecksPerSecond = m.most()
		m.planner.Apply(assign.Change{Join: m.fleet[i : i+1]})
		return "another ceiling"
	case 2:
		m.fleet = append(m.fleet, m.checker())
		m.planner.Apply(assign.Change{Join: m.fleet[len(m.fleet)-1:]})
		return "one joined"
	}
	m.planner.Apply(assign.Change{Leave: names(m.fleet[i : i+1])})
	m.fleet = slices.Delete(m.fleet, i, i+1)
	return "one left"
}

// worst is the highest load of a checker relative to the most even plan, one endpoint
// not counted; 0 where ceilings leave too little room.
func (m *motley) worst() (worst float64) {
	for i, share := range fairOf(m.classes, m.all, m.fleet).shares() {
		if n := m.planner.Load(m.fleet[i].ID); n > 1 {
			worst = max(worst, float64(n-1)/share)
		}
	}
	return worst
}

// TestMotley holds fleets of all kinds to the bound, cold and after changes.
func TestMotley(t *testing.T) {
	seeds, worst := uint64(40), 0.0
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		m := newMotley(seed, seed%2 == 1, false)
		when := "cold"
		for range 8 {
			is := m.worst()
			worst = max(worst, is)
			if is > 1.12 {
				t.Errorf("fleet %d, %s: %.3f times what it should have", seed, when, is)
			}
			when = m.change()
		}
	}
	t.Logf("at worst %.3f times", worst)
}

// TestLightCheckers gives some checkers a share below one endpoint: no chain ends at
// them, and others are relieved nevertheless.
func TestLightCheckers(t *testing.T) {
	for seed := range uint64(15) {
		m := newMotley(seed, false, true)
		when := "cold"
		for range 6 {
			for i, share := range fairOf(m.classes, m.all, m.fleet).shares() {
				if n := m.planner.Load(m.fleet[i].ID); float64(n) > 1.12*share+2 { // each share is rounded up, and so is the slack
					t.Errorf("fleet %d, %s: a checker has %d and should have %.1f", seed, when, n, share)
				}
			}
			when = m.change()
		}
	}
}
