package fleet

import (
	"maps"
	"slices"
	"time"
)

// missing is the lost checkers whose work has not moved yet. If many are lost at once, they
// have a common cause: a network, or an excessive load. Moving their work could then overload
// the others.
//
// So nothing moves for a while as long as lost and silent checkers have more than a third of
// the seats. Then, and where fewer are lost, the others get up to a twentieth more work in each
// grace period, from lost and silent checkers together. An endpoint without a checker keeps its
// last verdict.
type missing struct {
	held   map[string]bool // checkers without substitutes so far
	logged map[string]bool // checkers whose kept seats are logged
	lookAt time.Time       // when to review them
	shift  shift           // of seats, including those of silent checkers

	// These fields belong to a start.
	begun    time.Time // time of the start
	returned time.Time // when a checker last returned to its seats
	settled  time.Time // end of settling, if many had not returned
}

// These bound the time for which a checker keeps its seats while many are lost. It counts from
// the checker's own loss: otherwise others that come and go would keep it seated for ever.
const (
	longestHold  = 90 * time.Second
	longestGrace = 12 // grace periods, if that is longer
)

// manyMissing is the number of lost or silent checkers that suggests a common cause.
const manyMissing = 3

func newMissing(grace time.Duration) missing {
	return missing{held: map[string]bool{}, logged: map[string]bool{}, shift: newShift(grace)}
}

// muster counts present and absent checkers.
type muster struct {
	away, reporting, unheard                int // checkers; away: lost or silent; unheard: connected, without a report so far
	awaySeats, reportingSeats, unheardSeats int

	established, establishedAway int // established checkers that report, and that are away

	seated, fresh int // checkers with seats, and present checkers without
}

// nobodyElse reports whether no checker can take over: none reports, or only founders that
// stand in for established checkers.
func (m *muster) nobodyElse() bool {
	return m.reporting == 0 || m.established == 0 && m.establishedAway > 0
}

func boolToInt(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// muster counts checkers and their seats.
func (f *Fleet) muster() (m muster) {
	for id, known := range f.checkers {
		_, absent := f.absent[id]
		m.seated += boolToInt(f.seats[id] > 0)
		m.fresh += boolToInt(known.connected && !known.onProbation() && f.silent[id] == nil && f.seats[id] == 0)
		switch s := f.silent[id]; {
		case known.onProbation():
		case absent, s != nil && !s.idle:
			m.away++
			m.establishedAway += boolToInt(known.newcomer == nil)
			m.awaySeats += f.seats[id]
		case f.isReporting(known):
			m.reporting++
			m.established += boolToInt(known.newcomer == nil)
			m.reportingSeats += f.seats[id]
		case known.connected:
			m.unheard += boolToInt(s == nil)
			m.unheardSeats += f.seats[id]
		}
	}
	return m
}

// longestSettling bounds the extension of settling past Options.Settle.
const longestSettling = 30 * time.Second

// areReturning reports whether many checkers were late after a start and others are still
// returning: hdsd, or its machine, is busy with them.
func (f *Fleet) areReturning(now time.Time) bool {
	m := f.muster()
	late := m.keepsMany() || m.away > 0 && f.settleAt.After(f.missing.begun.Add(f.options.Settle))
	return late && now.Before(f.missing.returned.Add(foundingCalm*f.options.Report)) && now.Before(f.latestSettling())
}

// latestSettling returns the latest end of settling.
func (f *Fleet) latestSettling() time.Time {
	return f.missing.begun.Add(f.options.Settle + longestSettling)
}

// notAfterLatest returns the earlier of a time and latestSettling.
func (f *Fleet) notAfterLatest(t time.Time) time.Time {
	if latest := f.latestSettling(); t.After(latest) {
		return latest
	}
	return t
}

// awaitsMore reports whether the missing checkers have more seats at the end of settling than
// may move at once. They may only be late, as on a busy machine: then they count as lost from
// now on, and the others have time to report first.
func (f *Fleet) awaitsMore(now time.Time, m muster) bool {
	if !m.keepsMany() {
		return false
	}
	f.missing.settled = now
	return true
}

// keepsMany reports whether missing checkers keep more seats than the others may get at once.
// Seats for present checkers without any do not count, up to an eighth above their fair share:
// if a fleet returns under other ids, it should get them.
func (m *muster) keepsMany() bool {
	present := m.reportingSeats + m.unheardSeats
	room := m.fresh * (m.awaySeats + present) * 9 / (8 * max(m.seated, 1))
	return present > 0 && m.awaySeats-room > max(present/20, leastShift)
}

// areUnheard reports whether no checker has reported after a start, although some are
// connected.
func (f *Fleet) areUnheard(now time.Time, m muster) bool {
	return m.reporting == 0 && m.unheardSeats > 0 && !f.missing.settled.IsZero() && now.Before(f.missing.settled.Add(longestHold))
}

// holds reports whether a lost or silent checker keeps its seats for now, since too few others
// are known to report: fewer than two seats for each seat of such a checker.
func (f *Fleet) holds(now time.Time, id string, m muster) bool {
	hold := max(longestHold, longestGrace*f.options.Grace)
	return !f.settling && m.away >= manyMissing && !m.nobodyElse() && 2*m.awaySeats > m.reportingSeats && now.Before(f.awaySince(id).Add(hold))
}

// margin returns the number of endpoints that reporting checkers may get in a grace period, or
// in 5 s if that is longer: one in twenty of their own.
func (m *muster) margin() int { return max(m.reportingSeats/20, leastShift) }

// spares reports whether others may not take over from one more lost checker now.
func (f *Fleet) spares(now time.Time, id string, m muster) bool {
	if f.settling || m.nobodyElse() {
		return f.areUnheard(now, m)
	}
	start := f.awaySince(id)
	turn := start
	if known := f.checkers[id]; f.silent[id] == nil && known != nil && known.disconnected.After(turn) {
		turn = known.disconnected
	}
	return f.holds(now, id, m) || !f.missing.shift.allows(now, turn, now.Sub(start), f.seats[id], m.margin())
}

// awaySince returns the time at which a checker fell silent or was lost, at the earliest the
// end of settling.
func (f *Fleet) awaySince(id string) time.Time {
	if s := f.silent[id]; s != nil {
		return s.start
	}
	if known := f.checkers[id]; known != nil && known.lost.After(f.missing.settled) {
		return known.lost
	}
	return f.missing.settled
}

// withoutSubstitutes notes that a lost checker gets no substitutes yet.
func (f *Fleet) withoutSubstitutes(now time.Time, id string) {
	f.missing.held[id] = true
	f.lookSoon(now)
}

func (f *Fleet) lookSoon(now time.Time) {
	if f.missing.lookAt.IsZero() {
		f.missing.lookAt = now.Add(f.options.Report)
	}
}

// reviewLost reviews the lost checkers without substitutes.
func (f *Fleet) reviewLost(now time.Time) {
	if f.missing.lookAt.IsZero() || now.Before(f.missing.lookAt) {
		return
	}
	f.missing.lookAt = time.Time{}
	for id := range f.missing.held {
		f.churn.moved[id] = true
	}
	clear(f.missing.held)
	f.logLost(now)
}

// logLost logs, once for each, that lost checkers keep their seats.
func (f *Fleet) logLost(now time.Time) {
	var held []string
	logged, present := map[string]bool{}, f.muster()
	for _, id := range slices.Sorted(maps.Keys(f.absent)) {
		if f.holds(now, id, present) {
			if logged[id] = true; !f.missing.logged[id] {
				held = append(held, id)
			}
		}
	}
	f.missing.logged = logged
	f.log(LostHeld, held)
}

// isReporting reports whether a checker is connected and known to report.
func (f *Fleet) isReporting(known *checker) bool {
	return known.connected && f.silent[known.ID] == nil && (known.voted || known.assigned == 0)
}
