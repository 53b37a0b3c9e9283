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
	release      tick // end of the doubt; 0 if none is scheduled
}

// contribution is the part of a seat in the records.
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

// toChecker returns the part of a seat in the record of its checker.
func (c contribution) toChecker() contribution {
	if c&excused != 0 {
		return 0
	}
	return c
}

// replace removes one contribution from a record and adds another.
func (r *record) replace(removed, added, contradicted contribution) {
	r.votes += int(added&voting) - int(removed&voting)
	r.downs += int(added&sayingDown)/int(sayingDown) - int(removed&sayingDown)/int(sayingDown)
	if added&contradicted != 0 {
		r.contradicted++
	}
	if removed&contradicted != 0 {
		r.contradicted--
	}
	r.opposed += int(added&opposedInZone)/int(opposedInZone) - int(removed&opposedInZone)/int(opposedInZone)
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

// endsAfter returns the time for which the share must stay low before doubt ends. Doubt ends at
// once if there are as many downs as before and the others have come to agree. Then the doubted
// checker was only early.
func (r *record) endsAfter(d *Doubt) time.Duration {
	if r.downs > 0 && float64(r.downs) >= d.Share*float64(r.votes) {
		return time.Millisecond
	}
	return d.ReleaseAfter
}

// reviewed removes a record from the review list.
func (r *record) reviewed() { r.queued = false }

// scheduleRelease sets or withdraws the end of doubt, and reports whether it set one.
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

// elsewhere stands for all zones except the path's destination. If a zone has too few endpoints
// to judge each path, the votes from elsewhere together show that it is cut off.
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

// records keeps the records of checkers and paths, and lists the changed ones.
type records struct {
	settings     *settings
	roster       *roster
	zones        *zones
	paths        map[path]*record // paths with votes
	cuts         map[path]bool    // doubted paths
	blamed       map[sender]int   // number of contradicted votes over a path, by sender
	witnesses    int              // number of witnessing seats
	checkerQueue []checkerClass
	pathQueue    []path
}

// sender is a checker whose votes over a path are contradicted.
type sender struct {
	path
	checker uint32
}

// doubt begins or ends doubt of a checker.
func (r *records) doubt(key checkerClass, doubted bool) {
	x := r.ofChecker(key)
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

// ofChecker returns the record of a checker, or nil if the checker is gone.
func (r *records) ofChecker(key checkerClass) *record {
	k := r.roster.checker(key.checker)
	if int(key.class) >= k.record.len() {
		return nil
	}
	return k.record.of(key.class)
}

// set changes the contribution of a seat to the records.
func (r *records) set(e *endpoint, s *seat, adds contribution) {
	r.dropWitness(e)
	k, key := r.roster.checker(s.checker), checkerClass{s.checker, r.settings.ofEndpoint(e).class}
	k.record.of(key.class).replace(s.adds.toChecker(), adds.toChecker(), contradictedByMost)
	r.queueChecker(key)
	if k.zone != noZone && e.zone != noZone && k.zone != e.zone {
		r.setPath(path{k.zone, e.zone, key.class}, s, adds)
		r.setPath(path{elsewhere, e.zone, key.class}, s, adds)
	}
	s.adds = adds
}

func (r *records) setPath(p path, s *seat, adds contribution) {
	x := r.paths[p]
	if x == nil {
		x = &record{}
		r.paths[p] = x
		r.zones.hold(p.from)
		r.zones.hold(p.to)
	}
	x.replace(s.adds, adds, contradictedOnPath)
	if (s.adds^adds)&contradictedOnPath != 0 {
		r.blame(sender{p, s.checker}, adds&contradictedOnPath != 0)
	}
	r.queuePath(p)
}

// blame adds or removes a contradicted vote of a sender.
func (r *records) blame(voter sender, contradicted bool) {
	if contradicted {
		r.blamed[voter]++
	} else if r.blamed[voter]--; r.blamed[voter] == 0 {
		delete(r.blamed, voter)
	}
}

// severalBlamed reports whether at least the given share of the votes over a path is
// contradicted without those of any one sender, and leastWitnessed or more are. For a path with
// one sender, the share of its own votes decides.
func (r *records) severalBlamed(p path, share float64) bool {
	x := r.paths[p]
	for voter, n := range r.blamed {
		contradicted := x.contradicted - n
		if voter.path != p || contradicted >= leastWitnessed && float64(contradicted) >= share*float64(x.votes-n) {
			continue
		}
		votes := x.votes - r.votesOver(voter)
		if votes > 0 && (contradicted < leastWitnessed || float64(contradicted) < share*float64(votes)) {
			return false
		}
	}
	return true
}

// votesOver counts the votes of a sender over its path.
func (r *records) votesOver(voter sender) (votes int) {
	for _, v := range r.roster.checker(voter.checker).votes {
		e := r.roster.row(v.Endpoint)
		if e.zone != voter.to || r.settings.ofEndpoint(e).class != voter.class {
			continue
		}
		for _, s := range r.roster.seatsOf(e) {
			if s.checker == voter.checker {
				votes += int(s.adds & voting)
			}
		}
	}
	return votes
}

// witness returns the seat that alone contradicts downs from other zones, if any, and their
// number.
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

// setWitness records the seat that alone contradicts downs from other zones, nil for none.
func (r *records) setWitness(e *endpoint, seat *seat) {
	previous, downs := r.witness(e)
	if previous == seat {
		return
	}
	r.dropWitness(e)
	if seat != nil && downs > 0 {
		r.addWitnessed(e, seat, downs)
		seat.adds |= witnessing
		r.witnesses++
	}
}

// dropWitness forgets the seat that alone contradicts downs from other zones, before it
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
	class := r.settings.ofEndpoint(e).class
	r.roster.checker(s.checker).record.of(class).witnessed += downs
	r.queuePath(path{elsewhere, e.zone, class})
}

// mostWitnessed returns the largest number of votes from elsewhere on a zone that a single
// checker alone contradicts.
func (r *records) mostWitnessed(key zoneClass) int {
	maximum := 0
	if r.witnesses == 0 {
		return 0
	}
	for c := range r.roster.checkers {
		if k := &r.roster.checkers[c]; k.zone == key.zone && int(key.class) < k.record.len() {
			maximum = max(maximum, k.record.of(key.class).witnessed)
		}
	}
	return maximum
}

// clear removes the contributions of an endpoint's seats.
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

func (r *records) queueChecker(key checkerClass) {
	if x := r.ofChecker(key); !x.queued {
		x.queued = true
		r.checkerQueue = append(r.checkerQueue, key)
	}
}

func (r *records) queuePath(p path) {
	if x := r.paths[p]; !x.queued {
		x.queued = true
		r.pathQueue = append(r.pathQueue, p)
	}
}

// queuePaths lists all paths into a zone for review.
func (r *records) queuePaths(key zoneClass) {
	for _, p := range slices.SortedFunc(maps.Keys(r.paths), path.compare) {
		if p.to == key.zone && p.class == key.class {
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
	zone, class := r.roster.checker(s.checker).zone, r.settings.ofEndpoint(e).class
	for _, p := range [...]path{{zone, e.zone, class}, {elsewhere, e.zone, class}} {
		if p.includes(zone) && r.isCut(p) {
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
	return r.cut(e, s) || zone != noZone && zone != e.zone && r.isCut(path{elsewhere, zone, r.settings.ofEndpoint(e).class})
}

// looksIntact reports whether hardly any vote from elsewhere on the endpoint's zone is
// contradicted, except on the endpoint itself. If the path were cut, votes on other endpoints
// would be contradicted long before two votes on the same endpoint.
func (r *records) looksIntact(e *endpoint) bool {
	class := r.settings.ofEndpoint(e).class
	x := r.paths[path{elsewhere, e.zone, class}]
	if x == nil {
		return false
	}
	contradicted := x.contradicted
	list := r.roster.seatsOf(e)
	for i := range list {
		if zone := r.roster.checker(list[i].checker).zone; zone != noZone && zone != e.zone && list[i].adds&contradictedOnPath != 0 {
			contradicted--
		}
	}
	return float64(contradicted+1) <= r.settings.doubt(class).PathNoise*float64(x.votes)
}

// pending reports whether any record is listed for review.
func (r *records) pending() bool { return len(r.checkerQueue)+len(r.pathQueue) > 0 }
