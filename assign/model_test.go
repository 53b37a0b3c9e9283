package assign_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"hdsd/assign"
	"hdsd/health"

	"pgregory.net/rapid"
)

// classes are what the model's endpoints can want.
var classes = []assign.Class{
	{},
	{Needs: []health.Ability{health.HTTP}},
	{Needs: []health.Ability{health.Redis, health.TCP}},
	{Reach: &health.Reach{Localities: []health.Locality{zoneName(0), zoneName(1)}}},
	{Needs: []health.Ability{health.HTTP}, Reach: &health.Reach{Metadata: map[string]string{"vpc": "blue"}}},
	{Withheld: true},
}

// member is the model's checker.
type member struct {
	health.Checker
	live    bool
	held    bool // and live
	doubted bool // and so not live
	blind   bool // the same
}

// model is the oracle of a Planner: the inputs, and a mirror of the
// plan that is kept by Diffs.
type model struct {
	random    *rand.Rand
	planner   *assign.Planner
	shuffled  *assign.Planner // gets the same in another order
	renamed   *assign.Planner // numbers endpoints and classes otherwise
	ids       []assign.ClassID
	renamedID []assign.ClassID
	endpoints map[health.EndpointID]assign.Endpoint
	fleet     map[string]*member
	mirror    mirror
	bare      map[health.EndpointID]bool
	settling  bool
	next      int
}

func newModel(t *rapid.T) *model {
	o := assign.Options{
		Unit:  rapid.SampledFrom([]int{1, 8, 256}).Draw(t, "unit"),
		Looks: rapid.SampledFrom([]int{0, 1}).Draw(t, "looks"),
	}
	m := &model{
		random:    rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		planner:   assign.New(o),
		shuffled:  assign.New(o),
		renamed:   assign.New(o),
		endpoints: map[health.EndpointID]assign.Endpoint{},
		fleet:     map[string]*member{},
		mirror:    mirror{},
		bare:      map[health.EndpointID]bool{},
		renamedID: make([]assign.ClassID, len(classes)),
	}
	for i := range classes {
		m.ids = append(m.ids, m.planner.Class(classes[i]))
		m.shuffled.Class(classes[i])
	}
	for i := len(classes) - 1; i >= 0; i-- {
		m.renamedID[i] = m.renamed.Class(classes[i])
	}
	return m
}

const mostEndpoints = 4000

// apply changes all three planners, and checks what can be checked at once.
func (m *model) apply(t *rapid.T, ch assign.Change) assign.Diff {
	ch.Settling = m.settling
	diff := m.planner.Apply(ch)
	if err := m.mirror.apply(diff); err != nil {
		t.Fatal(err)
	}
	for _, move := range diff.Moves {
		// Endpoints of one unit share its seats, so new and changed ones may get those of a held checker.
		if len(ch.Upsert) == 0 && m.fleet[move.Checker] != nil && m.fleet[move.Checker].held && len(move.Add) > 0 {
			t.Fatalf("%s is held and gets %d", move.Checker, move.Add)
		}
	}
	for _, u := range diff.Uncheckable {
		m.bare[u.Endpoint] = true
	}
	for _, id := range diff.Checkable {
		if !m.bare[id] {
			t.Fatalf("%d is told to be checkable again, and was", id)
		}
		delete(m.bare, id)
	}
	other := ch
	other.Upsert, other.Remove = m.shuffle(ch.Upsert), shuffle(m, ch.Remove)
	other.Join, other.Lost, other.Leave = shuffle(m, ch.Join), shuffle(m, ch.Lost), shuffle(m, ch.Leave)
	other.Doubted, other.Blind = shuffle(m, ch.Doubted), shuffle(m, ch.Blind)
	other.Held = shuffle(m, ch.Held)
	if d := m.shuffled.Apply(other); !reflect.DeepEqual(d, diff) {
		t.Fatalf("another order gives another plan: %s", firstDifference(d, diff))
	}
	rename := func(id health.EndpointID) health.EndpointID { return mostEndpoints - id }
	other.Upsert = m.shuffle(ch.Upsert)
	for i := range other.Upsert {
		e := &other.Upsert[i]
		e.ID, e.Class = rename(e.ID), m.renamedID[e.Class]
	}
	other.Remove = nil
	for _, id := range ch.Remove {
		other.Remove = append(other.Remove, rename(id))
	}
	if m.renamed.Apply(other); m.renamed.Digest() != m.planner.Digest() {
		t.Fatal("other numbers give another plan")
	}
	return diff
}

func shuffle[T any](m *model, list []T) []T {
	list = slices.Clone(list)
	m.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (m *model) shuffle(list []assign.Endpoint) []assign.Endpoint { return shuffle(m, list) }

// able are the checkers that are live and not held, and can check an endpoint.
func (m *model) able(e assign.Endpoint) []*member {
	var able []*member
	for _, id := range slices.Sorted(maps.Keys(m.fleet)) {
		if c := m.fleet[id]; c.live && !c.held && m.can(c, e) {
			able = append(able, c)
		}
	}
	return able
}

func (m *model) can(c *member, e assign.Endpoint) bool {
	class := classes[e.Class]
	if e.Zones == assign.OwnOnly && c.Locality.Zone != e.Locality.Zone {
		return false
	}
	return !class.Withheld && c.Abilities.Has(class.Needs...) && class.Reach.Includes(&c.Checker)
}

// check compares the plan with the guarantees.
func (m *model) check(t *rapid.T) {
	m.checkQueries(t)
	if m.settling {
		return
	}
	type want struct {
		class assign.ClassID
		only  string
		rate  int64
	}
	cache := map[want][]*member{}
	for id, e := range m.endpoints {
		w := want{class: e.Class, rate: e.Rate}
		if e.Zones == assign.OwnOnly {
			w.only = e.Locality.Zone
		}
		if _, ok := cache[w]; !ok {
			cache[w] = m.able(e)
		}
		if err := m.checkEndpoint(e, m.planner.Checkers(id), cache[w]); err != nil {
			t.Fatalf("endpoint %d (class %d, zone %q, %d wanted): %v", id, e.Class, e.Locality.Zone, e.Redundancy, err)
		}
	}
}

func (m *model) checkQueries(t *rapid.T) {
	count := 0
	for id, c := range m.fleet {
		if rate := m.planner.Checker(id).Rate; !m.settling && c.MaxChecksPerSecond > 0 && rate > int64(c.MaxChecksPerSecond*1000) {
			t.Fatalf("%s does %d checks in 1,000 seconds, its ceiling is %g a second", id, rate, c.MaxChecksPerSecond)
		}
		n := 0
		for e := range m.planner.Endpoints(id) {
			if n++; !m.mirror[id][e] {
				t.Fatalf("%s checks %d, but no Diff said so", id, e)
			}
		}
		if n != len(m.mirror[id]) || n != m.planner.Load(id) {
			t.Fatalf("%s checks %d endpoints, its load is %d, Diffs said %d", id, n, m.planner.Load(id), len(m.mirror[id]))
		}
		count += n
	}
	for id, has := range m.mirror {
		if m.fleet[id] == nil && len(has) > 0 {
			t.Fatalf("%s has left with %d endpoints", id, len(has))
		}
	}
	for id := range m.endpoints {
		count -= len(m.planner.Checkers(id))
	}
	if count != 0 {
		t.Fatalf("checkers have %d endpoints more than endpoints have checkers", count)
	}
	if st := m.planner.Stats(); st.Endpoints != len(m.endpoints) || st.Checkers != len(m.fleet) {
		t.Fatalf("%+v, of %d endpoints and %d checkers", st, len(m.endpoints), len(m.fleet))
	}
}

func (m *model) checkEndpoint(e assign.Endpoint, checkers []string, able []*member) error {
	zones, live, held, kept, lost, blind := map[string]int{}, 0, 0, 0, 0, 0
	for _, id := range checkers {
		c := m.fleet[id]
		if !m.can(c, e) {
			return fmt.Errorf("%s cannot check it", id)
		}
		if c.live {
			live++
		} else {
			kept++
		}
		if c.held {
			held++
		}
		if !c.live && !c.doubted {
			lost++
		}
		if c.blind {
			blind++
		}
		zones[c.Locality.Zone]++
	}
	wanted := max(e.Redundancy, 1)
	fewest := max(min(2, wanted), wanted-lost, blind+1)
	able = slices.DeleteFunc(slices.Clone(able), func(c *member) bool { return !slices.Contains(checkers, c.ID) && !m.room(c, e.Rate) })
	if missing, why := m.planner.Shortage(e.ID); missing > 0 && why != m.reason(e, checkers) || missing == 0 && why != assign.Enough || missing != max(wanted-len(checkers)+m.extra(e, checkers), 0) {
		return fmt.Errorf("%v: %d missing for reason %d", checkers, missing, why)
	}
	switch {
	case len(checkers) != len(slices.Compact(slices.Clone(checkers))):
		return fmt.Errorf("%v: one twice", checkers)
	case len(checkers) < wanted && live-held < len(able):
		return fmt.Errorf("%v: too few, %d are able", checkers, len(able))
	case live > fewest:
		return fmt.Errorf("%v: too many, %d are live", checkers, live)
	case live < min(fewest, held+len(able)):
		return fmt.Errorf("%v: only %d are live", checkers, live)
	case (len(checkers) == 0) != m.bare[e.ID]:
		return fmt.Errorf("%v: told to be uncheckable: %v", checkers, m.bare[e.ID])
	case len(checkers) == 0 && m.overlooked(e):
		return errors.New("nobody checks it, and one that is blind could")
	case kept+held > 0:
		return nil // the seats that are kept have their own zones
	case e.Zones == assign.Anywhere:
		return nil
	}
	if e.Zones == assign.OwnFirst && slices.ContainsFunc(checkers, func(id string) bool { return m.fleet[id].Locality.Zone != e.Locality.Zone }) {
		for _, c := range able {
			if c.Locality.Zone == e.Locality.Zone && !slices.Contains(checkers, c.ID) && c.MaxChecksPerSecond == 0 {
				return fmt.Errorf("%v are in %v, and %s would be in its own zone", checkers, zones, c.ID)
			}
		}
	}
	if e.Zones == assign.OwnFirst || e.Zones == assign.OwnOnly {
		return nil
	}
	twice := slices.Max(append(slices.Collect(maps.Values(zones)), 0)) > 1
	for _, c := range able {
		if z := c.Locality.Zone; c.MaxChecksPerSecond == 0 && zones[z] == 0 && (twice || z == e.Locality.Zone) {
			return fmt.Errorf("%v are in %v, and %s would be in %q", checkers, zones, c.ID, z)
		}
	}
	return nil
}

// overlooked tells whether a blind checker could check an endpoint.
func (m *model) overlooked(e assign.Endpoint) bool {
	for _, c := range m.fleet {
		if c.blind && !c.doubted && c.MaxChecksPerSecond == 0 && m.can(c, e) {
			return true
		}
	}
	return false
}

// reason is why an endpoint has no more checkers.
func (m *model) reason(e assign.Endpoint, checkers []string) assign.Reason {
	why := assign.NoOthers
	for id, c := range m.fleet {
		if !c.live || c.held || slices.Contains(checkers, id) {
			continue
		}
		anywhere := e
		anywhere.Zones = assign.Anywhere
		switch {
		case m.can(c, e):
			return assign.NoRoom
		case m.can(c, anywhere):
			why = assign.TooFar
		case why == assign.NoOthers:
			why = assign.TooFew
		}
	}
	return why
}

// room tells whether a checker can do so much more.
func (m *model) room(c *member, rate int64) bool {
	return c.MaxChecksPerSecond == 0 || rate == 0 || m.planner.Checker(c.ID).Rate+rate <= int64(c.MaxChecksPerSecond*1000)
}

// extra is how many of an endpoint's checkers are substitutes, if that can be
// told: none where all of them are live.
func (m *model) extra(e assign.Endpoint, checkers []string) int {
	missing, _ := m.planner.Shortage(e.ID)
	if slices.ContainsFunc(checkers, func(id string) bool { return !m.fleet[id].live }) {
		return missing - max(e.Redundancy, 1) + len(checkers)
	}
	return 0
}

// firstDifference says where two Diffs part, as far as Moves go.
func firstDifference(a, b assign.Diff) string {
	for i := range min(len(a.Moves), len(b.Moves)) {
		if !reflect.DeepEqual(a.Moves[i], b.Moves[i]) {
			return fmt.Sprintf("%v instead of %v", a.Moves[i], b.Moves[i])
		}
	}
	return fmt.Sprintf("%d instead of %d moves, or uncheckable endpoints", len(a.Moves), len(b.Moves))
}
