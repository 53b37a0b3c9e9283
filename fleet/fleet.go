package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Options are the parameters of a Fleet.
type Options struct {
	Report time.Duration // interval between two reports of a checker
	Grace  time.Duration // time for which a lost checker keeps its seats
	Settle time.Duration // time after Begin in which no seat moves
}

// Lookup answers the questions of a Fleet to its owner.
type Lookup interface {
	// Standing returns the degree to which a checker is believed.
	Standing(checker string) Standing

	// Believes reports whether the vote of a checker on an endpoint counts.
	Believes(id health.EndpointID, checker string) bool

	// Compare compares the vote of a newcomer on an endpoint with those of established
	// checkers.
	Compare(id health.EndpointID, checker string) Comparison

	// CompareVerdict compares it with the verdict in force.
	CompareVerdict(id health.EndpointID, checker string) Comparison

	// CanCheck reports whether a checker has the abilities to check an endpoint,
	// and reaches it.
	CanCheck(k *health.Checker, id health.EndpointID) bool
}

// Capacity sets the weight and the ceiling of a checker. The node of the checker may have
// a weight; zero stands for none.
type Capacity func(k *health.Checker, nodeWeight float64)

// Fleet is the checkers and their Plan. The package comment says who may call it.
type Fleet struct {
	*Plan

	// options and lookup are set once.
	options Options
	lookup  Lookup

	capacity Capacity
	checkers map[string]*checker
	absent   map[string]time.Time // when a disconnected checker gives up its seats; zero: not known yet
	silent   map[string]*silence  // of connected checkers

	settling bool
	settleAt time.Time // end of settling; zero until Begin

	quietAt  time.Time // when to look again for checkers that stopped reporting
	giveUpAt time.Time // when the next silent checker loses its seats; zero: none does
	churn    churn
	missing  missing
	doubt    doubt

	probation probation

	unwatched unwatched

	out Effects // of the current call
}

// checker is a checker that is connected or keeps its seats.
type checker struct {
	health.Checker
	connected    bool
	voted        bool      // has voted on this stream
	reported     time.Time // latest report, on any stream
	disconnected time.Time // end of its latest stream
	lost         time.Time // end of the latest stream on which it voted
	assigned     int       // number of endpoints in its latest specifier
	nodeWeight   float64   // weight in its node
	cover        cover
	doubted      time.Time // start of the contradiction by its peers; zero: not lately
	cleared      time.Time // end of that contradiction; zero: it lasts
	newcomer     *newcomer // nil: established
}

// New makes a Fleet without checkers or endpoints.
func New(o Options, lookup Lookup) *Fleet {
	f := &Fleet{
		options: o, lookup: lookup, capacity: func(k *health.Checker, nodeWeight float64) { k.Weight, k.MaxChecksPerSecond = nodeWeight, 0 },
		checkers: map[string]*checker{}, absent: map[string]time.Time{}, silent: map[string]*silence{}, churn: newChurn(),
	}
	f.missing, f.doubt.shift = newMissing(o.Grace), newShift(o.Grace)
	f.probation.roll.records = map[string]Established{}
	f.Plan = newPlan(o, lookup, f.present)
	return f
}

// present finds a checker that is connected and not silent.
func (f *Fleet) present(id string) *health.Checker {
	known := f.checkers[id]
	if known == nil || !known.connected || f.silent[id] != nil {
		return nil
	}
	return &known.Checker
}

// Restore takes the stored plan, before any other call. No seat moves until the time to settle
// has passed, which starts with Begin.
func (f *Fleet) Restore(plan map[string][]health.Hash) {
	f.settling = true
	f.restore(plan)
	for id := range plan {
		f.checkers[id] = &checker{Checker: health.Checker{ID: id}}
		f.absent[id] = time.Time{}
	}
}

// Begin starts the time to settle. Checkers of the stored plan have until its end to return.
func (f *Fleet) Begin(now time.Time) {
	f.missing.begun = now
	f.settleBy(now.Add(f.options.Settle))
}

// settleBy sets the end of settling. Until then no checker gives up its seats.
func (f *Fleet) settleBy(end time.Time) {
	f.settleAt = end
	for id, deadline := range f.absent {
		if deadline.Before(end) {
			f.absent[id] = end
		}
	}
}

// Connect seats a checker whose stream begins. Its specifier is due with the next plan.
func (f *Fleet) Connect(now time.Time, k health.Checker) Effects {
	known := f.checkers[k.ID]
	if known == nil {
		known = &checker{}
		f.checkers[k.ID] = known
	}
	f.endHandovers(k.ID, &f.out)
	switch {
	case !known.connected: // otherwise its stream replaced another
	case known.newcomer == nil:
		f.probation.present--
	case known.onProbation():
		f.endSample(known)
	}
	known.nodeWeight = k.Weight
	known.Checker, known.connected, known.voted = k, true, false
	known.cover, f.doubt.changed = uncovered, true
	if _, absent := f.absent[k.ID]; absent && known.lost.IsZero() {
		f.missing.returned = now
	}
	delete(f.absent, k.ID)
	delete(f.missing.held, k.ID)
	delete(f.silent, k.ID)
	if f.arrive(now, known); known.onProbation() {
		f.welcome(now, known)
	} else {
		f.seat(now, known)
	}
	f.unwatched.follow(now, f.Present().Connected, &f.out)
	return f.effects()
}

// expect begins anew with the reports of a checker.
func (f *Fleet) expect(known *checker) {
	k := known.Checker
	f.out.Votes = append(f.out.Votes, VoteChange{Checker: k.ID, Connected: &k})
}

// Disconnect keeps the seats of a lost checker for the grace period.
func (f *Fleet) Disconnect(now time.Time, id string) Effects {
	known := f.checkers[id]
	if known == nil || !known.connected {
		return Effects{}
	}
	if known.voted || known.assigned == 0 || known.lost.IsZero() { // otherwise it was not back
		known.lost = now
	}
	known.disconnected, known.connected, known.cover, f.doubt.changed = now, false, uncovered, true
	f.endHandovers(id, &f.out)
	delete(f.silent, id)
	if known.onProbation() {
		f.endSample(known)
		f.dismiss(known)
		f.unwatched.follow(now, f.Present().Connected, &f.out)
		return f.effects()
	}
	f.absent[id] = now.Add(f.options.Grace)
	if f.settling && f.absent[id].Before(f.settleAt) {
		f.absent[id] = f.settleAt
	}
	if known.newcomer == nil {
		f.depart(now, known)
	}
	f.out.add(Lost, known)
	f.unwatched.follow(now, f.Present().Connected, &f.out)
	f.out.Votes = append(f.out.Votes, VoteChange{Checker: id, Lost: true})
	f.churn.moved[id] = true
	f.churn.waiting = slices.DeleteFunc(f.churn.waiting, func(waiting string) bool { return waiting == id })
	f.planChurn(now)
	return f.effects()
}

// Tick does the due work. The owner has read all reports until heard: a checker is never late
// for an unread report.
func (f *Fleet) Tick(now, heard time.Time) Effects {
	f.settle(now)
	f.giveUpSeats(now)
	f.reviewLost(now)
	f.planChurn(now)
	f.reviewNewcomers(now)
	f.sweepEstablished(now)
	f.findQuiet(now, heard)
	f.replaceSilent(now, heard)
	f.replaceDoubted(now, heard)
	return f.effects()
}

// settle ends settling at its time, or later while many checkers are still returning. The plan
// may move from then on.
func (f *Fleet) settle(now time.Time) {
	switch {
	case !f.settling || f.settleAt.IsZero() || now.Before(f.settleAt):
	case f.areReturning(now):
		f.settleBy(f.notAfterLatest(now.Add(f.options.Report)))
	default:
		f.settling, f.doubt.changed, f.out.Settled = false, true, true
		f.unwatched.follow(now, f.Present().Connected, &f.out)
	}
}

// giveUpSeats gives the seats of checkers that did not return in time to others.
func (f *Fleet) giveUpSeats(now time.Time) {
	if len(f.absent) == 0 && !f.out.Settled {
		return // not all are counted yet
	}
	var lost []string
	present := f.muster()
	awaits := f.out.Settled && f.awaitsMore(now, present)
	for _, id := range slices.Sorted(maps.Keys(f.absent)) {
		switch deadline := f.absent[id]; {
		case awaits:
			if earliest := now.Add(foundingCalm * f.options.Report); deadline.Before(earliest) {
				f.absent[id] = earliest
			}
		case deadline.IsZero() || now.Before(deadline):
		case !f.out.Settled && f.spares(now, id, present):
			f.absent[id] = now.Add(f.options.Report)
			f.lookSoon(now)
		default:
			lost = append(lost, id)
			delete(f.absent, id)
			delete(f.checkers, id)
			delete(f.missing.held, id)
			f.forgetLate(id)
			f.churn.left[id] = true
		}
	}
	f.log(SeatsGivenUp, lost)
	f.out.GivenUp = lost
	if f.out.Settled {
		f.replan(now, assign.Change{})
	}
}

// replan changes the plan, first for checkers that came and went.
func (f *Fleet) replan(now time.Time, change assign.Change) {
	taken := 0
	if f.churn.pending() {
		came := f.churn.drain(now, f)
		came.Settling = f.settling
		taken = f.change(now, came, &f.out)
	}
	if !isEmpty(&change) || f.out.Settled {
		change.Settling = f.settling
		endpoints := f.change(now, change, &f.out)
		if len(change.Lost)+len(change.Leave) > 0 {
			taken += endpoints
		}
	}
	f.missing.shift.settle(now, taken)
}

func isEmpty(c *assign.Change) bool {
	return len(c.Upsert)+len(c.Remove)+len(c.Join)+len(c.Held)+len(c.Lost)+len(c.Leave)+len(c.Doubted)+len(c.Blind)+len(c.Divided)+len(c.Undivided) == 0
}

// Apply applies the queued changes to the plan.
func (f *Fleet) Apply(now time.Time) Effects {
	f.replan(now, f.drainQueued())
	return f.effects()
}

// Work returns a checker's work, for the specifier being made; false if it gets none.
func (f *Fleet) Work(id string) (Work, bool) {
	known := f.checkers[id]
	if known == nil {
		return Work{}, false
	}
	f.specified(id)
	known.assigned = f.Part(id).Endpoints + len(f.samples[id])
	if !known.connected || f.idle(id) {
		return Work{}, false
	}
	return f.work(&known.Checker), true
}

// NextDeadline returns the next time at which Tick or Dispatch has work if nothing else
// happens. It is valid after Tick.
func (f *Fleet) NextDeadline() (time.Time, bool) {
	earliest := f.quietAt
	wake := func(t time.Time) {
		if !t.IsZero() && t.Before(earliest) {
			earliest = t
		}
	}
	wake(f.due())
	if f.churn.pending() {
		wake(f.churn.nextPlan)
	}
	if f.settling {
		wake(f.settleAt)
	} else {
		wake(f.doubt.lookAt)
	}
	for _, deadline := range f.absent {
		wake(deadline)
	}
	wake(f.giveUpAt)
	wake(f.missing.lookAt)
	wake(f.probation.lookAt)
	return earliest, true
}
