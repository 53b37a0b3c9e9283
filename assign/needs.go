package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
)

// needs determines what a unit lacks, and which checker may replace which. It keeps
// no state; it uses the tally.
type needs struct {
	fleet    *fleet
	room     *room
	tally    *tally
	rankings *rankings
	divided  map[int32]bool // zones whose endpoints need two checkers of their own
	changed  []int32        // zones that became divided or undivided since drainChanged
}

// divide records whether the endpoints of a zone need two checkers of their own, and
// returns whether that is new.
func (n *needs) divide(z int32, divided bool) bool {
	if n.divided[z] == divided {
		return false
	}
	if n.divided == nil {
		n.divided = map[int32]bool{}
	}
	if n.divided[z] = divided; !divided {
		delete(n.divided, z)
	}
	n.changed = append(n.changed, z)
	return true
}

// drainChanged returns and clears the zones that became divided or undivided.
func (n *needs) drainChanged() []int32 {
	changed := n.changed
	n.changed = nil
	return changed
}

// wants reports whether a unit could use a new checker.
func (n *needs) wants(u *unit) bool {
	if u.short() || n.lacking(u) > 0 {
		return true
	}
	n.tally.count(u)
	if u.kind.plain() {
		return n.tally.crowded(u)
	}
	return n.tally.remove(u, n.worst(u)) > n.tally.ideal(u)
}

// lacking returns how many more substitutes a unit needs, wherever they are. It is
// negative if the unit has more than it needs.
func (n *needs) lacking(u *unit) int { return max(n.lackingAnywhere(u), n.lackingHome(u)) }

// lackingAnywhere returns how many more substitutes a unit needs for checkers that are
// lost, doubted or blind.
func (n *needs) lackingAnywhere(u *unit) int {
	doubted, blind := 0, 0
	for _, s := range u.seats {
		if n.fleet.doubted(s) {
			doubted++
		}
		if n.fleet.blind(s) {
			blind++
		}
	}
	return max(max(u.fewest(), blind+1)-n.living(u), doubted-n.substitutes(u))
}

// isDivided reports whether a unit needs two checkers of its own zone.
func (n *needs) isDivided(u *unit) bool { return len(n.divided) > 0 && n.divided[u.zone] }

// lackingHome returns how many more substitutes a unit of a divided zone needs there. It
// is negative if the unit has more than it needs.
func (n *needs) lackingHome(u *unit) int {
	if !n.isDivided(u) {
		return -n.substitutes(u)
	}
	needed := u.fewest()
	for _, list := range [][]int32{u.seats, u.substitutes} {
		for _, s := range list {
			if n.fleet.live(s) && n.fleet.zone(s) == u.zone {
				needed--
			}
		}
	}
	return needed
}

// living counts the live checkers of a unit, including substitutes.
func (n *needs) living(u *unit) int {
	count := n.substitutes(u)
	for _, s := range u.seats {
		if n.fleet.live(s) {
			count++
		}
	}
	return count
}

// substitutes counts the live substitutes of a unit.
func (n *needs) substitutes(u *unit) int {
	count := 0
	for _, s := range u.substitutes {
		if n.fleet.live(s) {
			count++
		}
	}
	return count
}

// idleSubstitute returns a doubted substitute of a unit without a doubted seat, or none.
func (n *needs) idleSubstitute(u *unit) int32 {
	if slices.ContainsFunc(u.seats, n.fleet.doubted) {
		return none
	}
	for _, s := range u.substitutes {
		if !n.fleet.live(s) {
			return s
		}
	}
	return none
}

// worst returns the seat that a counted unit can best do without: the worst placed.
// On a tie, it prefers live checkers to those whose seats are only kept, then the
// checker that ranks lowest.
func (n *needs) worst(u *unit) int32 {
	worst, place := u.seats[0], -1
	for _, s := range u.seats {
		standing := n.tally.standing(u, s) * 2
		if n.fleet.live(s) {
			standing++
		}
		if standing > place || standing == place && n.rankings.outranks(u, worst, s) {
			worst, place = s, standing
		}
	}
	return worst
}

// choice counts the checkers that are able to serve a unit and are in allowed zones.
func (n *needs) choice(u *unit) int {
	k := u.kind
	switch {
	case u.zone == none || k.zones != OwnOnly && k.regions != OwnOnly:
		return k.class.total
	case k.zones == OwnOnly:
		return int(k.class.seats[u.zone])
	}
	sum := 0
	for z, seats := range k.class.seats {
		if n.tally.tier(u, int32(z)) != never {
			sum += int(seats)
		}
	}
	return sum
}

// allowed reports whether a unit may ever have a seat in a zone.
func (n *needs) allowed(u *unit, z int32) bool { return n.tally.tier(u, z) != never }

// suits reports whether a checker is able to take a unit from another, and is as well
// placed.
func (n *needs) suits(u *unit, o, s int32) bool {
	z := n.fleet.zone(s)
	if !u.kind.class.has(s) || u.has(s) {
		return false
	}
	if n.fleet.zone(o) == z {
		return true
	}
	n.tally.count(u)
	standing := n.tally.remove(u, o)
	return n.tally.tier(u, z) <= standing
}

// replaces reports whether a newcomer suits as a replacement, and has room below its
// share.
func (n *needs) replaces(u *unit, o, s int32) bool {
	return n.room.takes(s, u, quota.Share) && n.suits(u, o, s)
}

// shortage returns the reason why a unit has too few seats.
func (n *needs) shortage(u *unit) Reason {
	able, near := 0, 0
	for z, pool := range u.kind.class.pools {
		able += len(pool)
		if n.allowed(u, int32(z)) {
			near += len(pool)
		}
	}
	attending := n.fleet.attending()
	for _, s := range u.current() {
		if n.fleet.present(s) {
			able--
			near--
			attending--
		}
	}
	switch {
	case attending == 0:
		return NoOthers
	case near > 0:
		return NoRoom
	case able > 0:
		return TooFar
	}
	return TooFew
}

// eligible lists the present checkers that could be added to a unit and that consider accepts,
// best placed first. It also returns the number of checkers it looked at.
func (n *needs) eligible(u *unit, consider func(s int32) bool) (list []int32, looks int) {
	n.tally.count(u)
	for z, pool := range u.kind.class.pools {
		if !n.allowed(u, int32(z)) {
			continue
		}
		looks += len(pool)
		for _, s := range pool {
			if consider(s) && !u.has(s) {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		if x, y := n.tally.tier(u, n.fleet.zone(a)), n.tally.tier(u, n.fleet.zone(b)); x != y {
			return x - y
		}
		return -n.rankings.compare(u, a, b)
	})
	return list, looks
}
