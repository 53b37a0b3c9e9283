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
	Report time.Duration // between two reports of a checker
	Grace  time.Duration // for which the seats of a lost checker are kept
	Settle time.Duration // after Begin, in which no seat moves
}

// Lookup answers what a Fleet asks its owner.
type Lookup interface {
	// Standing says how far a checker is believed.
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

// Fleet is the checkers and their Plan. See the package's comment for who may
// call it.
type Fleet struct {
	*Plan
	*Probation

	// Set once.
	options Options
	lookup  Lookup

	capacity Capacity
	checkers map[string]*checker
	absent   map[string]time.Time // when the seats of a checker that is not connected are given up; zero: not known yet
	silent   map[string]*silence  // of those connected

	settling bool
	settleAt time.Time // when that ends; zero until Begin

	quietAt  time.Time // when to look again for checkers that have stopped reporting
	giveUpAt time.Time // when the next silent checker loses its seats; zero: none does
	churn    churn
	missing  *missing
	doubt    doubt

	unwatched unwatched

	out Effects // of the call under way
}

// checker is one that is connected or whose seats are kept.
type checker struct {
	health.Checker
	connected  bool
	voted      bool      // it has voted since it connected
	reported   time.Time // when it last did, on whatever stream
	left       time.Time // when its stream last ended
	lost       time.Time // when that ended on which it last voted
	assigned   int       // endpoints, when its specifier was last made
	nodeWeight float64   // what its node says
	cover      cover
	doubted    time.Time // since when its peers contradict it; zero: they did not for a while
	cleared    time.Time // since when they do not any more; zero: they do
	newcomer   *newcomer // nil: it is established
}

// New makes a Fleet without checkers or endpoints.
func New(o Options, lookup Lookup) *Fleet {
	f := &Fleet{
		options: o, lookup: lookup, capacity: func(k *health.Checker, nodeWeight float64) { k.Weight, k.MaxChecksPerSecond = nodeWeight, 0 },
		checkers: map[string]*checker{}, absent: map[string]time.Time{}, silent: map[string]*silence{}, churn: newChurn(),
	}
	f.missing, f.doubt.shift = newMissing(f), newShift(o.Grace)
	f.Probation = &Probation{fleet: f, established: map[string]Established{}, late: &lateFounders{fleet: f, all: map[string]Established{}}}
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

// Restore takes up the stored plan, before anything else. No seat moves until the time to
// settle has passed, which starts with Begin.
func (f *Fleet) Restore(plan map[string][]health.Hash) {
	f.settling = true
	f.restore(plan)
	for id := range plan {
		f.checkers[id] = &checker{Checker: health.Checker{ID: id}}
		f.absent[id] = time.Time{}
	}
}

// Begin starts the time to settle. Checkers of the stored plan have until its
// end to come back.
func (f *Fleet) Begin(now time.Time) {
	f.missing.begun = now
	f.settleBy(now.Add(f.options.Settle))
}

// settleBy sets when hdsd has settled. Nobody's seats are given up before.
func (f *Fleet) settleBy(at time.Time) {
	f.settleAt = at
	for id, until := range f.absent {
		if until.Before(at) {
			f.absent[id] = at
		}
	}
}

// Connect seats a checker whose stream begins. It waits for its specifier, which is due
// with the next plan.
func (f *Fleet) Connect(now time.Time, k health.Checker) Effects {
	known := f.checkers[k.ID]
	if known == nil {
		known = &checker{}
		f.checkers[k.ID] = known
	}
	f.endHandovers(k.ID, &f.out)
	switch {
	case !known.connected: // else its stream has replaced another
	case known.newcomer == nil:
		f.Probation.present--
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

// expect expects the reports of a checker to begin anew.
func (f *Fleet) expect(known *checker) {
	k := known.Checker
	f.out.Votes = append(f.out.Votes, VoteChange{Checker: k.ID, Connected: &k})
}

// Disconnect keeps the seats of a checker that is lost for the grace period.
func (f *Fleet) Disconnect(now time.Time, id string) Effects {
	known := f.checkers[id]
	if known == nil || !known.connected {
		return Effects{}
	}
	if known.voted || known.assigned == 0 || known.lost.IsZero() { // else it was not back
		known.lost = now
	}
	known.left, known.connected, known.cover, f.doubt.changed = now, false, uncovered, true
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
	f.churn.waiting = slices.DeleteFunc(f.churn.waiting, func(waits string) bool { return waits == id })
	f.planChurn(now)
	return f.effects()
}

// Tick does what is due. The owner knows what checkers have reported until heard: nobody is
// late for what it has not read.
func (f *Fleet) Tick(now, heard time.Time) Effects {
	f.settle(now)
	f.giveUpSeats(now)
	f.missing.review(now)
	f.planChurn(now)
	f.reviewNewcomers(now)
	f.sweepEstablished(now)
	f.findQuiet(now, heard)
	f.replaceSilent(now, heard)
	f.replaceDoubted(now, heard)
	return f.effects()
}

// settle ends settling when its time has come, and a while later where many are still coming
// back. The plan may move from then on.
func (f *Fleet) settle(now time.Time) {
	switch {
	case !f.settling || f.settleAt.IsZero() || now.Before(f.settleAt):
	case f.missing.areReturning(now):
		f.settleBy(f.missing.notAfterLatest(now.Add(f.options.Report)))
	default:
		f.settling, f.doubt.changed, f.out.Settled = false, true, true
		f.unwatched.follow(now, f.Present().Connected, &f.out)
	}
}

// giveUpSeats gives the seats of checkers that did not come back in time to others.
func (f *Fleet) giveUpSeats(now time.Time) {
	if len(f.absent) == 0 && !f.out.Settled {
		return // before all are counted
	}
	var gone []string
	present := f.missing.muster()
	awaits := f.out.Settled && f.missing.awaitsMore(now, present)
	for _, id := range slices.Sorted(maps.Keys(f.absent)) {
		switch at := f.absent[id]; {
		case awaits:
			if least := now.Add(foundingCalm * f.options.Report); at.Before(least) {
				f.absent[id] = least
			}
		case at.IsZero() || now.Before(at):
		case !f.out.Settled && f.missing.spares(now, id, present):
			f.absent[id] = now.Add(f.options.Report)
			f.missing.lookSoon(now)
		default:
			gone = append(gone, id)
			delete(f.absent, id)
			delete(f.checkers, id)
			delete(f.missing.held, id)
			f.late.forget(id)
			f.churn.left[id] = true
		}
	}
	f.log(SeatsGivenUp, gone)
	f.out.GivenUp = gone
	if f.out.Settled {
		f.replan(now, assign.Change{})
	}
}

// replan changes the plan, first for those that came and went.
func (f *Fleet) replan(now time.Time, change assign.Change) {
	taken := 0
	if f.churn.pending() {
		came := f.churn.take(now, f)
		came.Settling = f.settling
		taken = f.change(now, came, &f.out)
	}
	if !isEmpty(&change) || f.out.Settled {
		change.Settling = f.settling
		more := f.change(now, change, &f.out)
		if len(change.Lost)+len(change.Leave) > 0 {
			taken += more
		}
	}
	f.missing.shift.settle(now, taken)
}

func isEmpty(c *assign.Change) bool {
	return len(c.Upsert)+len(c.Remove)+len(c.Join)+len(c.Lost)+len(c.Leave)+len(c.Doubted)+len(c.Blind)+len(c.Divided)+len(c.Undivided) == 0
}

// Apply applies what was queued to the plan.
func (f *Fleet) Apply(now time.Time) Effects {
	f.replan(now, f.takeQueued())
	return f.effects()
}

// Work returns what a checker has to check, for a specifier that is made now; false if it
// gets none.
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

// NextDeadline says when Tick or Dispatch next has something to do if nothing else
// happens. It holds after Tick.
func (f *Fleet) NextDeadline() (time.Time, bool) {
	next := f.quietAt
	wake := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	wake(f.due())
	if f.churn.pending() {
		wake(f.churn.next)
	}
	if f.settling {
		wake(f.settleAt)
	} else {
		wake(f.doubt.at)
	}
	for _, at := range f.absent {
		wake(at)
	}
	wake(f.giveUpAt)
	wake(f.missing.lookAt)
	wake(f.lookAt)
	return next, true
}
