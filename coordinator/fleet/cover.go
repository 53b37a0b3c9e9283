package fleet

import (
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Standing says how far a checker is believed.
type Standing uint8

// The standings of a checker.
const (
	Believed   Standing = iota
	Blind               // it says "up" through outages; its votes count
	Doubted             // its peers contradict it
	Distrusted          // an operator distrusts it
)

// cover is how far substitutes stand in for a checker that is not believed, or
// blind. It keeps its seats and goes on checking, or nobody could tell when it is
// right again.
type cover uint8

const (
	uncovered   cover = iota
	leastCover        // where fewer than two believed checkers are left, as if it was lost
	outnumbered       // where others would not be more than the blind ones
	fullCover         // at each of its endpoints
)

// doubt is what is done about checkers that are not believed, or blind.
type doubt struct {
	shift   shift     // of checkers
	changed bool      // who is believed, or there, is not as it was
	at      time.Time // when to look again in any case
	held    bool      // too many are away for some to get substitutes; this was logged
}

// Reconsider says that the standing of a checker may have changed.
func (f *Fleet) Reconsider() { f.doubt.changed = true }

// replaceDoubted gives substitutes to checkers that are not believed: to all of
// them where too few others are believed, and everywhere at the pace of silent
// checkers. The substitutes leave when the checker is believed again; until then
// they stay, however many more are doubted. Blind checkers are outnumbered at the
// same pace.
//
// A checker that its peers contradict has to be doubted for the grace period first. When
// much fails at once, those that report it first are doubted until the others have.
//
// One that nobody believes is better than nobody: where endpoints are left to it alone, it has no
// substitutes, since a checker with substitutes gets no seats.
//
// A doubted path is no reason: it leads to endpoints that are hard to reach, and
// much of the fleet would be given what checkers of another zone have there.
func (f *Fleet) replaceDoubted(now, heard time.Time) {
	if f.settling || !f.doubt.changed && now.Before(f.doubt.at) {
		return
	}
	f.doubt.changed, f.doubt.at = false, now.Add(f.options.Report)
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

// isEarly reports whether a doubted checker may only have been early to see an outage. heard is as in
// Fleet.Tick.
func (k *checker) isEarly(heard time.Time, grace time.Duration) bool {
	replaced := k.cover == leastCover || k.cover == fullCover
	return !replaced && !k.doubted.IsZero() && k.cleared.IsZero() && heard.Sub(k.doubted) < grace
}

// noteDoubt keeps since when a checker is doubted. It has to be believed for the grace period before
// another doubt counts as a new one: otherwise one that pauses would never be replaced.
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

// uncover takes back the substitutes of a checker that is believed, and
// outnumbers it where it is blind.
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

// logShaken logs when doubted checkers have to do without substitutes, and when
// that is over.
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

// Trust counts the checkers that have seats by how far they are believed.
type Trust struct {
	Believed   int // and not blind
	Doubted    int
	Distrusted int // by operators, who know why
	Blind      int // and believed
	Away       int // lost or silent
}

// lost reports whether most are doubted, or nobody is left to put in their place.
func (t Trust) lost() bool { return t.Believed == 0 || t.Doubted > t.Believed }

// shaken reports whether half of the fleet cannot be relied on. That is likely
// to have one cause, and would be too much for the other half.
func (t Trust) shaken() bool { return t.Doubted+t.Distrusted+t.Blind+t.Away >= t.Believed }

// assess counts the fleet, and lists the connected checkers that are not
// believed, are blind, or have substitutes. It notes since when each is doubted.
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

// mayCover reports whether one more checker may get substitutes wherever it is, and counts
// it: two, or one in twenty of the fleet, may in a grace period.
func (f *Fleet) mayCover(now time.Time, known *checker) bool {
	allowed := f.doubt.shift.allows(now, known.doubted, 0, 1, max(2, (f.Present().Connected-f.waiting())/20))
	f.doubt.shift.settle(now, 1)
	return allowed
}
