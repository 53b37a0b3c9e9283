package aggregate

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// record counts how often other votes contradict a checker, or the votes over a path.
type record struct {
	votes        int  // votes of pairs that are warm
	downs        int  // downs among the votes
	contradicted int  // contradicted downs
	opposed      int  // of a path: downs that a checker in the endpoint's own zone opposes
	witnessed    int  // of a checker: downs from elsewhere on its own zone that it alone contradicts
	doubted      bool // its downs do not count
	queued       bool // listed for review
	release      tick // when doubt ends; 0 if no end is scheduled
}

// contribution is what a seat adds to the records.
type contribution uint8

const (
	voting             contribution = 1 << iota // the vote of a pair that is warm
	sayingDown                                  // a down
	contradictedByMost                          // a down that most peers contradict
	contradictedOnPath                          // a down from another zone, without an answer, that the endpoint's own zone or most peers contradict
	excused                                     // a doubted path explains the vote, so the checker is not to blame
	opposedInZone                               // a down as in contradictedOnPath that some checker in the endpoint's own zone opposes
	witnessing                                  // an up in the endpoint's own zone that alone contradicts downs from other zones
)

// toChecker returns what a seat adds to the record of its checker.
func (c contribution) toChecker() contribution {
	if c&excused != 0 {
		return 0
	}
	return c
}

// replace removes one contribution from a record and adds another.
func (r *record) replace(from, to, contradicted contribution) {
	r.votes += int(to&voting) - int(from&voting)
	r.downs += int(to&sayingDown)/int(sayingDown) - int(from&sayingDown)/int(sayingDown)
	if to&contradicted != 0 {
		r.contradicted++
	}
	if from&contradicted != 0 {
		r.contradicted--
	}
	r.opposed += int(to&opposedInZone)/int(opposedInZone) - int(from&opposedInZone)/int(opposedInZone)
}

// share returns the share of votes that are contradicted.
func (r *record) share() float64 {
	if r.votes == 0 {
		return 0
	}
	return float64(r.contradicted) / float64(r.votes)
}

// opposedShare returns the share of votes that a checker in the endpoint's own zone
// opposes.
func (r *record) opposedShare() float64 {
	if r.votes == 0 {
		return 0
	}
	return float64(r.opposed) / float64(r.votes)
}

// endsAfter returns how long the share must stay low before doubt ends. Doubt ends at
// once if the downs are as many as before and the others have come to agree. Then the
// doubted checker was only early.
func (r *record) endsAfter(d *Doubt) time.Duration {
	if r.downs > 0 && float64(r.downs) >= d.Share*float64(r.votes) {
		return time.Millisecond
	}
	return d.ReleaseAfter
}

// reviewed takes a record off the review list.
func (r *record) reviewed() { r.queued = false }

// scheduleRelease sets or withdraws the tick at which doubt ends, and reports whether
// it set one.
func (r *record) scheduleRelease(end tick, limits *Doubt) bool {
	switch {
	case r.share() >= limits.Release:
		r.release = 0
	case r.release == 0 || end < r.release:
		r.release = end
		return true
	}
	return false
}

// path leads from the checkers of one zone to the endpoints of another. It covers the
// endpoints of one class.
type path struct {
	from, to uint32 // from may be elsewhere
	class    uint32
}

// elsewhere stands for all zones except the path's destination. If a zone has too few
// endpoints to judge each path, the votes from elsewhere together show that it is cut
// off.
const elsewhere = noZone

// elsewhereShare is the share of votes from elsewhere that must be contradicted to
// cut the path. The number of contradicted votes must also reach Doubt.Disagreements.
const elsewhereShare = 0.8

// includes reports whether the path begins in the given zone.
func (p path) includes(zone uint32) bool {
	return zone != noZone && p.to != noZone && zone != p.to && (p.from == zone || p.from == elsewhere)
}

// concerns reports whether doubt of a path matters for votes of one zone's checkers
// on another zone's endpoints. It does if the votes take that path. It also does if
// the path leads from elsewhere to the checkers' zone: their way out is then cut,
// too.
func (p path) concerns(from, to uint32) bool {
	if p.from == elsewhere && p.to == from {
		return from != to
	}
	return p.to == to && p.includes(from)
}

func (p path) compare(q path) int {
	return cmp.Or(cmp.Compare(p.from, q.from), cmp.Compare(p.to, q.to), cmp.Compare(p.class, q.class))
}

// records keeps the records of checkers and paths, and lists those that changed.
type records struct {
	settings     *settings
	roster       *roster
	zones        *zones
	paths        map[path]*record // those with votes
	cuts         map[path]bool    // those that are doubted
	blamed       map[sender]int   // contradicted votes over a path by whom they come from
	witnesses    int              // number of seats that are witnessing
	checkerQueue []checkerClass
	pathQueue    []path
}

// sender is a checker whose votes over a path are contradicted.
type sender struct {
	path
	checker uint32
}

// doubt begins or ends doubt of a checker.
func (r *records) doubt(at checkerClass, doubted bool) {
	x := r.of(at)
	x.doubted, x.release = doubted, 0
}

// doubtPath begins or ends doubt of a path.
func (r *records) doubtPath(p path, doubted bool) {
	x := r.paths[p]
	x.doubted, x.release = doubted, 0
	if doubted {
		r.cuts[p] = true
	} else {
		delete(r.cuts, p)
	}
}

// ofPath returns the record of a path, or nil if the path has no votes.
func (r *records) ofPath(p path) *record { return r.paths[p] }

// cutPaths returns the paths that are doubted, in order.
func (r *records) cutPaths() []path { return slices.SortedFunc(maps.Keys(r.cuts), path.compare) }

// of returns the record of a checker, or nil if the checker is gone.
func (r *records) of(at checkerClass) *record {
	k := r.roster.checker(at.checker)
	if int(at.class) >= k.record.len() {
		return nil
	}
	return k.record.in(at.class)
}

// set changes what a seat contributes to the records.
func (r *records) set(e *endpoint, s *seat, to contribution) {
	r.dropWitness(e)
	k, at := r.roster.checker(s.checker), checkerClass{s.checker, r.settings.of(e).class}
	k.record.in(at.class).replace(s.adds.toChecker(), to.toChecker(), contradictedByMost)
	r.queueChecker(at)
	if k.zone != noZone && e.zone != noZone && k.zone != e.zone {
		r.setPath(path{k.zone, e.zone, at.class}, s, to)
		r.setPath(path{elsewhere, e.zone, at.class}, s, to)
	}
	s.adds = to
}

func (r *records) setPath(p path, s *seat, to contribution) {
	x := r.paths[p]
	if x == nil {
		x = &record{}
		r.paths[p] = x
		r.zones.hold(p.from)
		r.zones.hold(p.to)
	}
	x.replace(s.adds, to, contradictedOnPath)
	if (s.adds^to)&contradictedOnPath != 0 {
		r.blame(sender{p, s.checker}, to&contradictedOnPath != 0)
	}
	r.queuePath(p)
}

// blame counts a vote of a sender that is contradicted now, or no longer is.
func (r *records) blame(who sender, contradicted bool) {
	if contradicted {
		r.blamed[who]++
	} else if r.blamed[who]--; r.blamed[who] == 0 {
		delete(r.blamed, who)
	}
}

// severalBlamed reports whether at least the given share of the votes over a path is
// contradicted whichever one sender is left out, and leastWitnessed or more are. A path
// with one sender needs no other: to doubt it takes nobody else's vote.
func (r *records) severalBlamed(p path, share float64) bool {
	x := r.paths[p]
	for who, n := range r.blamed {
		others := x.contradicted - n
		if who.path != p || others >= leastWitnessed && float64(others) >= share*float64(x.votes-n) {
			continue
		}
		votes := x.votes - r.votesOver(who)
		if votes > 0 && (others < leastWitnessed || float64(others) < share*float64(votes)) {
			return false
		}
	}
	return true
}

// votesOver counts the votes of a sender over its path.
func (r *records) votesOver(who sender) (votes int) {
	for _, v := range r.roster.checker(who.checker).votes {
		e := r.roster.at(v.Endpoint)
		if e.zone != who.to || r.settings.of(e).class != who.class {
			continue
		}
		for _, s := range r.roster.seatsOf(e) {
			if s.checker == who.checker {
				votes += int(s.adds & voting)
			}
		}
	}
	return votes
}

// witness returns the seat that alone contradicts downs from other zones, if any, and
// how many.
func (r *records) witness(e *endpoint) (s *seat, downs int) {
	list := r.roster.seatsOf(e)
	for i := range list {
		if list[i].adds&witnessing != 0 {
			s = &list[i]
		}
		if zone := r.roster.checker(list[i].checker).zone; list[i].adds&contradictedOnPath != 0 && zone != noZone && zone != e.zone {
			downs++
		}
	}
	return s, downs
}

// setWitness records which seat alone contradicts downs from other zones, nil for none.
func (r *records) setWitness(e *endpoint, to *seat) {
	before, downs := r.witness(e)
	if before == to {
		return
	}
	r.dropWitness(e)
	if to != nil && downs > 0 {
		r.addWitnessed(e, to, downs)
		to.adds |= witnessing
		r.witnesses++
	}
}

// dropWitness forgets which seat alone contradicts downs from other zones, before that
// changes.
func (r *records) dropWitness(e *endpoint) {
	if r.witnesses == 0 {
		return
	}
	if s, downs := r.witness(e); s != nil {
		r.addWitnessed(e, s, -downs)
		s.adds &^= witnessing
		r.witnesses--
	}
}

// addWitnessed counts downs that one checker alone contradicts.
func (r *records) addWitnessed(e *endpoint, s *seat, downs int) {
	class := r.settings.of(e).class
	r.roster.checker(s.checker).record.in(class).witnessed += downs
	r.queuePath(path{elsewhere, e.zone, class})
}

// mostWitnessed returns how many votes from elsewhere on a zone the checker contradicts
// that alone contradicts most of them.
func (r *records) mostWitnessed(key zoneClass) int {
	most := 0
	if r.witnesses == 0 {
		return 0
	}
	for c := range r.roster.checkers {
		if k := &r.roster.checkers[c]; k.zone == key.zone && int(key.class) < k.record.len() {
			most = max(most, k.record.in(key.class).witnessed)
		}
	}
	return most
}

// clear removes what the seats of an endpoint contribute.
func (r *records) clear(e *endpoint) {
	list := r.roster.seatsOf(e)
	for i := range list {
		r.set(e, &list[i], 0)
	}
}

// forgetPath forgets a path without votes.
func (r *records) forgetPath(p path) {
	delete(r.paths, p)
	r.zones.leave(p.from)
	r.zones.leave(p.to)
}

func (r *records) queueChecker(at checkerClass) {
	if x := r.of(at); !x.queued {
		x.queued = true
		r.checkerQueue = append(r.checkerQueue, at)
	}
}

func (r *records) queuePath(p path) {
	if x := r.paths[p]; !x.queued {
		x.queued = true
		r.pathQueue = append(r.pathQueue, p)
	}
}

// queuePaths lists all paths into a zone for review.
func (r *records) queuePaths(to zoneClass) {
	for _, p := range slices.SortedFunc(maps.Keys(r.paths), path.compare) {
		if p.to == to.zone && p.class == to.class {
			r.queuePath(p)
		}
	}
}

// queueAll lists all records after limits changed.
func (r *records) queueAll() {
	for c, k := range r.roster.eachChecker() {
		for class := range k.record.len() {
			r.queueChecker(checkerClass{c, uint32(class)})
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.paths), path.compare) {
		r.queuePath(p)
	}
}

// takeCheckers returns the listed checkers, and clears the list.
func (r *records) takeCheckers() []checkerClass {
	list := r.checkerQueue
	r.checkerQueue = nil
	return list
}

// takePaths returns the listed paths, and clears the list.
func (r *records) takePaths() []path {
	list := r.pathQueue
	r.pathQueue = nil
	return list
}

// anyCut reports whether any path is doubted.
func (r *records) anyCut() bool { return len(r.cuts) > 0 }

// isCut reports whether a path is doubted.
func (r *records) isCut(p path) bool { return r.cuts[p] }

// cut reports whether the path that a seat's vote takes is doubted.
func (r *records) cut(e *endpoint, s *seat) bool {
	if !r.anyCut() {
		return false
	}
	_, cut := r.cutPath(e, s)
	return cut
}

// cutPath returns the doubted path that a seat's vote takes.
func (r *records) cutPath(e *endpoint, s *seat) (path, bool) {
	from, class := r.roster.checker(s.checker).zone, r.settings.of(e).class
	for _, p := range [...]path{{from, e.zone, class}, {elsewhere, e.zone, class}} {
		if p.includes(from) && r.isCut(p) {
			return p, true
		}
	}
	return path{}, false
}

// excuses reports whether a doubted path explains the vote of a seat. That is the
// path that the vote takes, or the path to the checker's own zone, whose way out is
// then cut, too.
func (r *records) excuses(e *endpoint, s *seat) bool {
	zone := r.roster.checker(s.checker).zone
	return r.cut(e, s) || zone != noZone && zone != e.zone && r.isCut(path{elsewhere, zone, r.settings.of(e).class})
}

// looksIntact reports whether hardly any vote from elsewhere on the endpoint's zone
// is contradicted, except on the endpoint itself. If the path were cut, votes on
// other endpoints would be contradicted long before two votes on the same endpoint.
func (r *records) looksIntact(e *endpoint) bool {
	class := r.settings.of(e).class
	x := r.paths[path{elsewhere, e.zone, class}]
	if x == nil {
		return false
	}
	others := x.contradicted
	list := r.roster.seatsOf(e)
	for i := range list {
		if zone := r.roster.checker(list[i].checker).zone; zone != noZone && zone != e.zone && list[i].adds&contradictedOnPath != 0 {
			others--
		}
	}
	return float64(others+1) <= r.settings.doubt(class).PathNoise*float64(x.votes)
}

// pending reports whether any record is listed for review.
func (r *records) pending() bool { return len(r.checkerQueue)+len(r.pathQueue) > 0 }
