package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/quota"
)

// balancer moves work away from checkers that are clearly above their share.
type balancer struct {
	fleet   *fleet
	room    *room
	classes *classes
	seats   *seats
	agenda  *agenda
	needs   *needs
	tally   *tally
	mover   *mover
	repairs *repairer
	budget  *budget
}

// shed moves work from checkers above their quotas to others that have room. It moves
// substitute work first, and seats only if the checker still has too many. A doubted
// checker gives up seats only in units with substitutes, which take them.
func (b *balancer) shed() {
	full := b.above(quota.Breach)
	if len(full) == 0 {
		return
	}
	var vacated []int32
	givers := slices.Repeat([]int32{none}, b.fleet.len())
	for _, s := range full {
		bound, breach := b.room.quota(quota.Bound, s), b.room.quota(quota.Breach, s)
		for _, i := range b.mover.helped(s) {
			if b.room.load(s) <= bound {
				break
			}
			b.mover.shift(i, s)
		}
		if b.room.seated(s) <= breach {
			continue
		}
		for _, i := range b.mover.seated(s) {
			switch {
			case b.room.seated(s) <= bound:
			case b.fleet.live(s):
				b.mover.shift(i, s)
			case len(b.seats.unit(i).substitutes) > 0:
				b.seats.unseat(i, s)
				vacated = append(vacated, i)
			}
		}
		for b.fleet.live(s) && b.room.seated(s) > breach && b.relay(s, givers) {
		}
	}
	b.repairs.fill(append(vacated, b.agenda.drainParts()...))
}

// above lists the checkers at work that are above a quota, by hash.
func (b *balancer) above(q quota.Level) []int32 {
	isAbove := b.room.above(q)
	var full []int32
	for s := range int32(b.fleet.len()) {
		if (b.fleet.live(s) || b.fleet.doubted(s)) && isAbove(s) {
			full = append(full, s)
		}
	}
	slices.SortFunc(full, b.fleet.compare)
	return full
}

// relay relieves a checker that has too many seats when every possible taker is full. Each
// taker in turn hands a unit on, up to a checker with room. It uses a shortest such chain, and
// reports whether work moved all along it.
func (b *balancer) relay(s int32, givers []int32) bool {
	chain := b.chain(s, givers)
	if len(chain) == 0 {
		return false
	}
	for i := range givers {
		givers[i] = none
	}
	last := chain[0]
	room, leeway := b.room.quota(quota.Limit, last)-b.room.load(last), b.room.leeway(last)
	for n := 1; n < len(chain); n++ {
		giver, taker := chain[n], chain[n-1]
		i := b.parcel(giver, taker, room, leeway)
		if i == none {
			return false
		}
		b.mover.swap(i, giver, taker)
		b.agenda.later(i) // giver and taker may have room for it in its own zone by now
		u := b.seats.unit(i)
		room = max(b.room.quota(quota.Breach, giver)-b.room.load(giver), u.size())
		leeway = max(b.room.leeway(giver), u.cost())
	}
	return true
}

// chain returns the checkers along which work can pass from an overloaded checker to one that
// has room and no more than its share, last first. It records in givers which checker can hand
// work to each. A search in vain leaves givers as it is, so that the next search skips dead
// ends.
func (b *balancer) chain(s int32, givers []int32) []int32 {
	seen := b.newSeen()
	givers[s] = s
	for queue := []int32{s}; len(queue) > 0 && !b.budget.spent(); queue = queue[1:] {
		giver := queue[0]
		var takers []int32
		idle := int32(none)
		for _, i := range b.mover.seated(giver) {
			rate := b.seats.unit(i).kind.rate
			b.takers(i, giver, seen, func(t int32) {
				if givers[t] != none {
					return
				}
				givers[t] = giver
				takers = append(takers, t)
				n := b.room.load(t)
				takes := n <= b.room.quota(quota.Share, t) && n < b.room.quota(quota.Limit, t) && b.room.fits(t, rate)
				if takes && (idle == none || b.fleet.compare(t, idle) < 0) {
					idle = t
				}
			})
		}
		if idle != none {
			return back(idle, givers)
		}
		slices.SortFunc(takers, b.fleet.compare)
		queue = append(queue, takers...)
	}
	return nil
}

// back returns the chain that ends at t, last first.
func back(t int32, givers []int32) []int32 {
	chain := []int32{t}
	for givers[t] != t {
		t = givers[t]
		chain = append(chain, t)
	}
	return chain
}

// seen tells, by class and zone, whether all checkers were seen.
type seen [][]bool

func (b *balancer) newSeen() seen {
	seen := make(seen, b.classes.len())
	for id := range seen {
		seen[id] = make([]bool, len(b.classes.byID(ClassID(id)).pools))
	}
	return seen
}

// takers yields the checkers that could have a unit in place of checker s. It skips
// zones where all checkers of the class were seen.
func (b *balancer) takers(i, s int32, seen seen, yield func(t int32)) {
	u := b.seats.unit(i)
	zones, tally := seen[u.kind.id], b.tally
	tally.count(u)
	standing := tally.remove(u, s)
	for z, pool := range u.kind.class.pools {
		if zones[z] || tally.tier(u, int32(z)) > standing {
			continue
		}
		zones[z] = true
		b.budget.spend(len(pool))
		for _, t := range pool {
			switch {
			case !u.has(t):
				yield(t)
			case t != s:
				zones[z] = false
			}
		}
	}
}

// parcel finds a unit that the giver can hand to a taker with the given room. If all
// that suit are too large, it cuts the smallest, and returns a part that fits. It
// returns none if no unit suits or no part fits.
func (b *balancer) parcel(giver, taker, room int32, leeway int64) int32 {
	fits := func(u *unit) bool { return u.size() <= room && u.cost() <= leeway }
	size := func(i int32) int32 { return b.seats.unit(i).size() }
	smallest := int32(none)
	for _, i := range b.mover.seated(giver) {
		u := b.seats.unit(i)
		switch {
		case !b.needs.suits(u, giver, taker):
		case fits(u):
			return i
		case smallest == none || u.size() < size(smallest):
			smallest = i
		}
	}
	for smallest != none && !fits(b.seats.unit(smallest)) {
		if !b.agenda.divisible(smallest) {
			return none
		}
		smallest = slices.MinFunc(b.agenda.halve(smallest), func(a, b int32) int { return cmp.Compare(size(a), size(b)) })
	}
	return smallest
}
