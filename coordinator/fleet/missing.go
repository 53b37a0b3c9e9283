package fleet

import (
	"maps"
	"slices"
	"time"
)

// missing is the lost checkers whose work the others do not get yet. If many are lost at
// once, they have a common cause: a network, or a load that is too much for them. If their
// work moved to the others, those might be lost in turn.
//
// So the others keep what they have while those that are lost or silent have more than a third of
// the seats, and for a while. Then, and where fewer are lost, they get a twentieth of what they have in
// each grace period, whoever it was that had it: a lost checker or a silent one. An endpoint
// that nobody checks meanwhile keeps its last verdict.
type missing struct {
	fleet  *Fleet
	held   map[string]bool // checkers that get no substitutes yet
	logged map[string]bool // those of which it is logged that their seats are kept
	lookAt time.Time       // when to look at them again
	shift  shift           // of seats, those of silent checkers too

	// After a start.
	begun    time.Time // when it began
	returned time.Time // when a checker last came back to its seats
	settled  time.Time // when hdsd had settled, if many had not come back
}

// These bound how long a checker keeps its seats while many are lost: from its own loss on, or others
// that come and go would keep it seated for ever.
const (
	longestHold  = 90 * time.Second
	longestGrace = 12 // grace periods, if that is longer
)

// manyMissing is how many have to be lost or silent for a common cause.
const manyMissing = 3

func newMissing(f *Fleet) *missing {
	return &missing{fleet: f, held: map[string]bool{}, logged: map[string]bool{}, shift: newShift(f.options.Grace)}
}

// muster is who is there and who is not.
type muster struct {
	away, reporting           int // checkers; away: lost or silent
	awaySeats, reportingSeats int

	established, establishedAway int // of those that report, and are away

	unheard int // seats of those that are there, and have yet to report

	seated, fresh int // checkers that have seats, and those that are there without any
}

// nobodyElse reports whether nobody is left to spare: none, or only founders that stand in
// for established checkers.
func (m *muster) nobodyElse() bool {
	return m.reporting == 0 || m.established == 0 && m.establishedAway > 0
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// muster counts checkers and their seats.
func (m *missing) muster() muster {
	f, is := m.fleet, muster{}
	for id, known := range f.checkers {
		_, absent := f.absent[id]
		is.seated += one(f.seats[id] > 0)
		is.fresh += one(known.connected && !known.onProbation() && f.silent[id] == nil && f.seats[id] == 0)
		switch s := f.silent[id]; {
		case known.onProbation():
		case absent, s != nil && !s.idle:
			is.away++
			is.establishedAway += one(known.newcomer == nil)
			is.awaySeats += f.seats[id]
		case m.isReporting(known):
			is.reporting++
			is.established += one(known.newcomer == nil)
			is.reportingSeats += f.seats[id]
		case known.connected:
			is.unheard += f.seats[id]
		}
	}
	return is
}

// longestSettling bounds how far settling may run past Options.Settle.
const longestSettling = 30 * time.Second

// areReturning reports whether many checkers had not come back in time after a start, and others
// still do: hdsd, or its machine, is busy with them.
func (m *missing) areReturning(now time.Time) bool {
	is := m.muster()
	late := is.keepsMany() || is.away > 0 && m.fleet.settleAt.After(m.begun.Add(m.fleet.options.Settle))
	return late && now.Before(m.returned.Add(foundingCalm*m.fleet.options.Report)) && now.Before(m.latest())
}

// latest is when hdsd has settled in any case.
func (m *missing) latest() time.Time { return m.begun.Add(m.fleet.options.Settle + longestSettling) }

// notAfterLatest returns a time, or latest if that comes before it.
func (m *missing) notAfterLatest(at time.Time) time.Time {
	if latest := m.latest(); at.After(latest) {
		return latest
	}
	return at
}

// awaitsMore reports whether those that are not back when hdsd has settled have more seats than may
// move at once. They may only be late, as on a machine that is busy: then it counts them as lost
// from now on, and the others have the time to report first.
func (m *missing) awaitsMore(now time.Time, is muster) bool {
	if !is.keepsMany() {
		return false
	}
	m.settled = now
	return true
}

// keepsMany reports whether more seats are kept for those that are away than the others may get at
// once, apart from what those take that are there without seats: where a fleet has come back under
// other ids, they are the ones to get them. These may get an eighth more than their fair share.
func (m *muster) keepsMany() bool {
	there := m.reportingSeats + m.unheard
	room := m.fresh * (m.awaySeats + there) * 9 / (8 * max(m.seated, 1))
	return there > 0 && m.awaySeats-room > max(there/20, leastShift)
}

// areUnheard reports whether nobody has reported after a start, although some are there.
func (m *missing) areUnheard(now time.Time, is muster) bool {
	return is.reporting == 0 && is.unheard > 0 && !m.settled.IsZero() && now.Before(m.settled.Add(longestHold))
}

// holds reports whether a checker that is lost or silent keeps its seats for now, since too few others are
// known to report: fewer than two seats for each seat of such a checker.
func (m *missing) holds(now time.Time, id string, is muster) bool {
	hold := max(longestHold, longestGrace*m.fleet.options.Grace)
	return !m.fleet.settling && is.away >= manyMissing && !is.nobodyElse() && 2*is.awaySeats > is.reportingSeats && now.Before(m.since(id).Add(hold))
}

// margin is how many endpoints those that report may get in a grace period, or in 5 s if
// that is longer: one in twenty of what they have.
func (m *muster) margin() int { return max(m.reportingSeats/20, leastShift) }

// spares reports whether others may not take over from one more lost checker now.
func (m *missing) spares(now time.Time, id string, is muster) bool {
	if m.fleet.settling || is.nobodyElse() {
		return m.areUnheard(now, is)
	}
	since := m.since(id)
	turn := since
	if known := m.fleet.checkers[id]; m.fleet.silent[id] == nil && known != nil && known.left.After(turn) {
		turn = known.left
	}
	return m.holds(now, id, is) || !m.shift.allows(now, turn, now.Sub(since), m.fleet.seats[id], is.margin())
}

// since says when a checker fell silent or was lost, at the earliest when hdsd had settled.
func (m *missing) since(id string) time.Time {
	if s := m.fleet.silent[id]; s != nil {
		return s.since
	}
	if known := m.fleet.checkers[id]; known != nil && known.lost.After(m.settled) {
		return known.lost
	}
	return m.settled
}

// lost counts the checkers that are lost and keep their seats.
func (m *missing) lost() int {
	n := 0
	for id := range m.fleet.absent {
		if known := m.fleet.checkers[id]; known != nil && !known.onProbation() {
			n++
		}
	}
	return n
}

// withoutSubstitutes notes that a lost checker gets no substitutes yet.
func (m *missing) withoutSubstitutes(now time.Time, id string) {
	m.held[id] = true
	m.lookSoon(now)
}

func (m *missing) lookSoon(now time.Time) {
	if m.lookAt.IsZero() {
		m.lookAt = now.Add(m.fleet.options.Report)
	}
}

// review looks again at lost checkers whose work the others do not get yet.
func (m *missing) review(now time.Time) {
	if m.lookAt.IsZero() || now.Before(m.lookAt) {
		return
	}
	m.lookAt = time.Time{}
	for id := range m.held {
		m.fleet.churn.moved[id] = true
	}
	clear(m.held)
	m.log(now)
}

// log logs, once for each, that lost checkers keep their seats.
func (m *missing) log(now time.Time) {
	var held []string
	logged, present := map[string]bool{}, m.muster()
	for _, id := range slices.Sorted(maps.Keys(m.fleet.absent)) {
		if m.holds(now, id, present) {
			if logged[id] = true; !m.logged[id] {
				held = append(held, id)
			}
		}
	}
	m.logged = logged
	m.fleet.log(LostHeld, held)
}

// isReporting reports whether a checker is connected and known to report.
func (m *missing) isReporting(known *checker) bool {
	return known.connected && m.fleet.silent[known.ID] == nil && (known.voted || known.assigned == 0)
}
