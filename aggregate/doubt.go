package aggregate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// Doubt says when a checker, or a path from the checkers of one zone to the
// endpoints of another, is no longer believed when it says down. Ups are always
// believed: who is cut off cannot make one up. A zero field means its default.
type Doubt struct {
	// Disagreements is how many endpoints a checker must hold to be down that
	// the majority of its peers sees up, and Share which part of its endpoints.
	// Defaults: 8 and 0.2.
	Disagreements int
	Share         float64

	// PathDisagreements and PathShare are the same for a path. Where the
	// endpoint's own zone has a checker, that one's up is enough.
	// Defaults: 20 and 0.5.
	PathDisagreements int
	PathShare         float64

	// Release is the share that it has to be below for ReleaseAfter to be
	// believed again. Defaults: 0.05 and 3 s.
	Release      float64
	ReleaseAfter time.Duration
}

// WithDefaults gives the limits with defaults in place of zeros.
func (d Doubt) WithDefaults() Doubt {
	or(&d.Disagreements, 8)
	or(&d.Share, 0.2)
	or(&d.PathDisagreements, 20)
	or(&d.PathShare, 0.5)
	or(&d.Release, 0.05)
	or(&d.ReleaseAfter, 3*time.Second)
	return d
}

func or[T int | float64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// record is how far someone disagrees with the others.
type record struct {
	votes   int  // settled ones
	downs   int  // of them
	odd     int  // of the downs, those that others contradict
	doubted bool // downs are not believed
	touched bool // listed to be looked at
	release tick // when it is believed again; 0 where that is not in sight
}

// path is from the checkers of one zone to the endpoints of another, those of
// one class.
type path struct {
	from, to uint16 // from may be elsewhere
	class    uint32
}

// elsewhere is all zones but the one that a path leads to. What is said from
// there shows that a zone is cut off which has too few endpoints for each path
// to show it.
const elsewhere uint16 = 0

// elsewhereShare is the part of what is said from elsewhere that has to be
// contradicted; of as many endpoints as for a checker.
const elsewhereShare = 0.8

// What a seat adds to the records.
const (
	voting  uint8 = 1 << iota // it has a settled vote
	saying                    // which is down
	oddOne                    // a down that the majority of the peers contradicts
	oddPath                   // a down from another zone, without an answer, that the endpoint's own zone or the majority contradicts
	excused                   // a path is doubted, so that the checker is not to blame
)

// compare finds out which votes on an endpoint the others contradict.
func (a *Aggregator) compare(e *endpoint) {
	list, p := a.seats.of(e), a.policyOf(e)
	ups, downs, inside := 0, 0, false
	a.beliefs = a.beliefs[:0]
	for i := range list {
		s := &list[i]
		b := a.judge(p, e, s)
		if a.beliefs = append(a.beliefs, b); b != believed {
			continue
		}
		switch c := &a.checkers.all[s.checker]; {
		case s.status.Down():
			downs++
		case !c.lost: // its up may be out of date
			ups++
			inside = inside || e.zone != 0 && c.zone == e.zone
		}
	}
	for i := range list {
		s := &list[i]
		var adds uint8
		switch side := sideOf(s.status); {
		case s.phase != settled || !a.beliefs[i].weighed() || side == neither:
		case side == up:
			adds = voting
		default:
			adds = voting | saying
			others := downs
			if a.beliefs[i] == believed {
				others--
			}
			if ups > others {
				adds |= oddOne
			}
			if (ups > others || inside && a.checkers.all[s.checker].zone != e.zone) && s.code < leastError {
				adds |= oddPath
			}
		}
		if adds != 0 && (a.cut(e, s) || a.island(e, s)) {
			adds |= excused
		}
		if adds != s.adds {
			a.enterRecords(e, s, adds)
		}
	}
}

// enterRecords changes what a seat adds.
func (a *Aggregator) enterRecords(e *endpoint, s *seat, adds uint8) {
	x, at := &a.checkers.all[s.checker], station{s.checker, a.policyOf(e).class}
	k := a.standing(at)
	k.record.change(ofChecker(s.adds), ofChecker(adds), oddOne)
	a.touch(at)
	if x.zone != 0 && e.zone != 0 && x.zone != e.zone {
		a.enterPath(path{x.zone, e.zone, at.class}, s.adds, adds)
		a.enterPath(path{elsewhere, e.zone, at.class}, s.adds, adds)
	}
	s.adds = adds
}

func (a *Aggregator) enterPath(p path, from, to uint8) {
	r := a.paths[p]
	if r == nil {
		r = &record{}
		a.paths[p] = r
	}
	r.change(from, to, oddPath)
	a.touchPath(p, r)
}

// ofChecker is what a seat adds to the record of its checker.
func ofChecker(adds uint8) uint8 {
	if adds&excused != 0 {
		return 0
	}
	return adds
}

func (r *record) change(from, to, odd uint8) {
	r.votes += int(to&voting) - int(from&voting)
	r.downs += int(to&saying)/int(saying) - int(from&saying)/int(saying)
	if to&odd != 0 {
		r.odd++
	}
	if from&odd != 0 {
		r.odd--
	}
}

// share is the part of the votes that others contradict.
func (r *record) share() float64 {
	if r.votes == 0 {
		return 0
	}
	return float64(r.odd) / float64(r.votes)
}

// review begins and ends doubt where records changed. Doubt of one makes others
// look odd who agreed with it, so it goes on until nothing follows any more;
// first among checkers, then among paths, since a path excuses its checkers.
func (a *Aggregator) review() {
	for len(a.touchedCheckers)+len(a.touchedPaths) > 0 {
		for len(a.touchedCheckers) > 0 {
			list := a.touchedCheckers
			a.touchedCheckers = nil
			for _, c := range list {
				a.reviewChecker(c)
			}
		}
		for len(a.touchedPaths) > 0 {
			list := a.touchedPaths
			a.touchedPaths = nil
			for _, p := range list {
				a.reviewPath(p)
			}
		}
	}
}

// touchAll has everybody looked at anew.
func (a *Aggregator) touchAll() {
	for c := range a.checkers.all {
		for class := range a.checkers.all[c].classes() {
			a.touch(station{uint32(c), uint32(class)})
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(a.paths), path.compare) {
		a.touchPath(p, a.paths[p])
	}
}

func (a *Aggregator) touch(at station) {
	if r := &a.standing(at).record; !r.touched {
		r.touched = true
		a.touchedCheckers = append(a.touchedCheckers, at)
	}
}

func (a *Aggregator) touchPath(p path, r *record) {
	if !r.touched {
		r.touched = true
		a.touchedPaths = append(a.touchedPaths, p)
	}
}

func (p path) compare(q path) int {
	return cmp.Or(cmp.Compare(p.from, q.from), cmp.Compare(p.to, q.to), cmp.Compare(p.class, q.class))
}

func (a *Aggregator) reviewChecker(at station) {
	if int(at.class) >= a.checkers.all[at.checker].classes() {
		return // it is gone
	}
	r, d := &a.standing(at).record, a.doubt(at.class)
	r.touched = false
	if r.doubted {
		a.foresee(r, &d, pair{noEndpoint, at.checker})
	} else if r.odd >= d.Disagreements && r.share() >= d.Share && a.checkers.all[at.checker].word != Trusted {
		a.doubtChecker(at, true)
	}
}

func (a *Aggregator) reviewPath(p path) {
	r, d := a.paths[p], a.doubt(p.class)
	odd, share := d.PathDisagreements, d.PathShare
	if p.from == elsewhere {
		odd, share = d.Disagreements, elsewhereShare
	}
	r.touched = false
	switch {
	case r.doubted:
		a.foresee(r, &d, pair{noEndpoint, noChecker})
	case r.odd >= odd && r.share() >= share:
		a.doubtPath(p, r, true)
	case r.votes == 0:
		delete(a.paths, p)
	}
}

// foresee sets or takes back the time at which doubt ends: at once where as
// much is still said to be down, and now the others agree. Who said so was early.
func (a *Aggregator) foresee(r *record, d *Doubt, who pair) {
	after := d.ReleaseAfter
	if r.downs > 0 && float64(r.downs) >= d.Share*float64(r.votes) {
		after = time.Millisecond
	}
	end := a.clock.in(a.clock.elapsed, after)
	switch {
	case r.share() >= d.Release:
		r.release = 0
	case r.release == 0 || end < r.release:
		r.release = end
		a.deadlines.add(end, who)
	}
}

func (a *Aggregator) doubtChecker(at station, doubted bool) {
	x, r, d := &a.checkers.all[at.checker], &a.standing(at).record, a.doubt(at.class)
	r.doubted, r.release = doubted, 0
	if x.doubts() == 0 || doubted && x.doubts() == 1 { // else it is doubted in another class, too
		a.suspicions = append(a.suspicions, Suspicion{Checker: x.name, Doubted: doubted, Reason: r.aboutChecker(&d)})
	}
	if doubted {
		a.foresee(r, &d, pair{noEndpoint, at.checker})
	}
	for _, id := range x.endpoints {
		a.compareAnew(id)
	}
}

// doubts is in how many classes a checker is doubted.
func (c *checker) doubts() int {
	n := 0
	for class := range c.classes() {
		if c.in(uint32(class)).record.doubted {
			n++
		}
	}
	return n
}

func (a *Aggregator) doubtPath(p path, r *record, doubted bool) {
	r.doubted, r.release = doubted, 0
	if doubted {
		a.cuts++
	} else {
		a.cuts--
	}
	if n := a.doubts(p); n == 0 || doubted && n == 1 { // else it is doubted in another class, too
		a.suspicions = append(a.suspicions, a.suspicion(p, doubted))
	}
	for c := range a.checkers.all {
		if !p.includes(a.checkers.all[c].zone) {
			continue
		}
		for _, id := range a.checkers.all[c].endpoints {
			if e := &a.endpoints[id]; e.zone == p.to && a.policyOf(e).class == p.class {
				a.compareAnew(id)
			}
		}
	}
	if p.from == elsewhere {
		a.compareFrom(p)
	}
}

// compareFrom compares all that the checkers of the zone say to which a path leads.
func (a *Aggregator) compareFrom(p path) {
	for c := range a.checkers.all {
		if a.checkers.all[c].zone != p.to {
			continue
		}
		for _, id := range a.checkers.all[c].endpoints {
			if a.policyOf(&a.endpoints[id]).class == p.class {
				a.compareAnew(id)
			}
		}
	}
}

// doubts is in how many classes a path is doubted.
func (a *Aggregator) doubts(p path) int {
	n := 0
	for class := range a.classes {
		p.class = uint32(class)
		if r := a.paths[p]; r != nil && r.doubted {
			n++
		}
	}
	return n
}

func (a *Aggregator) compareAnew(id health.EndpointID) {
	e := &a.endpoints[id]
	a.mark(id, e)
	a.compare(e)
}

// endDoubt ends what is due.
func (a *Aggregator) endDoubt(c uint32, at tick) {
	if c != noChecker {
		for class := range a.checkers.all[c].classes() {
			if r := &a.checkers.all[c].in(uint32(class)).record; r.doubted && r.release == at {
				a.doubtChecker(station{c, uint32(class)}, false)
			}
		}
		return
	}
	var due []path
	for p, r := range a.paths {
		if r.doubted && r.release == at {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, path.compare)
	for _, p := range due {
		a.doubtPath(p, a.paths[p], false)
	}
}

// cut tells whether the path of a seat is doubted.
func (a *Aggregator) cut(e *endpoint, s *seat) bool {
	if a.cuts == 0 {
		return false
	}
	_, cut := a.cutBy(e, s)
	return cut
}

// island tells whether the way to the zone of a checker is doubted that says
// something of another zone: then its own way out is cut, too.
func (a *Aggregator) island(e *endpoint, s *seat) bool {
	zone := a.checkers.all[s.checker].zone
	if a.cuts == 0 || zone == 0 || zone == e.zone {
		return false
	}
	r := a.paths[path{elsewhere, zone, a.policyOf(e).class}]
	return r != nil && r.doubted
}

// cutBy gives the path of a seat that is doubted.
func (a *Aggregator) cutBy(e *endpoint, s *seat) (path, bool) {
	from, class := a.checkers.all[s.checker].zone, a.policyOf(e).class
	for _, p := range [...]path{{from, e.zone, class}, {elsewhere, e.zone, class}} {
		if r := a.paths[p]; r != nil && r.doubted && p.includes(from) {
			return p, true
		}
	}
	return path{}, false
}

// includes tells whether the way from a zone is meant.
func (p path) includes(zone uint16) bool {
	return zone != 0 && p.to != 0 && zone != p.to && (p.from == zone || p.from == elsewhere)
}

func (a *Aggregator) suspicion(p path, doubted bool) Suspicion {
	return Suspicion{From: a.nameOf(p), To: a.zones.names[p.to].String(), Doubted: doubted, Reason: a.aboutPath(p)}
}

func (a *Aggregator) nameOf(p path) string {
	if p.from == elsewhere {
		return "elsewhere"
	}
	return a.zones.names[p.from].String()
}
