package aggregate

import (
	"cmp"
	"fmt"
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

func (d Doubt) withDefaults() Doubt {
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

// Suspicion tells that a checker or a path is doubted from now on, or is
// believed again.
type Suspicion struct {
	Checker  string // empty where a path is meant
	From, To string // zones of the path's checkers and endpoints, as "region/zone"
	Doubted  bool
	Reason   string // as "it disagrees with its peers on 41 % of its endpoints"
}

// record is how far someone disagrees with the others.
type record struct {
	votes   int  // settled ones
	odd     int  // of them, downs that others contradict
	doubted bool // downs are not believed
	touched bool // listed to be looked at
	release tick // when it is believed again; 0 where that is not in sight
}

// path is from the checkers of one zone to the endpoints of another.
type path struct{ from, to uint16 }

// What a seat adds to the records.
const (
	voting  uint8 = 1 << iota // it has a settled vote
	oddOne                    // a down that the majority of the peers contradicts
	oddPath                   // a down from elsewhere that the endpoint's own zone, or the majority, contradicts
)

// compare finds out which votes on an endpoint the others contradict.
func (a *Aggregator) compare(e *endpoint) {
	list := a.seats.of(e)
	ups, downs, inside := 0, 0, false
	for i := range list {
		s := &list[i]
		if a.believe(e, s) != believed {
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
		switch side, settled := sideOf(s.status), s.phase == settled && a.checkers.all[s.checker].hearing == fresh; {
		case !settled || side == neither:
		case side == up:
			adds = voting
		default:
			adds = voting
			others := downs
			if a.believe(e, s) == believed {
				others--
			}
			if ups > others {
				adds |= oddOne | oddPath
			}
			if inside && a.checkers.all[s.checker].zone != e.zone {
				adds |= oddPath
			}
		}
		if adds != s.adds {
			a.enterRecords(e, s, adds)
		}
	}
}

// enterRecords changes what a seat adds.
func (a *Aggregator) enterRecords(e *endpoint, s *seat, adds uint8) {
	x := &a.checkers.all[s.checker]
	x.record.change(s.adds, adds, oddOne)
	if !x.record.touched {
		x.record.touched = true
		a.touchedCheckers = append(a.touchedCheckers, s.checker)
	}
	if x.zone != 0 && e.zone != 0 && x.zone != e.zone {
		p := path{x.zone, e.zone}
		r := a.paths[p]
		if r == nil {
			r = &record{}
			a.paths[p] = r
		}
		r.change(s.adds, adds, oddPath)
		if !r.touched {
			r.touched = true
			a.touchedPaths = append(a.touchedPaths, p)
		}
	}
	s.adds = adds
}

func (r *record) change(from, to, odd uint8) {
	r.votes += int(to&voting) - int(from&voting)
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
// look odd who agreed with it, so it goes on until nothing follows any more.
func (a *Aggregator) review() {
	for len(a.touchedCheckers)+len(a.touchedPaths) > 0 {
		checkers, paths := a.touchedCheckers, a.touchedPaths
		a.touchedCheckers, a.touchedPaths = nil, nil
		for _, c := range checkers {
			a.reviewChecker(c)
		}
		for _, p := range paths {
			a.reviewPath(p)
		}
	}
}

func (a *Aggregator) reviewChecker(c uint32) {
	r, d := &a.checkers.all[c].record, &a.options.Doubt
	r.touched = false
	if r.doubted {
		a.foresee(r, pair{noEndpoint, c})
	} else if r.odd >= d.Disagreements && r.share() >= d.Share {
		a.doubtChecker(c, true)
	}
}

func (a *Aggregator) reviewPath(p path) {
	r, d := a.paths[p], &a.options.Doubt
	r.touched = false
	switch {
	case r.doubted:
		a.foresee(r, pair{noEndpoint, noChecker})
	case r.odd >= d.PathDisagreements && r.share() >= d.PathShare:
		a.doubtPath(p, r, true)
	case r.votes == 0:
		delete(a.paths, p)
	}
}

// foresee sets or takes back the time at which doubt ends.
func (a *Aggregator) foresee(r *record, who pair) {
	calm := r.share() < a.options.Doubt.Release
	switch {
	case !calm:
		r.release = 0
	case r.release == 0:
		r.release = a.clock.in(a.clock.elapsed, a.options.Doubt.ReleaseAfter)
		a.deadlines.add(r.release, who)
	}
}

func (a *Aggregator) doubtChecker(c uint32, doubted bool) {
	x := &a.checkers.all[c]
	x.record.doubted, x.record.release = doubted, 0
	a.suspicions = append(a.suspicions, Suspicion{Checker: x.name, Doubted: doubted, Reason: a.aboutChecker(&x.record)})
	if doubted {
		a.foresee(&x.record, pair{noEndpoint, c})
	}
	for _, id := range x.endpoints {
		a.compareAnew(id)
	}
}

func (a *Aggregator) doubtPath(p path, r *record, doubted bool) {
	r.doubted, r.release = doubted, 0
	if doubted {
		a.cuts++
	} else {
		a.cuts--
	}
	a.suspicions = append(a.suspicions, Suspicion{
		From: a.zones.names[p.from].String(), To: a.zones.names[p.to].String(), Doubted: doubted, Reason: a.aboutPath(p),
	})
	for c := range a.checkers.all {
		if a.checkers.all[c].zone != p.from {
			continue
		}
		for _, id := range a.checkers.all[c].endpoints {
			if a.endpoints[id].zone == p.to {
				a.compareAnew(id)
			}
		}
	}
}

func (a *Aggregator) compareAnew(id health.EndpointID) {
	e := &a.endpoints[id]
	a.mark(id, e)
	a.compare(e)
}

// endDoubt ends what is due.
func (a *Aggregator) endDoubt(c uint32, at tick) {
	if c != noChecker {
		if r := &a.checkers.all[c].record; r.doubted && r.release == at {
			a.doubtChecker(c, false)
		}
		return
	}
	var due []path
	for p, r := range a.paths {
		if r.doubted && r.release == at {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(p, q path) int { return cmp.Or(cmp.Compare(p.from, q.from), cmp.Compare(p.to, q.to)) })
	for _, p := range due {
		a.doubtPath(p, a.paths[p], false)
	}
}

// cut tells whether the path of a seat is doubted.
func (a *Aggregator) cut(e *endpoint, s *seat) bool {
	if a.cuts == 0 {
		return false
	}
	r := a.paths[path{a.checkers.all[s.checker].zone, e.zone}]
	return r != nil && r.doubted
}

func (a *Aggregator) aboutChecker(r *record) string {
	if r.share() < a.options.Doubt.Release {
		return "it disagreed with its peers until lately"
	}
	return fmt.Sprintf("it disagrees with its peers on %.0f %% of its endpoints", 100*r.share())
}

func (a *Aggregator) aboutPath(p path) string {
	text := fmt.Sprintf("the path from zone %s to zone %s is doubted: ", a.zones.names[p.from], a.zones.names[p.to])
	if share := a.paths[p].share(); share >= a.options.Doubt.Release {
		return text + fmt.Sprintf("others contradict %.0f %% of what is said over it", 100*share)
	}
	return text + "others contradicted what was said over it until lately"
}

// Suspicions gives what began and ended of doubt since the last call, in order.
func (a *Aggregator) Suspicions() []Suspicion {
	news := a.suspicions
	a.suspicions = nil
	return news
}

// Doubted tells why a checker is not believed; empty where it is.
func (a *Aggregator) Doubted(checker string) string {
	c, ok := a.checkers.ids[checker]
	if !ok || !a.checkers.all[c].record.doubted {
		return ""
	}
	return a.aboutChecker(&a.checkers.all[c].record)
}
