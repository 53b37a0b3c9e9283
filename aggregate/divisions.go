package aggregate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// zoneClass names the endpoints of one class in a zone.
type zoneClass struct{ zone, class uint32 }

// division is the common state of the cut paths into a zone. The zone's checkers and those
// elsewhere say the opposite of many of its endpoints. If several checkers of the zone do, the
// way there is cut. A single one may also be lying. The paths are then cut for a limited time,
// and never against a verdict of down. Each cut begins that way: the others may just be late to
// see a change.
type division struct {
	cuts   int           // doubted paths into the zone
	began  time.Duration // on the clock; earlier if verdicts had waited for longer than usual
	lone   bool          // the paths rest on the votes of one checker
	end    tick          // while lone: end of the doubt
	firm   tick          // while lone: when others will have contradicted it for long enough; 0: they do not
	spent  bool          // a lone checker has used up the time for which it may hold the doubt
	recent tick          // end of the time in which such doubt counts as just ended
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

	byZone   map[zoneClass]*division
	queue    []zoneClass
	reported map[uint32]health.Locality // zones that the owner knows to be divided
}

// longestHold is the number of rounds for which one checker may hold off the votes of others.
const longestHold = 10

// confirmedIn is the number of rounds for which others must contradict the votes from
// elsewhere, too. By then, every probing checker sees a change.
const confirmedIn = 3

// leastWitnessed is the number of votes that others must contradict beside one checker.
const leastWitnessed = 2

// queueReview lists a division, if there is one, for review.
func (d *divisions) queueReview(p path) {
	key := zoneClass{p.to, p.class}
	if x := d.byZone[key]; x != nil && !x.queued {
		x.queued = true
		d.queue = append(d.queue, key)
	}
}

// corroborated reports whether at least the given share of the votes over some path into a zone
// is contradicted, without those that one checker alone contradicts, and without those of any
// one checker. It considers the path from elsewhere, and the paths that are or should be
// doubted.
func (d *divisions) corroborated(key zoneClass, share float64) bool {
	witnessed, limit := d.records.mostWitnessed(key), d.settings.doubt(key.class).PathShare
	for p, r := range d.records.paths {
		if p.to != key.zone || p.class != key.class || p.from != elsewhere && !r.doubted && r.share() < limit {
			continue
		}
		contradicted := r.contradicted - witnessed
		if contradicted >= leastWitnessed && float64(contradicted) >= share*float64(r.votes-witnessed) && d.records.severalBlamed(p, share) {
			return true
		}
	}
	return false
}

// mayCut reports whether a path may be doubted. It may not if only one checker demands it, and
// its time is used up.
func (d *divisions) mayCut(p path) bool {
	x := d.byZone[zoneClass{p.to, p.class}]
	return x == nil || !x.spent
}

// cut records that a path becomes doubted, or no longer is.
func (d *divisions) cut(p path, doubted bool) {
	key := zoneClass{p.to, p.class}
	x := d.byZone[key]
	switch {
	case !doubted:
		if x.cuts--; x.cuts == 0 {
			if x.lone {
				x.recent = d.clock.tickAfter(d.confirmation(p.class))
				d.deadlines.add(x.recent, deadline{noEndpoint, noChecker})
				d.markWaiting(key)
			}
			x.lone, x.end, x.firm = false, 0, 0
		}
		d.queueReview(p)
		return
	case x == nil:
		x = &division{}
		d.byZone[key] = x
		d.zones.hold(p.to)
	}
	if x.cuts++; x.cuts == 1 {
		x.began = d.clock.elapsed - max(0, d.waited(key)-d.usualWait(key.class))
		d.setLone(key, x, true)
	}
	d.queueReview(p)
}

// setLone records whether a division rests on one checker. Together with the wait before it and
// a round for reports, the doubt then lasts for longestHold. If others were heard before, it
// lasts for at least half as long from now.
func (d *divisions) setLone(key zoneClass, x *division, lone bool) {
	if x.lone, x.end, x.firm = lone, 0, 0; !lone {
		return
	}
	round := d.settings.longestRound(key.class)
	lasts := max((confirmedIn+1)*round, (longestHold-1)*round-d.usualWait(key.class))
	end := max(x.began+lasts, d.clock.elapsed+(lasts/2).Truncate(time.Millisecond))
	x.end = d.clock.tickFrom(end, 0)
	d.deadlines.add(x.end, deadline{noEndpoint, noChecker})
}

// usualWait returns the time for which a down from elsewhere waits before it makes a verdict.
func (d *divisions) usualWait(class uint32) time.Duration {
	return max(d.settings.staleness(class), d.settings.longestRound(class))
}

// waited returns the longest wait of a verdict in a zone.
func (d *divisions) waited(key zoneClass) (longest time.Duration) {
	for id := range d.roster.endpoints {
		e := &d.roster.endpoints[id]
		if e.has(isKnown) && e.zone == key.zone && d.settings.ofEndpoint(e).class == key.class {
			longest = max(longest, d.budgets.spent(e))
		}
	}
	return longest
}

// markWaiting marks the endpoints of a zone that wait until it is clear whether the way there
// is cut, including those without votes over a path that was doubted.
func (d *divisions) markWaiting(key zoneClass) {
	for id := range d.roster.endpoints {
		e := &d.roster.endpoints[id]
		if e.has(awaitsConfirmation) && e.zone == key.zone && d.settings.ofEndpoint(e).class == key.class {
			d.roster.mark(health.EndpointID(id), e)
		}
	}
}

// confirmation returns the time for which others must contradict the votes from elsewhere, too,
// before a cut no longer rests on one checker.
func (d *divisions) confirmation(class uint32) time.Duration {
	return confirmedIn * d.settings.longestRound(class)
}

// confirm notes whether others beside one checker contradict the votes from elsewhere. It
// returns whether they have done so for long enough.
func (d *divisions) confirm(key zoneClass, x *division, corroborated bool) bool {
	switch {
	case !corroborated:
		x.firm = 0
	case x.firm == 0:
		x.firm = d.clock.tickAfter(d.confirmation(key.class))
		d.deadlines.add(x.firm, deadline{noEndpoint, noChecker})
	}
	return x.firm != 0 && x.firm <= d.clock.tick()
}

// due ends the doubts whose lone checker has used up its time. It returns the paths to believe
// again.
func (d *divisions) due(now tick) (believe []path) {
	for _, key := range slices.SortedFunc(maps.Keys(d.byZone), zoneClass.compare) {
		if x := d.byZone[key]; x.recent == now || x.firm == now {
			d.queueReview(path{elsewhere, key.zone, key.class})
		}
	}
	for _, p := range d.records.cutPaths() {
		if x := d.byZone[zoneClass{p.to, p.class}]; x.lone && x.end == now {
			believe = append(believe, p)
		}
	}
	for _, p := range believe {
		d.byZone[zoneClass{p.to, p.class}].spent = true
	}
	return believe
}

// review updates the listed divisions. It returns those that began or ceased to rest on one
// checker.
func (d *divisions) review() (changed []zoneClass) {
	list := d.queue
	d.queue = nil
	slices.SortFunc(list, zoneClass.compare)
	for _, key := range list {
		x, limits := d.byZone[key], d.settings.doubt(key.class)
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
			delete(d.byZone, key)
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
		divided = divided || d.byZone[zoneClass{zone, uint32(class)}] != nil
	}
	name := d.zones.name(zone)
	locality := health.Locality{Region: name[0], Zone: name[1]}
	switch _, was := d.reported[zone]; {
	case divided && !was:
		d.reported[zone] = locality
	case was && !divided:
		delete(d.reported, zone)
	default:
		return
	}
	d.effects.Divided = append(d.effects.Divided, DividedChange{Zone: locality, Over: !divided})
}

// countsCut reports whether the votes on an endpoint count although their path is cut:
// if as many of the zone's own checkers agree with them as do not, or if the endpoint is
// down, the doubt rests on one checker, and no two of the zone say up.
func (d *divisions) countsCut(e *endpoint, list []seat, class uint32, v *votes) bool {
	x := d.byZone[zoneClass{e.zone, class}]
	if x == nil || x.cuts == 0 || !v.ownTied() && !(x.lone && e.status.Down() && v.ownUps < 2) {
		return false
	}
	return slices.ContainsFunc(list, func(s seat) bool { return d.records.cut(e, &s) })
}

// spent reports whether a lone checker has used up the time to hold off the votes from
// elsewhere on an endpoint's zone, now or just before.
func (d *divisions) spent(e *endpoint, class uint32) bool {
	if len(d.byZone) == 0 {
		return false
	}
	x := d.byZone[zoneClass{e.zone, class}]
	return x != nil && (x.spent || x.cuts == 0 && x.recent > d.clock.tick())
}

// exist reports whether any zone is divided.
func (d *divisions) exist() bool { return len(d.byZone) > 0 }

// isLone reports whether the doubt of a path rests on one checker, or did.
func (d *divisions) isLone(p path) bool {
	x := d.byZone[zoneClass{p.to, p.class}]
	return x != nil && (x.lone && x.firm == 0 || x.spent)
}

func (z zoneClass) compare(other zoneClass) int {
	return cmp.Or(cmp.Compare(z.zone, other.zone), cmp.Compare(z.class, other.class))
}
