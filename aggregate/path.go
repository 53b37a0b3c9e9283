package aggregate

import (
	"cmp"
	"slices"
)

// path is from the checkers of one zone to the endpoints of another, those of
// one class.
type path struct {
	from, to uint32 // from may be elsewhere
	class    uint32
}

// elsewhere is all zones but the one that a path leads to. What is said from
// there shows that a zone is cut off which has too few endpoints for each path
// to show it.
const elsewhere = noZone

// elsewhereShare is the part of what is said from elsewhere that has to be
// contradicted; of as many endpoints as for a checker.
const elsewhereShare = 0.8

// includes tells whether the way from a zone is meant.
func (p path) includes(zone uint32) bool {
	return zone != 0 && p.to != 0 && zone != p.to && (p.from == zone || p.from == elsewhere)
}

// concerns tells whether doubt of a path has to do with what the checkers of a
// zone say of the endpoints of another: over that path or, where nobody elsewhere
// reaches their own zone, on their way out.
func (p path) concerns(from, to uint32) bool {
	if p.from == elsewhere && p.to == from {
		return from != to
	}
	return p.to == to && p.includes(from)
}

func (p path) compare(q path) int {
	return cmp.Or(cmp.Compare(p.from, q.from), cmp.Compare(p.to, q.to), cmp.Compare(p.class, q.class))
}

func (a *Aggregator) enterPath(p path, from, to uint8) {
	r := a.paths[p]
	if r == nil {
		r = &record{}
		a.paths[p] = r
		a.zones.hold(p.from)
		a.zones.hold(p.to)
	}
	r.change(from, to, oddPath)
	a.touchPath(p, r)
}

func (a *Aggregator) touchPath(p path, r *record) {
	if !r.touched {
		r.touched = true
		a.touchedPaths = append(a.touchedPaths, p)
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
		a.doubtedPaths = append(a.doubtedPaths, p)
	case r.odd >= odd && r.share() >= share:
		a.doubtPath(p, r, true)
	case r.votes == 0:
		delete(a.paths, p)
		a.zones.leave(p.from)
		a.zones.leave(p.to)
	}
}

// doubtPath begins or ends doubt of a path.
func (a *Aggregator) doubtPath(p path, r *record, doubted bool) {
	r.doubted, r.release = doubted, 0
	if doubted {
		a.cuts++
	} else {
		a.cuts--
	}
	if n := a.doubts(p); n == 0 || doubted && n == 1 { // else it is doubted in another class, too
		a.effects.Doubts = append(a.effects.Doubts, a.doubtChange(p, doubted))
	}
	for c := range a.checkers.all {
		x := &a.checkers.all[c]
		if p.from != elsewhere && p.from != x.zone {
			continue // none of its endpoints is worth a look
		}
		for _, v := range x.votes {
			if e := &a.endpoints[v.Endpoint]; p.concerns(x.zone, e.zone) && a.policyOf(e).class == p.class {
				a.compareAnew(v.Endpoint)
			}
		}
	}
}

// doubts is in how many classes a path is doubted.
func (a *Aggregator) doubts(p path) int {
	n := 0
	for class := range a.classes {
		p.class = uint32(class)
		if a.isCut(p) {
			n++
		}
	}
	return n
}

func (a *Aggregator) isCut(p path) bool {
	r := a.paths[p]
	return r != nil && r.doubted
}

// endPathDoubt ends what is due.
func (a *Aggregator) endPathDoubt(at tick) {
	var due []path
	for p, r := range a.paths {
		if r.doubted && r.release == at {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, path.compare)
	for _, p := range due {
		a.doubtPath(p, a.paths[p], false)
		a.touchPath(p, a.paths[p]) // nothing may be left of it
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

// cutBy gives the path of a seat that is doubted.
func (a *Aggregator) cutBy(e *endpoint, s *seat) (path, bool) {
	from, class := a.checkers.all[s.checker].zone, a.policyOf(e).class
	for _, p := range [...]path{{from, e.zone, class}, {elsewhere, e.zone, class}} {
		if p.includes(from) && a.isCut(p) {
			return p, true
		}
	}
	return path{}, false
}

// stray tells whether hardly anything but what is said of one endpoint is
// contradicted of all that is said of its zone from elsewhere, so that nothing
// looks as if the way there were cut. If it were, others would be contradicted
// long before two votes on the same endpoint are.
func (a *Aggregator) stray(e *endpoint) bool {
	class := a.policyOf(e).class
	r := a.paths[path{elsewhere, e.zone, class}]
	if r == nil {
		return false
	}
	others := r.odd
	list := a.seats.of(e)
	for i := range list {
		if zone := a.checkers.all[list[i].checker].zone; zone != 0 && zone != e.zone && list[i].adds&oddPath != 0 {
			others--
		}
	}
	return float64(others+1) <= a.doubt(class).PathNoise*float64(r.votes)
}

// island tells whether the way to the zone of a checker is doubted that says
// something of another zone: then its own way out is cut, too.
func (a *Aggregator) island(e *endpoint, s *seat) bool {
	zone := a.checkers.all[s.checker].zone
	return zone != 0 && zone != e.zone && a.isCut(path{elsewhere, zone, a.policyOf(e).class})
}
