package fleet

import "time"

// Stand-ins are checkers that were established while all the earlier ones were away. They
// decide like any other until the first of those comes back, which has been trusted for
// longer. Then they are on probation again. A checker that stands in for long enough is
// established for good.

const (
	// standInFor is how long a checker stands in before it is established for good.
	standInFor = time.Hour

	// holdOut is how many times the length of a probation the fleet waits for the earlier
	// checkers. After that, newcomers may stand in even if they contradict them.
	holdOut = 3
)

// countStandIn adds n to the number of stand-ins if a checker is one.
func (p *Probation) countStandIn(e Established, n int) {
	if !e.StandIn.IsZero() {
		p.standIns += n
	}
}

func (p *Probation) standsIn(id string) bool { return !p.established[id].StandIn.IsZero() }

// awaitsFormer reports whether all the earlier checkers are away.
func (p *Probation) awaitsFormer() bool {
	if p.lasts == 0 || len(p.established) == p.standIns {
		return false
	}
	if p.standIns == 0 {
		return p.present == 0
	}
	for id, known := range p.fleet.checkers {
		if known.connected && known.newcomer == nil && !p.standsIn(id) {
			return false
		}
	}
	return true
}

// mayStandIn reports whether a newcomer may stand in for the earlier checkers: it has
// agreed with them or with the verdicts that they left, or they have been away for too long.
func (p *Probation) mayStandIn(now time.Time, known *checker) bool {
	n := known.newcomer
	return n.agreed > 0 && n.against.IsZero() || now.Sub(p.opened) >= holdOut*p.lasts
}

// endStandIns puts stand-ins on probation: an earlier checker is back.
func (p *Probation) endStandIns(now time.Time) {
	f := p.fleet
	if p.standIns == 0 {
		return
	}
	var ended []string
	for _, id := range sortedKeys(p.established) {
		if !p.standsIn(id) {
			continue
		}
		p.setEstablished(id, nil)
		known := f.checkers[id]
		if known == nil || known.newcomer != nil {
			continue
		}
		known.newcomer = &newcomer{since: now}
		if known.connected {
			p.present--
			ended = append(ended, id)
		}
		p.demote(now, known)
	}
	for _, id := range sortedKeys(p.late.all) {
		if known := f.checkers[id]; known != nil && known.newcomer != nil && known.newcomer.founder {
			p.demote(now, known)
		}
		p.late.forget(id)
	}
	f.log(StandInsEnded, ended)
	f.out.Recount = true
	if p.lookAt.IsZero() {
		p.lookAt = now.Add(f.options.Report)
	}
	f.planChurn(now)
}

// reviewStandIns establishes checkers for good that have stood in for long enough.
func (p *Probation) reviewStandIns(now time.Time) {
	for _, id := range sortedKeys(p.established) {
		e := p.established[id]
		switch {
		case e.StandIn.IsZero():
		case e.StandIn.After(now): // the clock was set back
			e.StandIn = now
			p.setEstablished(id, &e)
		case now.Sub(e.StandIn) >= standInFor:
			e.StandIn = time.Time{}
			p.setEstablished(id, &e)
		}
	}
}
