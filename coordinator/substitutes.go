package coordinator

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/store"
)

// replaceDoubted has substitutes check what only doubted checkers and one other
// check. A doubted checker keeps its seats and goes on, or nobody could tell
// when it is right again; to the plan it is as if it was lost.
//
// Where more than half of the checkers are doubted, of those that no operator
// distrusts, there is nothing to put in the place of more, nor where nobody else
// is left; those who were replaced stay so.
func (c *core) replaceDoubted(now time.Time) {
	if !c.doubtStirred || c.settling {
		return
	}
	c.doubtStirred = false
	doubted := map[string]bool{}
	distrusted := 0
	for id, known := range c.checkers {
		if known.connected && c.silent[id] == nil && c.disbelieved(id) {
			doubted[id] = true
			if c.trust[id].Word == store.Distrusted {
				distrusted++
			}
		}
	}
	others := c.connected() - distrusted
	full := 2*(len(doubted)-distrusted) > others || others == 0
	change := assign.Change{}
	for _, id := range slices.Sorted(maps.Keys(c.checkers)) {
		known := c.checkers[id]
		switch {
		case !known.connected || c.silent[id] != nil:
		case doubted[id] && !known.replaced && !full:
			known.replaced = true
			change.Lost = append(change.Lost, id)
		case !doubted[id] && known.replaced:
			known.replaced = false
			change.Join = append(change.Join, known.Checker)
		}
	}
	if len(change.Lost)+len(change.Join) > 0 {
		c.follow(now, change)
	}
}

// disbelieved tells whether a checker is doubted, or an operator distrusts it.
func (c *core) disbelieved(id string) bool {
	return c.trust[id].Word == store.Distrusted || c.judge.Doubted(id) != ""
}
