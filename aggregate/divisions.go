package aggregate

import (
	"cmp"
	"slices"
	"time"

	"hdsd/health"
)

// zoneClass names the endpoints of a zone that are of one class.
type zoneClass struct{ zone, class uint32 }

// division is what the cut paths into a zone have in common. The zone's checkers and
// those elsewhere say the opposite of many of its endpoints. If several checkers of
// the zone do, the way there is cut. If only one does, that one may also be lying. The
// paths are then cut for a limited time, and never against a verdict of down. Each cut
// begins that way: the others may just be late to see a change.
type division struct {
	cuts   int           // doubted paths into the zone
	began  time.Duration // on the clock; earlier if verdicts had waited for longer than usual
	lone   bool          // they rest on one checker: on what it contradicts, or on what it says
	until  tick          // while lone: when the doubt ends
	firm   tick          // while lone: when others have contradicted it for long enough; 0: they do not
	spent  bool          // a lone checker has held the doubt for as long as it may
	recent tick          // until when such doubt has just ended
	queued bool          // listed for review
}

// divisions tracks the zones that are cut off, or seem to be.
type divisions struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	zones     *zones
	records   *records
	budgets   budgets
	effects   *Effects

	all      map[zoneClass]*division
	queue    []zoneClass
	reported map[uint32]health.Locality // zones that the owner knows to be divided
}

// longestHold is for how many rounds one checker may hold off what others see.
const longestHold = 10

// confirmedIn is for how many rounds others must contradict the votes from elsewhere, too.
// By then, every checker that probes sees a change.
const confirmedIn = 3

// leastWitnessed is how many votes others must contradict beside one checker.
const leastWitnessed = 2

// queueReview lists a division, if there is one, for review.
func (d *divisions) queueReview(p path) {
	key := zoneClass{p.to, p.class}
	if x := d.all[key]; x != nil && !x.queued {
		x.queued = true
		d.queue = append(d.queue, key)
	}
}

// corroborated reports whether at least the given share of the votes over some path into
// a zone is contradicted even without those that one checker alone contradicts, and without
// those of any one checker. It looks at the way from elsewhere, and at the paths that are or
// should be doubted.
func (d *divisions) corroborated(key zoneClass, share float64) bool {
	most, limit := d.records.mostWitnessed(key), d.settings.doubt(key.class).PathShare
	for p, r := range d.records.paths {
		if p.to != key.zone || p.class != key.class || p.from != elsewhere && !r.doubted && r.share() < limit {
			continue
		}
		others := r.contradicted - most
		if others >= leastWitnessed && float64(others) >= share*float64(r.votes-most) && d.records.severalBlamed(p, share) {
			return true
		}
	}
	return false
}

// mayCut reports whether a path may be doubted. It may not if one checker alone asks
// for it, and did so for as long as it may.
func (d *divisions) mayCut(p path) bool {
	x := d.all[zoneClass{p.to, p.class}]
	return x == nil || !x.spent
}

// cut records that a path becomes doubted, or no longer is.
func (d *divisions) cut(p path, doubted bool) {
	key := zoneClass{p.to, p.class}
	x := d.all[key]
	switch {
	case !doubted:
		if x.cuts--; x.cuts == 0 {
			if x.lone {
				x.recent = d.clock.in(d.confirmation(p.class))
				d.deadlines.add(x.recent, deadline{noEndpoint, noChecker})
			}
			x.lone, x.until, x.firm = false, 0, 0
		}
		d.queueReview(p)
		return
	case x == nil:
		x = &division{}
		d.all[key] = x
		d.zones.hold(p.to)
	}
	if x.cuts++; x.cuts == 1 {
		x.began = d.clock.elapsed - max(0, d.waited(key)-d.usualWait(key.class))
		d.setLone(key, x, true)
	}
	d.queueReview(p)
}

// setLone records whether a division rests on one checker. Together with the wait
// before it and a round for reports, the doubt then lasts for longestHold. If others were
// heard before, it lasts for half as long from the present at least.
func (d *divisions) setLone(key zoneClass, x *division, lone bool) {
	if x.lone, x.until, x.firm = lone, 0, 0; !lone {
		return
	}
	round := d.settings.longestRound(key.class)
	lasts := max((confirmedIn+1)*round, (longestHold-1)*round-d.usualWait(key.class))
	end := max(x.began+lasts, d.clock.elapsed+(lasts/2).Truncate(time.Millisecond))
	x.until = d.clock.after(end, 0)
	d.deadlines.add(x.until, deadline{noEndpoint, noChecker})
}

// usualWait returns for how long a down from elsewhere waits before it makes a verdict.
func (d *divisions) usualWait(class uint32) time.Duration {
	return max(d.settings.staleness(class), d.settings.longestRound(class))
}

// waited returns for how long some verdict in a zone has waited.
func (d *divisions) waited(key zoneClass) (longest time.Duration) {
	for id := range d.roster.endpoints {
		e := &d.roster.endpoints[id]
		if e.has(isKnown) && e.zone == key.zone && d.settings.of(e).class == key.class {
			longest = max(longest, d.budgets.spent(e))
		}
	}
	return longest
}

// confirmation returns how long others must contradict the votes from elsewhere, too,
// before a cut no longer rests on one checker.
func (d *divisions) confirmation(class uint32) time.Duration {
	return confirmedIn * d.settings.longestRound(class)
}

// confirm notes whether others than one checker contradict the votes from elsewhere. It
// returns whether they have for long enough.
func (d *divisions) confirm(key zoneClass, x *division, corroborated bool) bool {
	switch {
	case !corroborated:
		x.firm = 0
	case x.firm == 0:
		x.firm = d.clock.in(d.confirmation(key.class))
		d.deadlines.add(x.firm, deadline{noEndpoint, noChecker})
	}
	return x.firm != 0 && x.firm <= d.clock.tick()
}

// due ends the doubts that a lone checker has held for as long as it may. It returns
// the paths to believe again.
func (d *divisions) due(now tick) (believe []path) {
	for key, x := range d.all {
		if x.recent == now || x.firm == now {
			d.queueReview(path{elsewhere, key.zone, key.class})
		}
	}
	for _, p := range d.records.cutPaths() {
		if x := d.all[zoneClass{p.to, p.class}]; x.lone && x.until == now {
			believe = append(believe, p)
		}
	}
	for _, p := range believe {
		d.all[zoneClass{p.to, p.class}].spent = true
	}
	return believe
}

// review updates the listed divisions. It returns those that came to rest on one
// checker, or no longer do.
func (d *divisions) review() (changed []zoneClass) {
	list := d.queue
	d.queue = nil
	slices.SortFunc(list, zoneClass.compare)
	for _, key := range list {
		x, limits := d.all[key], d.settings.doubt(key.class)
		x.queued = false
		needs := limits.PathShare
		if x.cuts > 0 && !x.lone {
			needs /= 2 // others may agree again one after the other
		}
		corroborated := d.corroborated(key, needs)
		firm := (x.lone || x.spent) && d.confirm(key, x, corroborated)
		switch {
		case x.cuts == 0:
		case firm:
			d.setLone(key, x, false)
			changed = append(changed, key)
		case !x.lone && !corroborated:
			d.setLone(key, x, true)
			changed = append(changed, key)
		}
		r := d.records.ofPath(path{elsewhere, key.zone, key.class})
		if x.spent && (firm || r == nil || r.share() < limits.Release) {
			x.spent = false
			d.records.queuePaths(key)
		}
		if x.cuts == 0 && !x.spent && x.recent <= d.clock.tick() && (r == nil || r.opposedShare() < limits.Release) {
			delete(d.all, key)
			defer d.zones.leave(key.zone)
		}
		d.report(key.zone)
	}
	return changed
}

// pending reports whether any division is listed for review.
func (d *divisions) pending() bool { return len(d.queue) > 0 }

// report reports whether a zone is divided, if that has changed.
func (d *divisions) report(zone uint32) {
	divided := false
	for class := range d.settings.classCount() {
		divided = divided || d.all[zoneClass{zone, uint32(class)}] != nil
	}
	name := d.zones.name(zone)
	at := health.Locality{Region: name[0], Zone: name[1]}
	switch _, was := d.reported[zone]; {
	case divided && !was:
		d.reported[zone] = at
	case was && !divided:
		delete(d.reported, zone)
	default:
		return
	}
	d.effects.Divided = append(d.effects.Divided, DividedChange{Zone: at, Over: !divided})
}

// countsCut reports whether the votes on an endpoint count although their path is cut:
// if as many of the zone's own checkers agree with them as do not, or if the endpoint is
// down, the doubt rests on one checker, and no two of the zone say up.
func (d *divisions) countsCut(e *endpoint, list []seat, class uint32, v *votes) bool {
	x := d.all[zoneClass{e.zone, class}]
	if x == nil || x.cuts == 0 || !v.ownTied() && !(x.lone && e.status.Down() && v.ownUps < 2) {
		return false
	}
	return slices.ContainsFunc(list, func(s seat) bool { return d.records.cut(e, &s) })
}

// spent reports whether a lone checker has held off the votes from elsewhere on an
// endpoint's zone for as long as it may, or has done so until just now.
func (d *divisions) spent(e *endpoint, class uint32) bool {
	if len(d.all) == 0 {
		return false
	}
	x := d.all[zoneClass{e.zone, class}]
	return x != nil && (x.spent || x.cuts == 0 && x.recent > d.clock.tick())
}

// any reports whether any zone is divided.
func (d *divisions) any() bool { return len(d.all) > 0 }

// isLone reports whether the doubt of a path rests on one checker, or did.
func (d *divisions) isLone(p path) bool {
	x := d.all[zoneClass{p.to, p.class}]
	return x != nil && (x.lone && x.firm == 0 || x.spent)
}

func (z zoneClass) compare(other zoneClass) int {
	return cmp.Or(cmp.Compare(z.zone, other.zone), cmp.Compare(z.class, other.class))
}
