package assign_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"hdsd/assign"
	"hdsd/health"

	"pgregory.net/rapid"
)

// TestHistories runs random histories against the model.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"upsert":  m.upsert,
			"update":  m.update,
			"remove":  m.remove,
			"join":    m.join,
			"lose":    m.lose,
			"hold":    m.hold,
			"doubt":   m.doubt,
			"blind":   m.overlook,
			"return":  m.comeBack,
			"change":  m.change,
			"leave":   m.leave,
			"several": m.several,
			"bounce":  m.bounce,
			"settle":  m.settle,
			"restart": m.restart,
		})
	})
}

func (m *model) newEndpoints(t *rapid.T) []assign.Endpoint {
	name := fmt.Sprintf("cluster-%d", rapid.IntRange(0, 40).Draw(t, "cluster"))
	class := m.ids[rapid.IntRange(0, len(classes)-1).Draw(t, "class")]
	redundancy := rapid.IntRange(0, 5).Draw(t, "redundancy")
	zones := rapid.IntRange(1, 5).Draw(t, "zones")
	rate := rapid.SampledFrom([]int64{0, 200, 1000}).Draw(t, "rate")
	place := rapid.SampledFrom([]assign.Placement{assign.Default, assign.Spread, assign.OwnOnly, assign.OwnFirst, assign.Anywhere}).Draw(t, "place")
	var list []assign.Endpoint
	for range rapid.SampledFrom([]int{1, 2, 30, 300}).Draw(t, "endpoints") {
		if m.next == mostEndpoints {
			break
		}
		e := health.Endpoint{Cluster: name, Locality: zoneName(m.next % zones), Address: fmt.Sprint(m.next)}
		list = append(list, assign.Endpoint{
			ID: health.EndpointID(m.next), Hash: e.Hash(), ClusterHash: health.ClusterHash(name),
			Locality: e.Locality, Class: class, Redundancy: redundancy, Rate: rate, Zones: place,
		})
		m.next++
	}
	for _, e := range list {
		m.endpoints[e.ID] = e
	}
	return list
}

func (m *model) upsert(t *rapid.T) { m.apply(t, assign.Change{Upsert: m.newEndpoints(t)}) }

// some draws a few of the known endpoints.
func (m *model) some(t *rapid.T) []health.EndpointID {
	ids := slices.Sorted(maps.Keys(m.endpoints))
	m.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(len(ids), rapid.SampledFrom([]int{1, 3, 200}).Draw(t, "some"))]
}

func (m *model) update(t *rapid.T) {
	var list []assign.Endpoint
	what := rapid.IntRange(0, 4).Draw(t, "what")
	for _, id := range m.some(t) {
		e := m.endpoints[id]
		switch what {
		case 0:
			e.Redundancy = m.random.IntN(6)
		case 1:
			e.Class = m.ids[m.random.IntN(len(m.ids))]
		case 2:
			e.Locality = zoneName(m.random.IntN(5))
		case 3:
			e.Rate = int64(m.random.IntN(3)) * 500
		case 4:
			e.Zones = assign.Placement(m.random.IntN(int(assign.Anywhere) + 1))
		}
		m.endpoints[id] = e
		list = append(list, e)
	}
	m.apply(t, assign.Change{Upsert: list})
}

func (m *model) remove(t *rapid.T) {
	ids := m.some(t)
	for _, id := range ids {
		delete(m.endpoints, id)
		delete(m.bare, id)
	}
	m.apply(t, assign.Change{Remove: ids})
}

func (m *model) draw(t *rapid.T, n int) health.Checker {
	c := checker(n, 5)
	c.Locality = zoneName(rapid.IntRange(0, 4).Draw(t, "zone"))
	c.Abilities = health.Abilities{}
	for _, a := range []health.Ability{health.HTTP, health.TCP, health.TCP, health.Redis} {
		if rapid.IntRange(0, 5).Draw(t, "able") > 0 {
			c.Abilities[a] = struct{}{}
		}
	}
	c.Weight = rapid.SampledFrom([]float64{0, 0, 0, 0.5, 3}).Draw(t, "weight")
	c.MaxChecksPerSecond = rapid.SampledFrom([]float64{0, 0, 0, 20, 300}).Draw(t, "ceiling")
	c.Metadata = map[string]string{"vpc": rapid.SampledFrom([]string{"blue", "green"}).Draw(t, "vpc")}
	return c
}

func (m *model) join(t *rapid.T) {
	var list []health.Checker
	for range rapid.IntRange(1, 6).Draw(t, "checkers") {
		c := m.draw(t, rapid.IntRange(0, 30).Draw(t, "name"))
		if m.fleet[c.ID] == nil {
			m.fleet[c.ID] = &member{Checker: c, live: true}
			list = append(list, c)
		}
	}
	m.apply(t, assign.Change{Join: list})
}

// pick draws a checker that has a seat, and says so if there is none.
func (m *model) pick(t *rapid.T, live bool) *member {
	var list []*member
	for _, id := range slices.Sorted(maps.Keys(m.fleet)) {
		if c := m.fleet[id]; c.live == live {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Skip("nobody is there")
	}
	return rapid.SampledFrom(list).Draw(t, "checker")
}

func (m *model) lose(t *rapid.T) {
	c := m.pick(t, true)
	c.live, c.held = false, false
	m.apply(t, assign.Change{Lost: []string{c.ID}})
}

// hold is of one that is live.
func (m *model) hold(t *rapid.T) {
	c := m.pick(t, true)
	c.held = true
	m.apply(t, assign.Change{Held: []string{c.ID}})
}

// doubt is of one that is live or lost.
func (m *model) doubt(t *rapid.T) {
	c := m.pick(t, rapid.Bool().Draw(t, "live"))
	c.live, c.held, c.doubted = false, false, true
	m.apply(t, assign.Change{Doubted: []string{c.ID}})
}

// overlook is of one that is live, lost or doubted.
func (m *model) overlook(t *rapid.T) {
	c := m.pick(t, rapid.Bool().Draw(t, "live"))
	c.live, c.held, c.blind = false, false, true
	m.apply(t, assign.Change{Blind: []string{c.ID}})
}

func (m *model) comeBack(t *rapid.T) {
	c := m.pick(t, rapid.Bool().Draw(t, "live")) // then it may be held
	c.live, c.held, c.doubted, c.blind = true, false, false, false
	m.apply(t, assign.Change{Join: []health.Checker{c.Checker}})
}

func (m *model) change(t *rapid.T) {
	c := m.pick(t, rapid.Bool().Draw(t, "live"))
	id := c.ID
	c.Checker = m.draw(t, 0)
	c.ID, c.live, c.held, c.doubted, c.blind = id, true, false, false, false
	m.apply(t, assign.Change{Join: []health.Checker{c.Checker}})
}

// whole tells whether all checkers are live and none is held, and nobody is a substitute or has a
// ceiling: at ceilings, units that were cut for a substitute may fit better after.
func (m *model) whole() bool {
	st := m.planner.Stats()
	limited := func(c *member) bool { return c.held || c.MaxChecksPerSecond > 0 }
	return st.Live == st.Checkers && st.Substitutes == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(m.fleet)), limited)
}

func (m *model) leave(t *rapid.T) {
	c := m.pick(t, rapid.Bool().Draw(t, "live"))
	delete(m.fleet, c.ID)
	m.apply(t, assign.Change{Leave: []string{c.ID}})
}

// several is much at once.
func (m *model) several(t *rapid.T) {
	ch := assign.Change{Upsert: m.newEndpoints(t)}
	for _, id := range m.some(t) {
		if _, isNew := slices.BinarySearchFunc(ch.Upsert, id, func(e assign.Endpoint, id health.EndpointID) int { return int(e.ID) - int(id) }); !isNew {
			delete(m.endpoints, id)
			delete(m.bare, id)
			ch.Remove = append(ch.Remove, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.fleet)) {
		c := m.fleet[id]
		switch m.random.IntN(9) {
		case 0:
			delete(m.fleet, id)
			ch.Leave = append(ch.Leave, id)
		case 1:
			c.live, c.held = false, false // one that is doubted stays so
			ch.Lost = append(ch.Lost, id)
		case 2:
			c.live, c.held, c.doubted, c.blind = true, false, false, false
			ch.Join = append(ch.Join, c.Checker)
		case 3: // leaves and joins at once
			ch.Leave = append(ch.Leave, id)
			c.live, c.held, c.doubted, c.blind = true, false, false, false
			ch.Join = append(ch.Join, c.Checker)
		case 4:
			c.live, c.held, c.doubted = false, false, true
			ch.Doubted = append(ch.Doubted, id)
		case 5: // comes back, and is blind as before
			c.live, c.held, c.doubted, c.blind = false, false, false, true
			ch.Join, ch.Blind = append(ch.Join, c.Checker), append(ch.Blind, id)
		case 6: // means nothing for one that is not live
			c.held = c.live
			ch.Held = append(ch.Held, id)
		}
	}
	m.apply(t, ch)
}

func (m *model) bounce(t *rapid.T) {
	c := m.pick(t, true)
	whole, before := m.whole(), m.planner.Digest()
	how := rapid.SampledFrom([]assign.Change{
		{Doubted: []string{c.ID}}, {Lost: []string{c.ID}}, {Blind: []string{c.ID}}, {Held: []string{c.ID}},
	}).Draw(t, "how")
	c.held = len(how.Held) > 0
	m.apply(t, how)
	c.held = false
	m.apply(t, assign.Change{Join: []health.Checker{c.Checker}})
	if whole && m.planner.Digest() != before {
		t.Fatalf("%s came back to another plan", c.ID)
	}
}

func (m *model) settle(t *rapid.T) {
	m.settling = !m.settling
	m.apply(t, assign.Change{})
}

// restart goes on with new planners that have nothing but the stored plan.
func (m *model) restart(t *rapid.T) {
	if m.settling || !m.whole() {
		t.Skip("this is not where it could go on")
	}
	plan, digest := m.planner.Plan(), m.planner.Digest()
	again := newModel(t)
	again.endpoints, again.fleet, again.next = m.endpoints, m.fleet, m.next
	for _, p := range []*assign.Planner{again.planner, again.shuffled, again.renamed} {
		p.Restore(plan)
	}
	again.settling = true
	var all []assign.Endpoint
	for _, id := range slices.Sorted(maps.Keys(m.endpoints)) {
		all = append(all, m.endpoints[id])
	}
	again.apply(t, assign.Change{Upsert: all})
	if again.planner.Digest() != digest {
		t.Fatal("the stored plan is another one")
	}
	for _, c := range shuffle(m, slices.Sorted(maps.Keys(m.fleet))) {
		again.apply(t, assign.Change{Join: []health.Checker{m.fleet[c].Checker}})
	}
	again.settling = false
	if again.apply(t, assign.Change{}); again.planner.Digest() != digest {
		t.Fatal("a restart moves something")
	}
	*m = *again
}
