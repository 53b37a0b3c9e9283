package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// silence is the state of a connected checker that does not report its endpoints, as an Envoy
// that rejected its specifier.
//
// Its seats move like those of a lost checker: it gets substitutes after three report
// intervals, and loses its seats after the grace period, if that is longer. It then has no work
// until it connects anew or reports after all. It is sent nothing meanwhile: it would take an
// empty specifier, and reject the next load again.
//
// Silent checkers are replaced a few at a time, together with the lost ones, and only while
// enough others are known to report: two for each silent one with seats, or one if only one is
// silent. If many are silent, they have a common cause: a load that they all reject, or that is
// too much for them. The others would not survive it either. Then every seat is kept, and
// endpoints without reports keep their last verdict.
//
// If three or more are silent or lost and most of the fleet has yet to report, they get 90 s
// instead of the three report intervals, if that is longer: while so many begin at once, a slow
// one need not have rejected its specifier.
type silence struct {
	start      time.Time // when it fell silent
	stopped    bool      // it reported on this stream before
	seatsUntil time.Time // when it gives up its seats; zero before it is replaced
	idle       bool      // it gave up its seats
	logged     bool      // its kept seats are logged
}

// replaced reports whether substitutes stand in for the checker.
func (s *silence) replaced() bool { return s != nil && !s.seatsUntil.IsZero() }

// SetSilent notes that a checker reports nothing of its endpoints, or that it reports after
// all.
func (f *Fleet) SetSilent(now time.Time, id string, silent bool) Effects {
	if !silent {
		f.endSilence(now, id)
	} else if known := f.checkers[id]; known != nil && known.connected && f.silent[id] == nil {
		f.out.hush(now, f.silent, known, false)
	}
	return f.effects()
}

// hush notes that a checker is silent.
func (e *Effects) hush(now time.Time, silent map[string]*silence, known *checker, stopped bool) {
	s := &silence{start: now, stopped: stopped}
	if known.onProbation() { // no work has to move
		s.seatsUntil, s.idle = now, true
	}
	silent[known.ID] = s
	e.Silent, e.Recount = append(e.Silent, known.ID), true
	e.add(FellSilent, known).Stopped = stopped
}

// Report notes that a checker reported, and whether it voted.
func (f *Fleet) Report(now time.Time, id string, voted bool) Effects {
	known := f.checkers[id]
	if known == nil {
		return Effects{}
	}
	known.reported = now
	if s := f.silent[id]; s != nil {
		if !s.stopped { // a heartbeat would make it look as if it may vote soon
			return Effects{Ignored: true}
		}
		f.endSilence(now, id)
	}
	known.voted = known.voted || voted
	return f.effects()
}

// endSilence lets a checker that was silent join again.
func (f *Fleet) endSilence(now time.Time, id string) {
	s := f.silent[id]
	if s == nil {
		return
	}
	delete(f.silent, id)
	f.out.add(ReportsAgain, f.checkers[id]).Lasted = now.Sub(s.start)
	f.doubt.changed, f.out.Recount = true, true
	if f.checkers[id].newcomer == nil {
		f.closeFounding(now)
	}
	if s.replaced() {
		f.note(id)
	}
	if s.replaced() && !f.checkers[id].onProbation() {
		f.checkers[id].cover = uncovered
		f.expect(f.checkers[id])
		f.replan(now, assign.Change{Join: []health.Checker{f.checkers[id].Checker}})
	}
}

// findQuiet finds connected checkers that stopped reporting by the time heard.
func (f *Fleet) findQuiet(now, heard time.Time) {
	if now.Before(f.quietAt) {
		return
	}
	f.quietAt = now.Add(f.options.Report)
	patience := f.options.Grace + 3*f.options.Report
	var quiet []string
	for id, known := range f.checkers {
		if known.connected && known.voted && known.assigned > 0 && f.silent[id] == nil && heard.Sub(known.reported) > patience {
			quiet = append(quiet, id)
		}
	}
	slices.Sort(quiet)
	for _, id := range quiet {
		f.out.hush(now, f.silent, f.checkers[id], true)
	}
	f.log(StoppedReporting, quiet)
}

// idle reports whether a checker has no work because it is silent.
func (f *Fleet) idle(id string) bool {
	s := f.silent[id]
	return s != nil && s.idle
}

// lateIntervals is the number of report intervals for which a checker may be silent: it, or
// hdsd, may be busy.
const lateIntervals = 3

// lateness returns the time before a silent checker is replaced. A checker that stopped
// reporting gets none: findQuiet has waited.
func (s *silence) lateness(report time.Duration, begins bool) time.Duration {
	switch {
	case s.stopped:
		return 0
	case begins:
		return max(longestHold, lateIntervals*report)
	}
	return lateIntervals * report
}

// replaceSilent moves the work of silent checkers, while enough others can take it.
func (f *Fleet) replaceSilent(now, heard time.Time) {
	f.giveUpAt = time.Time{}
	if len(f.silent) == 0 || f.settling {
		return
	}
	present := f.muster()
	if present.holdsSilent() {
		f.logHeld()
		return
	}
	begins := present.away >= manyMissing && present.unheard > present.reporting
	var lost, leave []string
	for _, id := range slices.Sorted(maps.Keys(f.silent)) {
		s := f.silent[id]
		switch {
		case !s.replaced() && heard.Sub(s.start) < s.lateness(f.options.Report, begins): // findQuiet is due soon enough
		case !s.replaced() && !f.spares(now, id, present):
			s.seatsUntil = now.Add(max(f.options.Grace-s.lateness(f.options.Report, false), 0))
			lost = append(lost, id)
			f.out.Votes = append(f.out.Votes, VoteChange{Checker: id, Lost: true})
		case s.replaced() && !s.idle && !now.Before(s.seatsUntil) && !f.spares(now, id, present):
			s.idle = true
			leave = append(leave, id)
		}
		if s.replaced() && !s.idle && now.Before(s.seatsUntil) && (f.giveUpAt.IsZero() || s.seatsUntil.Before(f.giveUpAt)) {
			f.giveUpAt = s.seatsUntil // later, findQuiet is due soon enough
		}
	}
	if len(lost)+len(leave) == 0 {
		return
	}
	f.log(SilentReplaced, lost)
	f.log(SilentGivenUp, leave)
	f.replan(now, assign.Change{Lost: lost, Leave: leave})
}

// logHeld logs, once for each, that silent checkers keep their seats.
func (f *Fleet) logHeld() {
	var held []string
	for id, s := range f.silent {
		if !s.idle && !s.logged {
			s.logged = true
			held = append(held, id)
		}
	}
	slices.Sort(held)
	f.log(SilentHeld, held)
}

// holdsSilent reports whether silent checkers keep their seats, since too few others are known
// to report: fewer than two for each silent or lost one, or than one for a single one.
func (m *muster) holdsSilent() bool {
	if m.away == 1 {
		return m.reporting == 0
	}
	return 2*m.away > m.reporting
}

// SilenceReason returns the effect of a checker's silence on its endpoints; empty if it is not
// silent.
func (f *Fleet) SilenceReason(id string) string {
	switch s := f.silent[id]; {
	case s == nil:
		return ""
	case s.idle:
		return "others check its endpoints now: when the cause is gone, restart the checker"
	case s.replaced():
		return "substitutes check its endpoints, and soon others will"
	case f.settling:
		return "its endpoints stay with it until hdsd has settled after its start"
	}
	switch present := f.muster(); {
	case !present.holdsSilent():
		return "its endpoints stay with it until its turn comes: silent checkers are replaced once they are overdue, a few at a time"
	case present.away == 1:
		return "its endpoints stay with it, since no other checker is known to report"
	default:
		return fmt.Sprintf("its endpoints stay with it: two others have to report for each that is silent or lost, and %d report where %d are", present.reporting, present.away)
	}
}
