package fleet

import "time"

// Stand-ins are checkers that were established while all earlier ones were away. They decide
// like any other until the first of those returns, which has been trusted for longer. Then they
// are on probation again. A checker that stands in for long enough is established for good.

const (
	// standInFor is the time after which a stand-in is established for good.
	standInFor = time.Hour

	// holdOut is the number of probation lengths for which the fleet waits for the earlier
	// checkers. After that, newcomers may stand in even if they contradict them.
	holdOut = 3
)

// awaitsFormer reports whether all the earlier checkers are away.
func (f *Fleet) awaitsFormer() bool {
	if f.probation.lasts == 0 || len(f.probation.roll.records) == f.probation.roll.standIns+f.probation.roll.late {
		return false
	}
	if f.probation.roll.standIns == 0 {
		return f.probation.present == 0
	}
	for id, known := range f.checkers {
		if known.connected && known.newcomer == nil && !f.probation.roll.standsIn(id) {
			return false
		}
	}
	return true
}

// mayStandIn reports whether a newcomer may stand in for the earlier checkers: it has agreed
// with them or with their last verdicts, or they have been away for too long.
func (f *Fleet) mayStandIn(now time.Time, known *checker) bool {
	n := known.newcomer
	return n.agreed > 0 && n.against.IsZero() || now.Sub(f.probation.opened) >= holdOut*f.probation.lasts
}

// endStandIns puts stand-ins on probation: an earlier checker is back.
func (f *Fleet) endStandIns(now time.Time) {
	if f.probation.roll.standIns == 0 {
		return
	}
	var ended []string
	for _, id := range sortedKeys(f.probation.roll.records) {
		if !f.probation.roll.standsIn(id) {
			continue
		}
		f.setEstablished(id, nil)
		known := f.checkers[id]
		if known == nil || known.newcomer != nil {
			continue
		}
		known.newcomer = &newcomer{start: now}
		if known.connected {
			f.probation.present--
			ended = append(ended, id)
		}
		f.demote(now, known)
	}
	for _, id := range sortedKeys(f.probation.roll.records) {
		if !f.probation.roll.records[id].Founder {
			continue
		}
		if known := f.checkers[id]; known != nil && known.newcomer != nil && known.newcomer.founder {
			f.demote(now, known)
		}
		f.forgetLate(id)
	}
	f.log(StandInsEnded, ended)
	f.out.Recount = true
	if f.probation.lookAt.IsZero() {
		f.probation.lookAt = now.Add(f.options.Report)
	}
	f.planChurn(now)
}

// reviewStandIns establishes stand-ins for good after their time.
func (f *Fleet) reviewStandIns(now time.Time) {
	for _, id := range sortedKeys(f.probation.roll.records) {
		e := f.probation.roll.records[id]
		switch {
		case e.StandIn.IsZero():
		case e.StandIn.After(now): // the clock was set back
			e.StandIn = now
			f.setEstablished(id, &e)
		case now.Sub(e.StandIn) >= standInFor:
			e.StandIn = time.Time{}
			f.setEstablished(id, &e)
		}
	}
}
