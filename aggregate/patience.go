package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// Patience is what an endpoint has left of the time for which its verdict may
// wait for others than those whose votes count. All waits draw on it together:
// for who connects, warms up or is absent, for what a cut path would show, and
// for the end of a mass failure. Only settled votes that agree with the verdict,
// or another verdict, restore it, so that waits that begin over and over end, too.

// longestPatience keeps ticks apart that are kept by their low bits.
const longestPatience = math.MaxInt32

// patience of an endpoint: a voter comes back, warms up and is heard, and what it
// contradicts shows. Milliseconds.
func (a *Aggregator) patience(p *policy) uint32 {
	shows := max(a.staleness(p.class), time.Duration(p.round)*time.Millisecond)
	return uint32(min(uint64(milliseconds(a.options.AwaitFor+shows+p.MassHold))+uint64(p.warmUp), longestPatience))
}

// measure takes from the patience of an endpoint that was just decided while its
// verdict waits, and gives it back when settled votes agree with the verdict.
func (a *Aggregator) measure(id health.EndpointID, e *endpoint, t *tally) {
	if a.waits(id, e, t) {
		a.spend(id, e)
		return
	}
	if e.flags&(spending|exhausted) == 0 && e.patience == 0 {
		return
	}
	a.save(e)
	if side, some := a.heard(e); some && (side == neither || side == sideOf(e.status)) {
		e.restore()
	}
}

// waits tells whether the votes that count would lead to another verdict if
// nobody were awaited, or could count if they had not begun to warm up anew.
func (a *Aggregator) waits(id health.EndpointID, e *endpoint, t *tally) bool {
	switch {
	case e.flags&flapping != 0 && t.up > t.down && e.status.Down() && a.damps(id, e):
		return false // damping has an end of its own
	case t.awaited == 0 && e.flags&(hesitating|settling|restrained) == 0:
		return false
	case t.up+t.down == 0 && t.awaited > 0 && (t.warming > 0 || e.patience > 0):
		return true
	}
	alone := *t
	alone.expectNobody(e)
	status, _ := a.policyOf(e).decide(&alone, e.status)
	return status != e.status
}

// heard gives what the settled votes of all who are heard come to, doubted or not,
// and whether there are some. By score, the majority is enough for it.
func (a *Aggregator) heard(e *endpoint) (side, bool) {
	p, t := a.policyOf(e), tally{}
	list := a.seats.of(e)
	for i := range list {
		s := &list[i]
		if !a.judge(p, e, s).weighed() {
			continue
		}
		one := counted(sideOf(s.status))
		t.add(one)
		if p.Kind == ZoneMajority {
			t.inZone(a.checkers.all[s.checker].zone, one)
		}
	}
	if t.up+t.down == 0 {
		return neither, false
	}
	if p.Kind == ZoneMajority {
		return p.side(&t, neither), true
	}
	return p.of(t.count), true
}

// spend counts while a verdict waits. It sets no deadline the first time: who is
// awaited has one that comes sooner, and then the endpoint is decided anew. So
// after a start, most endpoints need none of their own.
func (a *Aggregator) spend(id health.EndpointID, e *endpoint) {
	now, first := uint32(a.clock.watchedTick()), e.patience == 0
	switch {
	case e.flags&exhausted != 0:
		return
	case e.flags&spending == 0:
		e.flags |= spending
		e.patience = now + max(a.patience(a.policyOf(e)), e.patience) - e.patience
	}
	if e.flags&timed == 0 && !first {
		a.foreseePatience(id, e)
	}
}

// foreseePatience sets the deadline at which nothing is left.
func (a *Aggregator) foreseePatience(id health.EndpointID, e *endpoint) {
	at := a.clock.in(a.clock.elapsed, 0) + tick(e.patience-uint32(a.clock.watchedTick()))
	e.flags |= timed
	e.due = uint32(at)
	a.deadlines.add(at, pair{id, ofPatience})
}

// save stops counting.
func (a *Aggregator) save(e *endpoint) {
	if e.flags&spending == 0 {
		return
	}
	e.flags &^= spending | timed
	left := e.patience - uint32(a.clock.watchedTick())
	e.patience = max(a.patience(a.policyOf(e)), left) - left
}

// endPatience decides an endpoint without those who are awaited. Time in which this
// process stood still does not count: all were silent then, and come back one after
// the other.
func (a *Aggregator) endPatience(id health.EndpointID, at tick) {
	e := a.known(id)
	if e == nil || e.flags&timed == 0 || e.due != uint32(at) {
		return
	}
	if int32(e.patience-uint32(a.clock.watchedTick())) > 0 {
		a.foreseePatience(id, e)
		return
	}
	e.flags = e.flags&^(spending|timed) | exhausted
	a.mark(id, e)
}

// overrun ends the patience of an endpoint that has no deadline for it, where
// nobody looked at it in time.
func (a *Aggregator) overrun(e *endpoint) {
	if e.flags&(spending|timed) == spending && int32(e.patience-uint32(a.clock.watchedTick())) <= 0 {
		e.flags = e.flags&^spending | exhausted
	}
}

// restore gives an endpoint all of its patience back.
func (e *endpoint) restore() {
	e.flags &^= spending | timed | exhausted
	e.patience = 0
}

// expectNobody leaves out those who are awaited.
func (t *tally) expectNobody(e *endpoint) {
	t.awaited, t.holds = 0, e.since == never
}
