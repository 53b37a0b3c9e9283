package aggregate

import "time"

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

	// PathNoise is the part of what is said of a zone from elsewhere that may be
	// contradicted without a sign that the way there is cut.
	// Default: 0.002.
	PathNoise float64

	// Release is the share that it has to be below for ReleaseAfter to be
	// believed again. Defaults: 0.05 and 3 s.
	Release      float64
	ReleaseAfter time.Duration
}

// WithDefaults gives the limits with defaults in place of zeros.
func (d Doubt) WithDefaults() Doubt {
	return d.or(&Doubt{
		Disagreements: 8, Share: 0.2, PathDisagreements: 20, PathShare: 0.5, PathNoise: 0.002,
		Release: 0.05, ReleaseAfter: 3 * time.Second,
	})
}

// or gives the limits with others in place of zeros.
func (d Doubt) or(others *Doubt) Doubt {
	or(&d.Disagreements, others.Disagreements)
	or(&d.Share, others.Share)
	or(&d.PathDisagreements, others.PathDisagreements)
	or(&d.PathShare, others.PathShare)
	or(&d.PathNoise, others.PathNoise)
	or(&d.Release, others.Release)
	or(&d.ReleaseAfter, others.ReleaseAfter)
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
		if adds != 0 && a.cuts > 0 && (a.cut(e, s) || a.island(e, s)) {
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
