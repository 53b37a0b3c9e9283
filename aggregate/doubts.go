package aggregate

import (
	"cmp"
	"fmt"
	"slices"

	"hdsd/health"
)

// DoubtChange reports that a checker or a path became doubted, or is believed again.
type DoubtChange struct {
	Checker  string // empty for a path
	From, To string // zones of the path's checkers and endpoints, as "region/zone"; From may be "elsewhere", all other zones
	Doubted  bool
	Reason   string // for example "it disagrees with its peers on 41 % of its endpoints"
}

// Path sums up the votes over the path between two zones, for all classes of endpoints.
type Path struct {
	From, To     string // zones of the checkers and of the endpoints, as "region/zone"
	Votes        int
	Downs        int    // votes down
	Contradicted int    // downs that the endpoint's own zone or most peers contradict
	CutReason    string // reason why its downs are not believed; empty if they are
}

// doubts finds downs that other votes contradict. It begins and ends the doubt of the
// checkers and paths that those downs come from.
type doubts struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	zones     *zones
	records   *records
	counter   *counter
	divisions *divisions
	effects   *Effects

	doubtedCheckers []checkerClass      // reviewed in this step
	doubtedPaths    []path              // reviewed in this step
	stale           []health.EndpointID // to refresh after the doubts of this step
	beliefs         []belief            // scratch space of compare, for one endpoint
}

// votes counts the votes on an endpoint that count.
type votes struct {
	ups, downs       int // ups of checkers that lost their stream may be out of date, and are left out
	heardDowns       int // downs of all checkers that are heard, doubted or not
	ownUps, ownDowns int // of these, those of checkers in the endpoint's own zone
	ownUp            int // the seat of the latest of ownUps
}

// ownTied reports whether the endpoint's own zone has as many ups as downs, and some.
func (v *votes) ownTied() bool { return v.ownUps > 0 && v.ownUps == v.ownDowns }

// count judges and counts the votes on an endpoint.
func (d *doubts) count(e *endpoint, list []seat, p *policy) (v votes) {
	d.beliefs = d.beliefs[:0]
	for i := range list {
		s := &list[i]
		k := d.roster.checker(s.checker)
		b := d.counter.judge(p, e, s, k)
		if d.beliefs = append(d.beliefs, b); b.heard() && s.status.Down() {
			v.heardDowns++
		}
		if b != believed {
			continue
		}
		ownZone := k.zone == e.zone && e.zone != noZone
		switch {
		case s.status.Down():
			if v.downs++; ownZone {
				v.ownDowns++
			}
		case !k.lost:
			if v.ups++; ownZone {
				v.ownUps++
				v.ownUp = i
			}
		}
	}
	return v
}

// refresh determines whether votes over a cut path count on an endpoint, and compares its
// votes. It returns whether that has changed.
func (d *doubts) refresh(e *endpoint) (changed bool) {
	if d.divisions.exist() || e.has(countsCut) {
		list, p := d.roster.seatsOf(e), d.settings.ofEndpoint(e)
		v := d.count(e, list, p)
		if changed = d.divisions.countsCut(e, list, p.class, &v) != e.has(countsCut); changed {
			e.flags ^= countsCut
		}
	}
	d.compare(e)
	return changed
}

// compare records which votes on an endpoint are contradicted by other votes, and which of them
// are excused by a doubted path.
func (d *doubts) compare(e *endpoint) {
	list, p := d.roster.seatsOf(e), d.settings.ofEndpoint(e)
	v := d.count(e, list, p)
	inside, contradicted := v.ownUps > v.ownDowns, false
	anyCut := d.records.anyCut()
	for i := range list {
		s := &list[i]
		var adds contribution
		switch side := sideOf(s.status); {
		case s.phase < warm || !d.beliefs[i].heard() || side == neither:
		case side == up:
			adds = voting
		default:
			adds = voting | sayingDown
			opponents := v.downs
			if d.beliefs[i] == believed {
				opponents--
			}
			// One checker alone contradicts no two, even if both are doubted.
			outvoted := v.ups > opponents && (v.ups > 1 || v.heardDowns == 1)
			if outvoted {
				adds |= contradictedByMost
			}
			if s.code < firstError {
				outside := v.ownUps > 0 && d.roster.checker(s.checker).zone != e.zone
				if outvoted || inside && outside {
					adds |= contradictedOnPath
					contradicted = true
				}
				if outside {
					adds |= opposedInZone
				}
			}
		}
		if adds != 0 && anyCut && d.records.excuses(e, s) {
			adds |= excused
		}
		if adds != s.adds&^witnessing {
			d.records.set(e, s, adds)
		}
	}
	if contradicted && v.ups == 1 && v.ownUps == 1 {
		d.records.setWitness(e, &list[v.ownUp])
	} else if d.records.witnesses > 0 {
		d.records.setWitness(e, nil)
	}
}

// review begins and ends doubt where records changed. Doubt of one checker can make
// checkers that agreed with it look contradicted, so review repeats until no record
// changes. It reviews checkers before paths, since a doubted path excuses its
// checkers. Only then is it clear which paths one checker alone has cut, and on which
// endpoints votes over a cut path count, and in the end, when each doubt ends.
func (d *doubts) review() {
	for unsettled := true; unsettled; {
		for d.records.pending() {
			d.reviewListed()
		}
		for _, key := range d.divisions.review() {
			d.listDown(key)
		}
		unsettled = d.refreshListed() || d.records.pending()
	}
	d.scheduleReleases()
}

// refreshListed refreshes the endpoints whose doubts changed, and returns whether votes
// over a cut path now count on any of them that did not, or the reverse.
func (d *doubts) refreshListed() (changed bool) {
	list := d.stale
	d.stale = nil
	for _, id := range list {
		e := d.roster.row(id)
		if e.has(isKnown) && d.refresh(e) {
			d.roster.mark(id, e)
			changed = true
		}
	}
	return changed
}

// reviewListed reviews the records that are listed, checkers before paths.
func (d *doubts) reviewListed() {
	for list := d.records.takeCheckers(); len(list) > 0; list = d.records.takeCheckers() {
		for _, key := range list {
			d.reviewChecker(key)
		}
	}
	for list := d.records.takePaths(); len(list) > 0; list = d.records.takePaths() {
		for _, p := range list {
			d.reviewPath(p)
		}
	}
}

// listDown lists the down endpoints of a zone for which the counting of the votes from
// elsewhere changed.
func (d *doubts) listDown(key zoneClass) {
	for id := range d.roster.endpoints {
		e := &d.roster.endpoints[id]
		if e.has(isKnown) && e.zone == key.zone && e.status.Down() && d.settings.ofEndpoint(e).class == key.class {
			d.stale = append(d.stale, health.EndpointID(id))
		}
	}
}

// compareChanged compares an endpoint whose verdict has just changed, if votes over a cut path
// begin or cease to count. It is decided again in the next step.
func (d *doubts) compareChanged(id health.EndpointID) {
	if e := d.roster.row(id); d.refresh(e) {
		d.roster.mark(id, e)
	}
}

func (d *doubts) reviewChecker(key checkerClass) {
	r := d.records.ofChecker(key)
	if r == nil {
		return // it is gone
	}
	limits := d.settings.doubt(key.class)
	r.reviewed()
	if r.doubted {
		d.doubtedCheckers = append(d.doubtedCheckers, key)
	} else if r.contradicted >= limits.Disagreements && r.share() >= limits.Share && d.roster.checker(key.checker).trust != Trusted {
		d.setChecker(key, true)
	}
}

func (d *doubts) reviewPath(p path) {
	r, limits := d.records.ofPath(p), d.settings.doubt(p.class)
	disagreements, share := limits.PathDisagreements, limits.PathShare
	if p.from == elsewhere {
		disagreements, share = limits.Disagreements, elsewhereShare
	}
	r.reviewed()
	d.divisions.queueReview(p)
	switch {
	case r.doubted:
		d.doubtedPaths = append(d.doubtedPaths, p)
	case r.contradicted >= disagreements && r.share() >= share && d.divisions.mayCut(p):
		d.setPath(p, true)
	case r.votes == 0:
		d.records.forgetPath(p)
	}
}

// scheduleReleases sets or withdraws the end of each doubt that was just reviewed.
func (d *doubts) scheduleReleases() {
	for _, key := range d.doubtedCheckers {
		if r := d.records.ofChecker(key); r != nil && r.doubted {
			d.scheduleRelease(r, key.class, deadline{noEndpoint, key.checker})
		}
	}
	for _, p := range d.doubtedPaths {
		if r := d.records.ofPath(p); r != nil && r.doubted {
			d.scheduleRelease(r, p.class, deadline{noEndpoint, noChecker})
		}
	}
	d.doubtedCheckers, d.doubtedPaths = d.doubtedCheckers[:0], d.doubtedPaths[:0]
}

// scheduleRelease sets or withdraws the end of a doubt.
func (d *doubts) scheduleRelease(r *record, class uint32, due deadline) {
	limits := d.settings.doubt(class)
	if end := d.clock.tickAfter(r.endsAfter(&limits)); r.scheduleRelease(end, &limits) {
		d.deadlines.add(end, due)
	}
}

// setChecker begins or ends doubt of a checker in one class.
func (d *doubts) setChecker(key checkerClass, doubted bool) {
	k := d.roster.checker(key.checker)
	d.records.doubt(key, doubted)
	if n := d.classes(key.checker); n == 0 || doubted && n == 1 { // otherwise another class doubts it, too
		d.effects.Doubts = append(d.effects.Doubts, DoubtChange{Checker: k.name, Doubted: doubted, Reason: d.checkerReason(key)})
	}
	if doubted {
		d.doubtedCheckers = append(d.doubtedCheckers, key)
	}
	for _, v := range k.votes {
		d.compareAnew(v.Endpoint)
	}
}

// setPath begins or ends doubt of a path.
func (d *doubts) setPath(p path, doubted bool) {
	d.records.doubtPath(p, doubted)
	d.divisions.cut(p, doubted)
	if n := d.pathClasses(p); n == 0 || doubted && n == 1 { // otherwise another class doubts it, too
		d.effects.Doubts = append(d.effects.Doubts, d.pathChange(p, doubted))
	}
	for _, k := range d.roster.eachChecker() {
		if p.from != elsewhere && p.from != k.zone {
			continue // its votes take another path
		}
		for _, v := range k.votes {
			if e := d.roster.row(v.Endpoint); p.concerns(k.zone, e.zone) && d.settings.ofEndpoint(e).class == p.class {
				d.compareAnew(v.Endpoint)
			}
		}
	}
}

// compareAnew compares and marks an endpoint after the doubt of a checker or a path
// began or ended.
func (d *doubts) compareAnew(id health.EndpointID) {
	e := d.roster.row(id)
	d.roster.mark(id, e)
	d.compare(e)
	if d.divisions.exist() {
		d.stale = append(d.stale, id)
	}
}

// classes counts the classes in which a checker is doubted.
func (d *doubts) classes(c uint32) int {
	n := 0
	for class := range d.roster.checker(c).record.len() {
		if d.records.ofChecker(checkerClass{c, uint32(class)}).doubted {
			n++
		}
	}
	return n
}

// pathClasses counts the classes in which a path is doubted.
func (d *doubts) pathClasses(p path) int {
	n := 0
	for class := range d.settings.classCount() {
		p.class = uint32(class)
		if d.records.isCut(p) {
			n++
		}
	}
	return n
}

// due ends the due doubts of a checker.
func (d *doubts) due(c uint32, now tick) {
	for class := range d.roster.checker(c).record.len() {
		key := checkerClass{c, uint32(class)}
		if r := d.records.ofChecker(key); r.doubted && r.release == now {
			d.setChecker(key, false)
		}
	}
}

// pathsDue ends the due doubts of paths.
func (d *doubts) pathsDue(now tick) {
	believe := d.divisions.due(now)
	for _, p := range d.records.cutPaths() {
		if d.records.ofPath(p).release == now && !slices.Contains(believe, p) {
			believe = append(believe, p)
		}
	}
	for _, p := range believe {
		d.setPath(p, false)
		d.records.queuePath(p) // the path may have no votes left
	}
}

// setTrust applies an operator's trust in a checker. Trust ends its doubt at once.
func (d *doubts) setTrust(c uint32, trust OperatorTrust) {
	k := d.roster.checker(c)
	for class := range k.record.len() {
		key := checkerClass{c, uint32(class)}
		if d.records.ofChecker(key).doubted && trust == Trusted {
			d.setChecker(key, false)
		}
		d.records.queueChecker(key)
	}
	for _, v := range k.votes {
		d.compareAnew(v.Endpoint)
	}
}

// forget reports the end of the doubt of a checker that is gone.
func (d *doubts) forget(c uint32) {
	if d.classes(c) > 0 {
		d.effects.Doubts = append(d.effects.Doubts, DoubtChange{Checker: d.roster.checker(c).name, Reason: "it is gone"})
	}
}

// reason returns the reason why a checker is doubted; it is empty if the checker is not.
func (d *doubts) reason(c uint32) string {
	for class := range d.roster.checker(c).record.len() {
		if key := (checkerClass{c, uint32(class)}); d.records.ofChecker(key).doubted {
			return d.checkerReason(key)
		}
	}
	return ""
}

func (d *doubts) checkerReason(key checkerClass) string {
	share := d.records.ofChecker(key).share()
	if share < d.settings.doubt(key.class).Release {
		return "it disagreed with its peers until lately"
	}
	return fmt.Sprintf("it disagrees with its peers on %.0f %% of its endpoints", 100*share)
}

func (d *doubts) pathReason(p path) string {
	text := fmt.Sprintf("the path from zone %s to zone %s is doubted: ", d.origin(p), d.zones.name(p.to))
	if p.from == elsewhere {
		text = fmt.Sprintf("the way from elsewhere to zone %s is doubted: ", d.zones.name(p.to))
	}
	share := d.records.ofPath(p).share()
	switch {
	case share < d.settings.doubt(p.class).Release:
		return text + "others contradicted what was said over it until lately"
	case d.divisions.isLone(p):
		return text + fmt.Sprintf("one checker alone contradicts %.0f %% of what is said over it", 100*share)
	default:
		return text + fmt.Sprintf("others contradict %.0f %% of what is said over it", 100*share)
	}
}

func (d *doubts) pathChange(p path, doubted bool) DoubtChange {
	return DoubtChange{From: d.origin(p), To: d.zones.name(p.to).String(), Doubted: doubted, Reason: d.pathReason(p)}
}

// origin returns the name of the zone in which a path begins.
func (d *doubts) origin(p path) string {
	if p.from == elsewhere {
		return "elsewhere"
	}
	return d.zones.name(p.from).String()
}

// cutPaths returns the doubted paths from a zone, one for each destination. It returns the path
// from elsewhere only if the zone's own path is not doubted.
func (d *doubts) cutPaths(origin uint32) []DoubtChange {
	var cut []path
	for p := range d.records.cuts {
		if p.includes(origin) {
			cut = append(cut, p)
		}
	}
	slices.SortFunc(cut, func(p, q path) int { // elsewhere, the lowest number, comes last
		return cmp.Or(cmp.Compare(p.to, q.to), cmp.Compare(q.from, p.from), cmp.Compare(p.class, q.class))
	})
	cut = slices.CompactFunc(cut, func(p, q path) bool { return p.to == q.to })
	var found []DoubtChange
	for _, p := range cut {
		found = append(found, d.pathChange(p, true))
	}
	return found
}

// paths sums up the records of the paths between zones, by zone.
func (d *doubts) paths() []Path {
	type pair struct{ from, to uint32 }
	sums, cut := map[pair]*Path{}, map[pair]string{}
	for _, p := range d.records.cutPaths() {
		cut[pair{p.from, p.to}] = cmp.Or(cut[pair{p.from, p.to}], d.pathReason(p))
	}
	for p, r := range d.records.paths {
		if p.from == elsewhere || r.votes == 0 {
			continue
		}
		key := pair{p.from, p.to}
		sum := sums[key]
		if sum == nil {
			sum = &Path{From: d.origin(p), To: d.zones.name(p.to).String(), CutReason: cmp.Or(cut[key], cut[pair{elsewhere, p.to}])}
			sums[key] = sum
		}
		sum.Votes, sum.Downs, sum.Contradicted = sum.Votes+r.votes, sum.Downs+r.downs, sum.Contradicted+r.contradicted
	}
	found := make([]Path, 0, len(sums))
	for _, sum := range sums {
		found = append(found, *sum)
	}
	slices.SortFunc(found, func(a, b Path) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return found
}
