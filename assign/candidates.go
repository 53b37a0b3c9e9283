package assign

import (
	"cmp"
	"math/bits"
	"slices"

	"hdsd/assign/internal/rendezvous"
)

// candidate is a leaf that a newcomer ranks high for.
type candidate struct {
	place int32 // of its class, scarcest first
	score uint64
	first int32
}

// candidates are the leaves for which a newcomer is likely to be among the
// first in its zone, best first. Of those, it has about one in spread.
func (p *Planner) candidates(s int32) []candidate {
	const spread = 12
	places := p.places()
	var list []candidate
	for k := range p.kinds {
		c := &p.classes[p.kinds[k].class]
		if !c.has(s) {
			continue
		}
		place, least := places[p.kinds[k].class], uint64(0)
		if mass, part := uint64(c.mass[p.home[s]]), uint64(p.can[s].Weight)*spread; part < mass {
			least, _ = bits.Div64(mass-part, 0, mass)
		}
		for i := range p.kinds[k].leaves {
			l := &p.kinds[k].leaves[i]
			if score := rendezvous.Score(l.hash, p.hash[s]); score >= least {
				list = append(list, candidate{place, score, l.first})
			}
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.place, b.place), -cmp.Compare(a.score, b.score), p.inOrder(a.first, b.first))
	})
	return list
}
