package quota

import "math"

const none = -1

// Kind holds the common properties of a cohort's checkers.
type Kind struct {
	Zone int32
	Capacity
	Classes string // classes that they can serve, one bit each
}

// serves reports whether checkers of a kind can serve a class.
func (k *Kind) serves(class uint32) bool {
	return int(class/8) < len(k.Classes) && k.Classes[class/8]>>(class%8)&1 == 1
}

// cohort holds the checkers of a kind.
type cohort struct {
	Kind
	checkers int64
}

// mass returns the total weight of the checkers.
func (c *cohort) mass() int64 { return c.checkers * c.Weight }

// Level names a quota.
type Level int

// The quotas of a checker, in ascending order.
const (
	Share  Level = iota // its fair share
	Limit               // a checker gets seats up to this while others have room
	Bound               // newcomers take from checkers above this first
	Breach              // a checker above this sheds seats
	levels
	Any // no quota
)

// quota is the number of checks for a checker of full weight, in 256ths.
type quota int64

const quotaBits = 8

// Table holds quotas. Make one with NewTable.
type Table struct {
	cohorts []cohort
	ids     map[Kind]int32
	cohort  []int32         // by slot; none if the slot has no cohort
	weight  []int64         // by slot
	quotas  [levels][]quota // by cohort
}

// NewTable makes a Table without checkers.
func NewTable() *Table { return &Table{ids: map[Kind]int32{}} }

// Join adds the checker in a slot to the cohort of its kind.
func (t *Table) Join(slot int32, k Kind) {
	t.Leave(slot)
	g, ok := t.ids[k]
	if !ok {
		g = int32(len(t.cohorts))
		t.ids[k] = g
		t.cohorts = append(t.cohorts, cohort{Kind: k})
		for l := range t.quotas {
			t.quotas[l] = append(t.quotas[l], 0)
		}
	}
	t.cohort[slot], t.weight[slot] = g, k.Weight
	t.cohorts[g].checkers++
}

// Leave removes the checker in a slot from its cohort, if it has one.
func (t *Table) Leave(slot int32) {
	for len(t.cohort) <= int(slot) {
		t.cohort, t.weight = append(t.cohort, none), append(t.weight, 0)
	}
	if g := t.cohort[slot]; g != none {
		t.cohorts[g].checkers--
		t.cohort[slot] = none
	}
}

// Stale reports whether most cohorts are empty, for a fleet of the given size.
func (t *Table) Stale(checkers int) bool { return len(t.cohorts) > 2*checkers+16 }

// Clear forgets all cohorts. All checkers must join again.
func (t *Table) Clear() {
	clear(t.ids)
	t.cohorts = t.cohorts[:0]
	for l := range t.quotas {
		t.quotas[l] = t.quotas[l][:0]
	}
	for slot := range t.cohort {
		t.cohort[slot] = none
	}
}

// Quotas below lightWeight are rounded down. Many light checkers that share one part would else
// have much more than it together.
const lightWeight = FullWeight / 10

// Of returns the quota of the checker in a slot, rounded up, or down if it is light. The
// checker must be in a cohort.
func (t *Table) Of(l Level, slot int32) int32 {
	if l == Any {
		return math.MaxInt32
	}
	q := int64(t.quotas[l][t.cohort[slot]]) * t.weight[slot] / FullWeight
	if t.weight[slot] >= lightWeight {
		q += 1<<quotaBits - 1
	}
	return int32(min(q>>quotaBits, math.MaxInt32))
}

// Above returns a function that reports whether a load is above the quota of the
// checker in a slot. It is cheap for most checkers.
func (t *Table) Above(l Level) func(slot, load int32) bool {
	threshold := quota(math.MaxInt64) // a load up to this is above no quota
	for g := range t.cohorts {
		if t.cohorts[g].checkers > 0 {
			threshold = min(threshold, t.quotas[l][g])
		}
	}
	return func(slot, load int32) bool {
		return int(slot) < len(t.cohort) && t.cohort[slot] != none && quota(load)*FullWeight<<quotaBits > threshold*quota(t.weight[slot]) && load > t.Of(l, slot)
	}
}

// serving returns the cohorts that can serve a class, by zone.
func (t *Table) serving(class uint32, zones int) [][]int32 {
	list := make([][]int32, zones)
	for g := range t.cohorts {
		if c := &t.cohorts[g]; c.checkers > 0 && c.serves(class) {
			list[c.Zone] = append(list[c.Zone], int32(g))
		}
	}
	return list
}

// Level computes quotas that meet the demands as evenly as possible. It pours demands
// in order. Slack is by how many percent Limit exceeds Share.
func (t *Table) Level(demands []Demand, slack int) {
	f := newFilling(t.cohorts, demands)
	for i := range demands {
		d := &demands[i]
		d.cohorts, d.took = t.serving(d.Class, len(d.Lo)), make([]int64, len(t.cohorts))
	}
	f.run(demands)
	percent := quota(slack)
	for g := range t.cohorts {
		q, mass := quota(0), t.cohorts[g].mass()
		if mass > 0 {
			q = quota((f.held[g]*FullWeight + mass - 1) / mass)
		}
		t.quotas[Share][g] = q
		t.quotas[Limit][g] = q * (100 + percent) / 100
		t.quotas[Bound][g] = q * (1000 + 11*percent) / 1000
		t.quotas[Breach][g] = q * (2000 + 23*percent) / 2000
	}
}
