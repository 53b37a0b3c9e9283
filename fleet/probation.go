package fleet

import (
	"slices"
	"time"
)

// probation tracks established and waiting checkers, and when that changes.
type probation struct {
	lasts   time.Duration // 0: there is no probation
	roll    roll
	present int // established checkers that are connected

	open    bool      // no checker is established: the present ones are founders
	opened  time.Time // when that began
	joined  time.Time // arrival of the latest founder
	founded time.Time // when founders were last established, or the first late one was back after a restart
	lookAt  time.Time // when to review newcomers and founders; zero: there are none
	sweepAt time.Time // when to forget checkers that are absent for long
}

const (
	// foundingCalm is the number of report intervals without an arrival before founders are
	// established.
	foundingCalm = 3

	// keepEstablished is the time for which an absent checker stays established.
	keepEstablished = 7 * 24 * time.Hour

	// mostEstablished bounds the number of remembered absent checkers.
	mostEstablished = 20_000

	sweepEvery = time.Hour
)

// RestoreEstablished takes the stored established checkers, after Restore and before any other
// call. Without any, all checkers of the stored plan are: it is older than probation.
func (f *Fleet) RestoreEstablished(stored map[string]Established) {
	for id, e := range stored {
		if e.Founder && f.checkers[id] == nil { // it has no seats any more
			f.out.setEstablished(id, nil)
			continue
		}
		f.probation.roll.put(id, &e)
	}
	if len(f.probation.roll.records) == f.probation.roll.late {
		for id := range f.checkers {
			f.probation.roll.put(id, &Established{Any: true})
		}
	}
}

// SetProbation sets the duration of probation; 0 means none.
func (f *Fleet) SetProbation(now time.Time, lasts time.Duration) {
	began := f.probation.lasts == 0 && lasts > 0
	f.probation.lasts = lasts
	if began {
		for _, id := range sortedKeys(f.checkers) {
			known := f.checkers[id]
			switch {
			case known.newcomer != nil:
			case known.connected || !known.reported.IsZero(): // even if it is away for a moment
				f.remember(now, known)
			case known.disconnected.IsZero() && !f.missing.begun.IsZero() && !f.probation.roll.knows(id): // nor back since a restart
				f.probation.roll.put(id, &Established{Any: true, Seen: now})
			}
		}
		f.probation.open = f.probation.open && f.isDeserted()
	}
	f.probation.lookAt = now
}

// isEstablished reports whether a checker need not wait.
func (f *Fleet) isEstablished(known *checker) bool {
	e := f.probation.roll.records[known.ID]
	return f.probation.lasts == 0 || f.probation.roll.knows(known.ID) && (e.Any || e.Identity == known.Identity)
}

// isLate reports whether a connecting checker is a late founder. It keeps its seats for the
// duration of a probation, even if it connects anew or hdsd restarts: otherwise a fleet just
// past its first start would lose its work to others.
func (f *Fleet) isLate(now time.Time, known *checker) bool {
	if f.probation.founded.IsZero() {
		f.probation.founded = now
	}
	if now.Sub(f.probation.founded) >= f.probation.lasts {
		f.forgetLate(known.ID)
	}
	e := f.probation.roll.records[known.ID]
	_, seated := f.seats[known.ID]
	return e.Founder && seated && e.Identity == known.Identity
}

// forgetLate removes the mark of a late founder.
func (f *Fleet) forgetLate(id string) {
	if f.probation.roll.records[id].Founder {
		f.setEstablished(id, nil)
	}
}

// remember stores that a checker is established.
func (f *Fleet) remember(now time.Time, known *checker) {
	if f.probation.lasts == 0 {
		return
	}
	f.setEstablished(known.ID, &Established{Identity: known.Identity, Seen: now, StandIn: f.probation.roll.records[known.ID].StandIn})
}

// setEstablished keeps and stores the record of a checker, or removes it if nil.
func (f *Fleet) setEstablished(id string, e *Established) {
	f.probation.roll.put(id, e)
	f.out.setEstablished(id, e)
}

// arrive begins the probation of a connected checker, unless it is established.
func (f *Fleet) arrive(now time.Time, known *checker) {
	known.newcomer = nil
	if f.isEstablished(known) {
		f.probation.present++
		f.forgetLate(known.ID)
		f.remember(now, known)
		if f.probation.lasts > 0 && !f.probation.roll.standsIn(known.ID) {
			f.endStandIns(now)
		}
		f.closeFounding(now)
		return
	}
	known.newcomer = &newcomer{start: now, looked: now}
	if f.probation.lookAt.IsZero() {
		f.probation.lookAt = now.Add(f.options.Report)
	}
	if f.isLate(now, known) {
		known.newcomer.founder = true
		return
	}
	if f.openFounding(now); f.probation.open && !f.awaitsFormer() {
		known.newcomer.founder, f.probation.joined = true, now
	}
}

// depart notes the departure of an established checker.
func (f *Fleet) depart(now time.Time, known *checker) {
	f.probation.present--
	f.remember(now, known)
	f.openFounding(now)
}

// hushed counts the established checkers that are connected and silent.
func (f *Fleet) hushed() (count int) {
	for id := range f.silent {
		if f.checkers[id].newcomer == nil {
			count++
		}
	}
	return count
}

// isDeserted reports whether no established checker is present and reports.
func (f *Fleet) isDeserted() bool { return f.probation.present <= f.hushed() }

// openFounding makes newcomers founders if no established checker reports, or may return to its
// seats after a start.
func (f *Fleet) openFounding(now time.Time) {
	if f.probation.open || !f.isDeserted() || f.settling && f.awaitsEstablished() {
		return
	}
	f.probation.open, f.probation.opened, f.probation.joined = true, now, now
	f.makeFounders(now)
}

// makeFounders gives seats to checkers on probation that need not wait any more.
func (f *Fleet) makeFounders(now time.Time) {
	awaits := f.awaitsFormer()
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.connected && known.onProbation() && f.silent[id] == nil && (!awaits || f.mayStandIn(now, known)) {
			f.endSample(known)
			known.newcomer.founder, f.probation.joined = true, now
			f.seat(now, known)
		}
	}
}

// awaitsEstablished reports whether a checker of the stored plan may come back.
func (f *Fleet) awaitsEstablished() bool {
	for id := range f.absent {
		if f.probation.roll.knows(id) {
			return true
		}
	}
	return false
}

// closeFounding puts founders on probation, since a checker is established.
func (f *Fleet) closeFounding(now time.Time) {
	if !f.probation.open {
		return
	}
	f.probation.open = false
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.newcomer != nil && known.newcomer.founder && !f.probation.roll.records[id].Founder {
			f.demote(now, known)
		}
	}
	f.planChurn(now)
}

// demote puts a founder on probation.
func (f *Fleet) demote(now time.Time, known *checker) {
	*known.newcomer = newcomer{start: known.newcomer.start, looked: now}
	f.forgetLate(known.ID)
	if f.unseat(known.ID); known.connected {
		f.out.Newcomers = append(f.out.Newcomers, known.ID)
	} else {
		delete(f.absent, known.ID)
		f.dismiss(known)
	}
}

// isReady reports whether a founder may be established: it has been there and voted for a
// while.
func (f *Fleet) isReady(now time.Time, known *checker) bool {
	voted := known.voted || known.assigned == 0
	return voted && now.Sub(known.newcomer.start) >= foundingCalm*f.options.Report && f.silent[known.ID] == nil &&
		f.lookup.Standing(known.ID) <= Blind
}

// reviewLast establishes a founder that was not ready when most were, or puts it on probation
// at the end of its time.
func (f *Fleet) reviewLast(now time.Time, known *checker, standIn bool) (established bool) {
	switch {
	case known.connected && f.isReady(now, known) && !(f.settling && f.awaitsEstablished()):
		f.establish(now, known, standIn)
		return true
	case now.Sub(known.newcomer.start) >= f.probation.lasts && now.Sub(f.probation.founded) >= f.probation.lasts:
		f.demote(now, known)
		f.planChurn(now)
	}
	return false
}

// seat gives a checker seats with the next plan.
func (f *Fleet) seat(now time.Time, known *checker) {
	f.expect(known)
	f.churn.moved[known.ID] = true
	f.churn.waiting = append(f.churn.waiting, known.ID)
	f.planChurn(now)
}

// establish ends the probation of a checker, which may only stand in for the earlier ones.
func (f *Fleet) establish(now time.Time, known *checker, standIn bool) {
	wasFounder := known.newcomer.founder
	if !wasFounder {
		f.endSample(known)
	}
	known.newcomer = nil
	f.forgetLate(known.ID)
	f.probation.present += boolToInt(known.connected) // a founder may be lost meanwhile
	f.remember(now, known)
	if e := f.probation.roll.records[known.ID]; f.probation.lasts > 0 {
		if e.StandIn = (time.Time{}); standIn {
			e.StandIn = now
		}
		f.setEstablished(known.ID, &e)
	}
	f.out.Recount = true
	if !wasFounder {
		f.seat(now, known)
	}
}

// reviewNewcomers reviews the checkers on probation at the due time.
func (f *Fleet) reviewNewcomers(now time.Time) {
	if f.out.Settled {
		f.openFounding(now)
		f.probation.lookAt = now
	}
	if f.probation.lookAt.IsZero() || now.Before(f.probation.lookAt) {
		return
	}
	f.probation.lookAt = time.Time{}
	if len(f.checkers) > f.probation.present { // a checker waits
		f.openFounding(now)
	}
	if f.probation.open {
		f.makeFounders(now)
		f.found(now)
	}
	standIn := f.awaitsFormer()
	var expired []string
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.newcomer == nil {
			continue
		}
		f.probation.lookAt = now.Add(f.options.Report)
		if f.probation.lasts == 0 || known.onProbation() && f.look(now, known, f.probation.lasts) {
			f.establish(now, known, standIn)
			expired = append(expired, id)
		} else if known.onProbation() {
			f.yieldToSeats(id)
		} else if !f.probation.open && f.reviewLast(now, known, standIn) {
			expired = append(expired, id)
		}
	}
	f.log(NewcomersEstablished, expired)
}

// found establishes the founders once most of them have voted and no other has come for a
// while. A single founder waits for the duration of a probation, and a minority three times as
// long: if hdsd, or most checkers, cannot keep up with a first start, all go on as they are.
func (f *Fleet) found(now time.Time) {
	waited, calm := !now.Before(f.probation.opened.Add(f.probation.lasts)), foundingCalm*f.options.Report
	if f.settling || f.awaitsEstablished() || !waited && now.Before(f.probation.joined.Add(calm)) {
		return
	}
	var ready, late []*checker
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.newcomer == nil || !known.newcomer.founder || !known.connected {
			continue
		}
		if f.isReady(now, known) {
			ready = append(ready, known)
		} else {
			late = append(late, known)
		}
	}
	minority, latest := len(ready) < len(late), !now.Before(f.probation.opened.Add(3*f.probation.lasts))
	if len(ready) == 0 || !waited && len(ready) < 2 || minority && !latest {
		return
	}
	f.probation.founded = now
	var ids []string
	standIn := f.awaitsFormer()
	for _, known := range ready {
		f.establish(now, known, standIn)
		ids = append(ids, known.ID)
	}
	f.log(NewcomersEstablished, ids)
	f.probation.open = false // the other founders keep their seats, and follow once they have voted
	for _, known := range late {
		f.setEstablished(known.ID, &Established{Identity: known.Identity, Seen: now, Founder: true})
	}
}

// sweepEstablished forgets checkers that are absent for long.
func (f *Fleet) sweepEstablished(now time.Time) {
	if f.probation.sweepAt.IsZero() {
		f.probation.sweepAt = now.Add(sweepEvery)
	}
	if now.Before(f.probation.sweepAt) {
		return
	}
	f.probation.sweepAt = now.Add(sweepEvery)
	f.reviewStandIns(now)
	var away []string
	for _, id := range sortedKeys(f.probation.roll.records) {
		known := f.checkers[id]
		switch e := f.probation.roll.records[id]; {
		case e.Founder: // it has seats for now
		case known != nil && known.connected:
			if now.Sub(e.Seen) > keepEstablished/7 && known.newcomer == nil {
				f.remember(now, known)
			}
		case now.Sub(e.Seen) > keepEstablished:
			f.setEstablished(id, nil)
		default:
			away = append(away, id)
		}
	}
	slices.SortStableFunc(away, func(a, b string) int {
		return f.probation.roll.records[a].Seen.Compare(f.probation.roll.records[b].Seen)
	})
	for _, id := range away[:max(0, len(away)-mostEstablished)] {
		f.setEstablished(id, nil)
	}
}
