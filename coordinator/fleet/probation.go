package fleet

import (
	"slices"
	"time"
)

// Established is a checker that was on probation, or was there before others.
type Established struct {
	Identity string // of its certificate; empty without one
	Any      bool   // whoever comes under its id first: a plan without identities names it
	Seen     time.Time
	StandIn  time.Time // since when it stands in for earlier checkers that are away; zero: it does not
	Founder  bool      // it is not established: a late founder
}

// Probation knows who is established, who waits, and when that changes.
type Probation struct {
	fleet       *Fleet
	lasts       time.Duration // 0: nobody waits
	established map[string]Established
	late        *lateFounders
	present     int // established checkers that are connected
	standIns    int // of established

	open    bool      // nobody is established: those that are there are founders
	opened  time.Time // since when
	joined  time.Time // when the latest founder came
	lookAt  time.Time // when to look at newcomers and founders again; zero: there are none
	sweepAt time.Time // when to forget who was not seen for long
}

const (
	// foundingCalm is how many report intervals nobody may join before founders are
	// established.
	foundingCalm = 3

	// keepEstablished is for how long a checker that is not seen stays established.
	keepEstablished = 7 * 24 * time.Hour

	// mostEstablished is how many may be remembered that are not connected.
	mostEstablished = 20_000

	sweepEvery = time.Hour
)

// RestoreEstablished takes up who was established, after Restore and before anything
// else. Without any, those of the stored plan are: it is of a time without probation.
func (p *Probation) RestoreEstablished(all map[string]Established) {
	f := p.fleet
	for id, e := range all {
		if e.Founder {
			p.late.restore(id, e)
			continue
		}
		p.established[id] = e
		p.countStandIn(e, 1)
	}
	if len(p.established) == 0 {
		for id := range f.checkers {
			p.established[id] = Established{Any: true}
		}
	}
}

// SetProbation sets how long probation lasts. With 0, nobody waits.
func (p *Probation) SetProbation(now time.Time, lasts time.Duration) {
	f := p.fleet
	began := p.lasts == 0 && lasts > 0
	p.lasts = lasts
	if began {
		for _, id := range sortedKeys(f.checkers) {
			known := f.checkers[id]
			_, established := p.established[id]
			switch {
			case known.newcomer != nil:
			case known.connected || !known.reported.IsZero(): // one that is away for a moment, too
				p.remember(now, known)
			case known.left.IsZero() && !f.missing.begun.IsZero() && !established: // nor is it back since a restart
				p.established[id] = Established{Any: true, Seen: now}
			}
		}
		p.open = p.open && p.isDeserted()
	}
	p.lookAt = now
}

// isEstablished reports whether a checker need not wait.
func (p *Probation) isEstablished(known *checker) bool {
	e, ok := p.established[known.ID]
	return p.lasts == 0 || ok && (e.Any || e.Identity == known.Identity)
}

// remember stores that a checker is established.
func (p *Probation) remember(now time.Time, known *checker) {
	if p.lasts == 0 {
		return
	}
	p.setEstablished(known.ID, &Established{Identity: known.Identity, Seen: now, StandIn: p.established[known.ID].StandIn})
}

// setEstablished keeps and stores that a checker is established; nil: that it is not.
func (p *Probation) setEstablished(id string, e *Established) {
	p.countStandIn(p.established[id], -1)
	p.late.forget(id)
	if delete(p.established, id); e != nil {
		p.established[id] = *e
		p.countStandIn(*e, 1)
	}
	p.fleet.out.setEstablished(id, e)
}

// arrive begins the probation of a checker that has connected, unless it is established.
func (p *Probation) arrive(now time.Time, known *checker) {
	f := p.fleet
	known.newcomer = nil
	if p.isEstablished(known) {
		p.present++
		p.late.forget(known.ID)
		p.remember(now, known)
		if p.lasts > 0 && !p.standsIn(known.ID) {
			p.endStandIns(now)
		}
		p.closeFounding(now)
		return
	}
	known.newcomer = &newcomer{since: now, looked: now}
	if p.lookAt.IsZero() {
		p.lookAt = now.Add(f.options.Report)
	}
	if p.late.has(now, known, p.lasts) {
		known.newcomer.founder = true
		return
	}
	if p.openFounding(now); p.open && !p.awaitsFormer() {
		known.newcomer.founder, p.joined = true, now
	}
}

// depart notes that an established checker is gone.
func (p *Probation) depart(now time.Time, known *checker) {
	p.present--
	p.remember(now, known)
	p.openFounding(now)
}

// hushed counts the established checkers that are there and report nothing.
func (p *Probation) hushed() (count int) {
	for id := range p.fleet.silent {
		if p.fleet.checkers[id].newcomer == nil {
			count++
		}
	}
	return count
}

// isDeserted reports whether nobody is established, is there and reports.
func (p *Probation) isDeserted() bool { return p.present <= p.hushed() }

// openFounding makes newcomers founders where nobody is established, is there and reports,
// or may come back to its seats after a start.
func (p *Probation) openFounding(now time.Time) {
	f := p.fleet
	if p.open || !p.isDeserted() || f.settling && p.awaitsEstablished() {
		return
	}
	p.open, p.opened, p.joined = true, now, now
	p.makeFounders(now)
}

// makeFounders gives seats to those on probation that need not wait any more.
func (p *Probation) makeFounders(now time.Time) {
	f := p.fleet
	awaits := p.awaitsFormer()
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.connected && known.onProbation() && f.silent[id] == nil && (!awaits || p.mayStandIn(now, known)) {
			p.endSample(known)
			known.newcomer.founder, p.joined = true, now
			f.seat(now, known)
		}
	}
}

// awaitsEstablished reports whether a checker of the stored plan may come back.
func (p *Probation) awaitsEstablished() bool {
	f := p.fleet
	for id := range f.absent {
		if _, ok := p.established[id]; ok {
			return true
		}
	}
	return false
}

// closeFounding puts founders on probation, since somebody is established.
func (p *Probation) closeFounding(now time.Time) {
	f := p.fleet
	if !p.open {
		return
	}
	p.open = false
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if _, late := p.late.all[id]; known.newcomer != nil && known.newcomer.founder && !late {
			p.demote(now, known)
		}
	}
	f.planChurn(now)
}

// demote puts a founder on probation.
func (p *Probation) demote(now time.Time, known *checker) {
	f := p.fleet
	*known.newcomer = newcomer{since: known.newcomer.since, looked: now}
	p.late.forget(known.ID)
	if p.unseat(known.ID); known.connected {
		f.out.Newcomers = append(f.out.Newcomers, known.ID)
	} else {
		delete(f.absent, known.ID)
		p.dismiss(known)
	}
}

// isReady reports whether a founder may be established: it has been there and voted for a
// while.
func (p *Probation) isReady(now time.Time, known *checker) bool {
	f := p.fleet
	voted := known.voted || known.assigned == 0
	return voted && now.Sub(known.newcomer.since) >= foundingCalm*f.options.Report && f.silent[known.ID] == nil &&
		f.lookup.Standing(known.ID) <= Blind
}

// reviewLast establishes a founder that was not ready when most were, or puts it on
// probation when it has had its time.
func (p *Probation) reviewLast(now time.Time, known *checker, standIn bool) (established bool) {
	switch {
	case known.connected && p.isReady(now, known) && !(p.fleet.settling && p.awaitsEstablished()):
		p.establish(now, known, standIn)
		return true
	case now.Sub(known.newcomer.since) >= p.lasts && p.late.isOver(now, p.lasts):
		p.demote(now, known)
		p.fleet.planChurn(now)
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

// establish ends the probation of a checker. It may only stand in for the earlier ones.
func (p *Probation) establish(now time.Time, known *checker, standIn bool) {
	f := p.fleet
	wasFounder := known.newcomer.founder
	if !wasFounder {
		p.endSample(known)
	}
	known.newcomer = nil
	p.late.forget(known.ID)
	p.present += one(known.connected) // a founder may be lost meanwhile
	p.remember(now, known)
	if e := p.established[known.ID]; p.lasts > 0 {
		if e.StandIn = (time.Time{}); standIn {
			e.StandIn = now
		}
		p.setEstablished(known.ID, &e)
	}
	f.out.Recount = true
	if !wasFounder {
		f.seat(now, known)
	}
}

// reviewNewcomers looks at who is on probation, when it is time.
func (p *Probation) reviewNewcomers(now time.Time) {
	f := p.fleet
	if f.out.Settled {
		p.openFounding(now)
		p.lookAt = now
	}
	if p.lookAt.IsZero() || now.Before(p.lookAt) {
		return
	}
	p.lookAt = time.Time{}
	if len(f.checkers) > p.present { // somebody waits
		p.openFounding(now)
	}
	if p.open {
		p.makeFounders(now)
		p.found(now)
	}
	standIn := p.awaitsFormer()
	var over []string
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.newcomer == nil {
			continue
		}
		p.lookAt = now.Add(f.options.Report)
		if p.lasts == 0 || known.onProbation() && p.look(now, known, p.lasts) {
			p.establish(now, known, standIn)
			over = append(over, id)
		} else if known.onProbation() {
			p.yieldToSeats(id)
		} else if !p.open && p.reviewLast(now, known, standIn) {
			over = append(over, id)
		}
	}
	f.log(NewcomersEstablished, over)
}

// found establishes the founders once most of them have voted and nobody else has come
// for a while. One alone waits until one on probation would be established, and a minority
// for three times as long: where hdsd, or most checkers, cannot keep up with a first start,
// all go on as they are.
func (p *Probation) found(now time.Time) {
	f := p.fleet
	waited, calm := !now.Before(p.opened.Add(p.lasts)), foundingCalm*f.options.Report
	if f.settling || p.awaitsEstablished() || !waited && now.Before(p.joined.Add(calm)) {
		return
	}
	var ready, late []*checker
	for _, id := range sortedKeys(f.checkers) {
		known := f.checkers[id]
		if known.newcomer == nil || !known.newcomer.founder || !known.connected {
			continue
		}
		if p.isReady(now, known) {
			ready = append(ready, known)
		} else {
			late = append(late, known)
		}
	}
	few, latest := len(ready) < len(late), !now.Before(p.opened.Add(3*p.lasts))
	if len(ready) == 0 || !waited && len(ready) < 2 || few && !latest {
		return
	}
	p.late.founded = now
	var ids []string
	standIn := p.awaitsFormer()
	for _, known := range ready {
		p.establish(now, known, standIn)
		ids = append(ids, known.ID)
	}
	f.log(NewcomersEstablished, ids)
	p.open = false // the other founders keep their seats, and follow when they have voted
	for _, known := range late {
		p.late.keep(now, known)
	}
}

// sweepEstablished forgets who has not been seen for long.
func (p *Probation) sweepEstablished(now time.Time) {
	f := p.fleet
	if p.sweepAt.IsZero() {
		p.sweepAt = now.Add(sweepEvery)
	}
	if now.Before(p.sweepAt) {
		return
	}
	p.sweepAt = now.Add(sweepEvery)
	p.reviewStandIns(now)
	var away []string
	for _, id := range sortedKeys(p.established) {
		known := f.checkers[id]
		switch e := p.established[id]; {
		case known != nil && known.connected:
			if now.Sub(e.Seen) > keepEstablished/7 && known.newcomer == nil {
				p.remember(now, known)
			}
		case now.Sub(e.Seen) > keepEstablished:
			p.setEstablished(id, nil)
		default:
			away = append(away, id)
		}
	}
	slices.SortStableFunc(away, func(a, b string) int { return p.established[a].Seen.Compare(p.established[b].Seen) })
	for _, id := range away[:max(0, len(away)-mostEstablished)] {
		p.setEstablished(id, nil)
	}
}
