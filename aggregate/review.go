package aggregate

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// review begins and ends doubt where records changed. Doubt of one makes others
// look odd who agreed with it, so it goes on until nothing follows any more;
// first among checkers, then among paths, since a path excuses its checkers. Only
// then is it clear when it ends.
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
	a.foreseeAll()
}

// foreseeAll sets when the doubt ends that was just reviewed.
func (a *Aggregator) foreseeAll() {
	for _, at := range a.doubtedCheckers {
		if int(at.class) >= a.checkers.all[at.checker].classes() {
			continue // it is gone
		}
		if r, d := &a.standing(at).record, a.doubt(at.class); r.doubted {
			a.foresee(r, &d, pair{noEndpoint, at.checker})
		}
	}
	for _, p := range a.doubtedPaths {
		if r, d := a.paths[p], a.doubt(p.class); r != nil && r.doubted {
			a.foresee(r, &d, pair{noEndpoint, noChecker})
		}
	}
	a.doubtedCheckers, a.doubtedPaths = a.doubtedCheckers[:0], a.doubtedPaths[:0]
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

func (a *Aggregator) reviewChecker(at station) {
	if int(at.class) >= a.checkers.all[at.checker].classes() {
		return // it is gone
	}
	r, d := &a.standing(at).record, a.doubt(at.class)
	r.touched = false
	if r.doubted {
		a.doubtedCheckers = append(a.doubtedCheckers, at)
	} else if r.odd >= d.Disagreements && r.share() >= d.Share && a.checkers.all[at.checker].word != Trusted {
		a.doubtChecker(at, true)
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
		a.effects.Doubts = append(a.effects.Doubts, DoubtChange{Checker: x.name, Doubted: doubted, Reason: r.aboutChecker(&d)})
	}
	if doubted {
		a.doubtedCheckers = append(a.doubtedCheckers, at)
	}
	for _, v := range x.votes {
		a.compareAnew(v.Endpoint)
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

func (a *Aggregator) compareAnew(id health.EndpointID) {
	e := &a.endpoints[id]
	a.mark(id, e)
	a.compare(e)
}

// endDoubt ends what is due.
func (a *Aggregator) endDoubt(c uint32, at tick) {
	if c == noChecker {
		a.endPathDoubt(at)
		return
	}
	for class := range a.checkers.all[c].classes() {
		if r := &a.checkers.all[c].in(uint32(class)).record; r.doubted && r.release == at {
			a.doubtChecker(station{c, uint32(class)}, false)
		}
	}
}
