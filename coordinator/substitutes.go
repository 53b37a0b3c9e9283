package coordinator

import (
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/store"
)

// cover is how far substitutes stand in for a checker that is doubted or blind. It
// keeps its seat and goes on, or nobody could tell when it is right again.
type cover uint8

const (
	uncovered   cover = iota
	leastCover        // where less than two believed checkers are left, as if it was lost
	outnumbered       // where others would not be more than those who are blind
	fullCover         // at each of its endpoints
)

// replaceDoubted gives doubted checkers substitutes: at once where too few others
// are believed, and everywhere as many checkers at a time as silent ones are
// replaced. They leave when the checker is believed again. Those who were replaced
// stay so, however many more are doubted. Blind ones get company at the same pace.
//
// A cut path is no reason: what is hard to reach is the endpoints' zone, and much of
// the fleet would be given what checkers of another zone have there.
func (c *core) replaceDoubted(now time.Time) {
	if c.settling || !c.doubtStirred && now.Before(c.doubtAt) {
		return
	}
	c.doubtStirred, c.doubtAt = false, now.Add(c.timing.report)
	change := assign.Change{}
	b := c.belief()
	c.tellShaken(&b)
	for _, id := range b.stirred {
		known := c.checkers[id]
		switch {
		case !c.disbelieved(id):
			c.uncoverBelieved(known, &b, now, &change)
		case known.cover < fullCover && !b.shaken() && c.mayReplace(now, &c.doubtPace):
			known.cover = fullCover
			change.Doubted = append(change.Doubted, id)
		case known.cover == uncovered && !b.lost():
			known.cover = leastCover
			change.Lost = append(change.Lost, id)
		}
	}
	if n := len(change.Doubted); n > 0 {
		c.log.Warn().Str("event", "doubted_replaced").Int("count", n).Strs("checkers", change.Doubted[:min(n, seatsNamed)]).
			Msg("checkers are doubted: substitutes check their endpoints beside them")
	}
	if n := len(change.Blind); n > 0 {
		c.log.Warn().Str("event", "blind_outnumbered").Int("count", n).Strs("checkers", change.Blind[:min(n, seatsNamed)]).
			Msg("checkers are blind: substitutes check beside them where others do not outnumber them")
	}
	if len(change.Join)+len(change.Doubted)+len(change.Lost)+len(change.Blind) > 0 {
		c.follow(now, change)
	}
}

// uncoverBelieved ends what was done about a checker that is believed, and has it
// outnumbered while it is blind.
func (c *core) uncoverBelieved(known *checker, b *belief, now time.Time, change *assign.Change) {
	blind := c.judge.BlindReason(known.ID) != ""
	if blind && known.cover == outnumbered {
		return
	}
	if known.cover > uncovered {
		known.cover = uncovered
		change.Join = append(change.Join, known.Checker)
	}
	if blind && !b.shaken() && c.mayReplace(now, &c.doubtPace) {
		known.cover = outnumbered
		change.Blind = append(change.Blind, known.ID)
	}
}

// tellShaken logs when doubted checkers that have no substitutes everywhere get
// none, and when that is over.
func (c *core) tellShaken(b *belief) {
	var held []string
	for _, id := range b.stirred {
		if b.shaken() && c.disbelieved(id) && c.checkers[id].cover < fullCover {
			held = append(held, id)
		}
	}
	switch n := len(held); {
	case n > 0 && !c.doubtHeld:
		c.log.Warn().Str("event", "doubted_held").Int("count", n).Strs("checkers", held[:min(n, seatsNamed)]).
			Int("believed", b.believed).Int("doubted", b.doubted).Int("distrusted", b.distrusted).Int("blind", b.blind).Int("away", b.away).
			Msg("checkers are doubted and get substitutes only where too few others are believed, since half of the fleet cannot be relied on")
	case n == 0 && c.doubtHeld:
		c.log.Info().Str("event", "doubted_held_over").Msg("no doubted checker is without substitutes for that reason any more")
	}
	c.doubtHeld = len(held) > 0
}

// belief is how many of the checkers with a seat are believed, and not blind.
type belief struct {
	believed, doubted int
	distrusted        int      // by operators, who know why
	blind             int      // and believed
	away              int      // lost or silent
	stirred           []string // checkers that are not believed or blind, or were replaced for that, sorted
}

// lost tells whether most are doubted, or nobody is left to put in their place.
func (b *belief) lost() bool { return b.believed == 0 || b.doubted > b.believed }

// shaken tells whether half of the fleet cannot be relied on: that is likely to have
// one cause, and would be too much for the other half.
func (b *belief) shaken() bool { return b.doubted+b.distrusted+b.blind+b.away >= b.believed }

func (c *core) belief() belief {
	b := belief{}
	for id, known := range c.checkers {
		trouble := true
		switch {
		case c.idle(id):
			continue
		case !known.connected || c.silent[id] != nil:
			b.away++
			continue
		case c.trust[id].Word == store.Distrusted:
			b.distrusted++
		case c.judge.DoubtReason(id) != "":
			b.doubted++
		case c.judge.BlindReason(id) != "":
			b.blind++
		default:
			b.believed++
			trouble = false
		}
		if trouble || known.cover > uncovered {
			b.stirred = append(b.stirred, id)
		}
	}
	slices.Sort(b.stirred)
	return b
}

// disbelieved tells whether a checker is doubted, or an operator distrusts it.
func (c *core) disbelieved(id string) bool {
	return c.trust[id].Word == store.Distrusted || c.judge.DoubtReason(id) != ""
}
