package fleet

import (
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Standing is the degree to which a checker is believed.
type Standing uint8

// The standings of a checker.
const (
	Believed   Standing = iota
	Blind               // it says "up" through outages; its votes count
	Doubted             // its peers contradict it
	Distrusted          // an operator distrusts it
)

// cover is the extent to which substitutes stand in for a blind or not believed checker. It
// keeps its seats and goes on checking, since only its reports show when it is right again.
type cover uint8

const (
	uncovered   cover = iota
	leastCover        // where fewer than two believed checkers are left, as if it was lost
	outnumbered       // where others would not outnumber the blind ones
	fullCover         // at each of its endpoints
)

// doubt is the state of the fleet's reaction to blind and not believed checkers.
type doubt struct {
	shift   shift     // of checkers
	changed bool      // the believed or the present checkers changed
	lookAt  time.Time // when to look again in any case
	held    bool      // so many are away that some get no substitutes; this was logged
}

// Reconsider notes that the standing of a checker may have changed.
func (f *Fleet) Reconsider() { f.doubt.changed = true }

// replaceDoubted gives substitutes to checkers that are not believed: to all of
// them where too few others are believed, and everywhere at the pace of silent
// checkers. The substitutes leave when the checker is believed again; until then
// they stay, however many more are doubted. Blind checkers are outnumbered at the
// same pace.
//
// A contradicted checker must be doubted for the grace period first. When much fails at once,
// the first reporters are doubted until the others follow.
//
// A doubted checker is better than none: while some endpoint has no other checker, it gets no
// substitutes, since a checker with substitutes gets no seats.
//
// A doubted path gives no substitutes: it leads to endpoints that are hard to reach, and much
// of the fleet would take over endpoints from checkers of another zone.
func (f *Fleet) replaceDoubted(now, heard time.Time) {
	if f.settling || !f.doubt.changed && now.Before(f.doubt.lookAt) {
		return
	}
	f.doubt.changed, f.doubt.lookAt = false, now.Add(f.options.Report)
	change := assign.Change{}
	trust, troubled := f.assess(heard)
	f.logShaken(heard, trust, troubled)
	for _, id := range troubled {
		known := f.checkers[id]
		standing := f.lookup.Standing(id)
		switch {
		case known.isEarly(heard, f.options.Grace):
		case standing < Doubted:
			f.uncover(now, known, standing, trust, &change)
		case f.isNeeded(&known.Checker):
			if known.cover > uncovered {
				known.cover = uncovered
				change.Join = append(change.Join, known.Checker)
			}
		case known.cover < fullCover && !trust.shaken() && f.mayCover(now, known):
			known.cover = fullCover
			change.Doubted = append(change.Doubted, id)
		case known.cover == uncovered && !trust.lost():
			known.cover = leastCover
			change.Lost = append(change.Lost, id)
		}
	}
	f.log(DoubtedReplaced, change.Doubted)
	f.log(BlindOutnumbered, change.Blind)
	if len(change.Join)+len(change.Doubted)+len(change.Lost)+len(change.Blind) > 0 {
		f.replan(now, change)
	}
}

// isNeeded reports whether a checker is able to check an endpoint that nobody checks.
func (p *Plan) isNeeded(k *health.Checker) bool {
	if len(p.stranded) > mostStranded {
		return true
	}
	for id := range p.stranded {
		if p.lookup.CanCheck(k, id) {
			return true
		}
	}
	return false
}

// isEarly reports whether a doubted checker may only be the first to see an outage. heard is as
// in Fleet.Tick.
func (k *checker) isEarly(heard time.Time, grace time.Duration) bool {
	replaced := k.cover == leastCover || k.cover == fullCover
	return !replaced && !k.doubted.IsZero() && k.cleared.IsZero() && heard.Sub(k.doubted) < grace
}

// noteDoubt records the start of the doubt about a checker. Only after being believed for the
// grace period does another doubt start anew: otherwise a checker with pauses would never be
// replaced.
func (k *checker) noteDoubt(heard time.Time, grace time.Duration, doubted bool) {
	switch {
	case doubted && k.doubted.IsZero():
		k.doubted = heard
	case doubted:
		k.cleared = time.Time{}
	case k.doubted.IsZero():
	case k.cleared.IsZero():
		k.cleared = heard
	case heard.Sub(k.cleared) >= grace:
		k.doubted, k.cleared = time.Time{}, time.Time{}
	}
}

// uncover removes the substitutes of a believed checker, and outnumbers a blind one.
func (f *Fleet) uncover(now time.Time, known *checker, standing Standing, trust Trust, change *assign.Change) {
	blind := standing == Blind
	if blind && known.cover == outnumbered {
		return
	}
	if known.cover > uncovered {
		known.cover = uncovered
		change.Join = append(change.Join, known.Checker)
	}
	if blind && !trust.shaken() && f.mayCover(now, known) {
		known.cover = outnumbered
		change.Blind = append(change.Blind, known.ID)
	}
}

// logShaken logs the start and the end of a time in which doubted checkers get no substitutes.
func (f *Fleet) logShaken(heard time.Time, trust Trust, troubled []string) {
	var held []string
	for _, id := range troubled {
		known := f.checkers[id]
		if trust.shaken() && f.lookup.Standing(id) >= Doubted && known.cover < fullCover && !known.isEarly(heard, f.options.Grace) {
			held = append(held, id)
		}
	}
	switch {
	case len(held) > 0 && !f.doubt.held:
		f.out.Events = append(f.out.Events, Event{Kind: DoubtedHeld, Checkers: held, Trust: trust})
	case len(held) == 0 && f.doubt.held:
		f.out.Events = append(f.out.Events, Event{Kind: DoubtedHeldOver})
	}
	f.doubt.held = len(held) > 0
}

// Trust counts the checkers with seats by the degree to which they are believed.
type Trust struct {
	Believed   int // and not blind
	Doubted    int
	Distrusted int // by an operator
	Blind      int // and believed
	Away       int // lost or silent
}

// lost reports whether most are doubted, or nobody is left to put in their place.
func (t Trust) lost() bool { return t.Believed == 0 || t.Doubted > t.Believed }

// shaken reports whether half of the fleet is unreliable. That probably has one cause, and
// would be too much for the other half.
func (t Trust) shaken() bool { return t.Doubted+t.Distrusted+t.Blind+t.Away >= t.Believed }

// assess counts the fleet, and lists the connected checkers that are not believed, are blind,
// or have substitutes. It records the start of each doubt.
func (f *Fleet) assess(heard time.Time) (trust Trust, troubled []string) {
	for id, known := range f.checkers {
		if f.idle(id) || known.onProbation() {
			continue
		}
		if !known.connected || f.silent[id] != nil {
			trust.Away++
			continue
		}
		standing := f.lookup.Standing(id)
		known.noteDoubt(heard, f.options.Grace, standing == Doubted)
		switch standing {
		case Distrusted:
			trust.Distrusted++
		case Doubted:
			trust.Doubted++
		case Blind:
			trust.Blind++
		case Believed:
			trust.Believed++
		}
		if standing != Believed || known.cover > uncovered {
			troubled = append(troubled, id)
		}
	}
	slices.Sort(troubled)
	return trust, troubled
}

// mayCover reports whether one more checker may get substitutes at all its endpoints, and
// counts it: two, or one in twenty of the fleet, may in a grace period.
func (f *Fleet) mayCover(now time.Time, known *checker) bool {
	allowed := f.doubt.shift.allows(now, known.doubted, 0, 1, max(2, (f.Present().Connected-f.waiting())/20))
	f.doubt.shift.settle(now, 1)
	return allowed
}
