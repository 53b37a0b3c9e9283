package assign

// cohort is the checkers of a zone that are alike: what one can do and take, the
// others can.
type cohort struct {
	cohortKey
	seats int64 // how many have a seat
}

type cohortKey struct {
	zone int32
	capacity
	classes string // those that have them, a bit each
}

func (k *cohortKey) in(c ClassID) bool {
	return int(c/8) < len(k.classes) && k.classes[c/8]>>(c%8)&1 == 1
}

func (g *cohort) mass() int64 { return g.seats * g.weight }

// muster puts a checker that is known into its cohort.
func (p *Planner) muster(s int32) {
	p.discharge(s)
	classes := make([]byte, (len(p.classes)+7)/8)
	for i := range p.classes {
		if p.classes[i].has(s) {
			classes[i/8] |= 1 << (i % 8)
		}
	}
	key := cohortKey{p.home[s], p.can[s], string(classes)}
	g, ok := p.cohortIDs[key]
	if !ok {
		g = int32(len(p.cohorts))
		p.cohortIDs[key] = g
		p.cohorts = append(p.cohorts, cohort{cohortKey: key})
		p.share, p.limit = append(p.share, 0), append(p.limit, 0)
		p.bound, p.breach = append(p.bound, 0), append(p.breach, 0)
	}
	p.cohort[s] = g
	p.cohorts[g].seats++
}

// discharge takes a checker out of its cohort.
func (p *Planner) discharge(s int32) {
	if g := p.cohort[s]; g != none {
		p.cohorts[g].seats--
		p.cohort[s] = none
	}
}

// musterAll tells the cohorts apart anew after classes came.
func (p *Planner) musterAll() {
	clear(p.cohortIDs)
	p.cohorts = p.cohorts[:0]
	p.share, p.limit, p.bound, p.breach = p.share[:0], p.limit[:0], p.bound[:0], p.breach[:0]
	for s := range p.slots {
		p.cohort[s] = none
		if p.slots[s].known {
			p.muster(int32(s))
		}
	}
}

// cohortsOf are a class's cohorts by zone.
func (p *Planner) cohortsOf(c ClassID) [][]int32 {
	zones := make([][]int32, p.zones.Len())
	for g := range p.cohorts {
		if at := &p.cohorts[g]; at.seats > 0 && at.in(c) {
			zones[at.zone] = append(zones[at.zone], int32(g))
		}
	}
	return zones
}
