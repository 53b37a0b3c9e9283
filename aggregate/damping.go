package aggregate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"hdsd/health"
)

// Damping holds an endpoint down that goes down again and again, until it has
// been steady for a while (RFC 2439). Each time adds 1000 to a penalty that
// halves in HalfLife rounds: an endpoint is held from Suppress on, until the
// penalty is below Reuse. The zero Damping damps nothing.
type Damping struct {
	Suppress, Reuse float64
	HalfLife        int // in rounds of checks or of reports, whichever are slower
}

// DefaultDamping is as in RFC 2439. Three downs within a minute of rounds of a
// second are held for about as long.
var DefaultDamping = Damping{Suppress: 2000, Reuse: 750, HalfLife: 30}

const (
	penalty  = 1000 // of each time that an endpoint goes down
	ceiling  = 16   // times reuse: the penalty never takes longer than four half-lives
	oblivion = 0.5  // of reuse: below, an endpoint is as good as one that never flapped
)

// flap is what is kept of an endpoint that went down lately.
type flap struct {
	penalty    float64 // as of the moment at
	at         time.Duration
	due        tick // when it has something to do next
	suppressed bool // from Suppress until below Reuse
	held       bool // the votes say up
}

// longestHalfLife is more than anybody waits for, and far from an overflow.
const longestHalfLife = 365 * 24 * time.Hour

// halfLife of penalties.
func (p *policy) halfLife() time.Duration {
	ms := int64(min(p.Damping.HalfLife, 1_000_000)) * int64(p.round)
	return time.Duration(min(ms, longestHalfLife.Milliseconds())) * time.Millisecond
}

// now gives what is left of the penalty.
func (f *flap) now(p *policy, elapsed time.Duration) float64 {
	return f.penalty * math.Exp2(-float64(elapsed-f.at)/float64(p.halfLife()))
}

// fell adds to the penalty of an endpoint that goes down.
func (a *Aggregator) fell(id health.EndpointID, e *endpoint) {
	p := a.policyOf(e)
	if p.Damping.HalfLife <= 0 {
		return
	}
	f := a.flaps[id]
	if f == nil {
		f = &flap{at: a.clock.elapsed}
		if a.flaps == nil {
			a.flaps = map[health.EndpointID]*flap{}
		}
		a.flaps[id] = f
		e.flags |= flapping
	}
	f.penalty, f.at = min(f.now(p, a.clock.elapsed)+penalty, ceiling*p.Damping.Reuse), a.clock.elapsed
	f.suppressed = f.suppressed || f.penalty >= p.Damping.Suppress
	a.foreseeSteady(id, p, f)
}

// foreseeSteady waits for the penalty to be low enough.
func (a *Aggregator) foreseeSteady(id health.EndpointID, p *policy, f *flap) {
	low := p.Damping.Reuse
	if !f.suppressed {
		low *= oblivion
	}
	halves := min(math.Log2(f.now(p, a.clock.elapsed)/low), math.Log2(ceiling/oblivion))
	f.due = a.clock.in(a.clock.elapsed, max(0, time.Duration(halves*float64(p.halfLife())))) + 1
	a.deadlines.add(f.due, pair{id, ofFlap})
}

// endFlap does what is due.
func (a *Aggregator) endFlap(id health.EndpointID, now tick) {
	f, e := a.flaps[id], a.known(id)
	if f == nil || e == nil || f.due != now {
		return
	}
	a.mark(id, e)
	p := a.policyOf(e)
	if f.suppressed && p.Damping.HalfLife > 0 {
		f.suppressed = false
		a.foreseeSteady(id, p, f)
		return
	}
	a.forgetFlap(id, e)
}

func (a *Aggregator) forgetFlap(id health.EndpointID, e *endpoint) {
	if f := a.flaps[id]; f != nil {
		a.holdDown(id, e, f, false)
		delete(a.flaps, id)
	}
	e.flags &^= flapping
}

// damp keeps an endpoint down that went down lately and flaps, unless more than half of its cluster
// is down. It is down again when the votes say so, not when somebody is awaited.
func (a *Aggregator) damp(id health.EndpointID, e *endpoint, to health.Status, votes side) health.Status {
	f, p := a.flaps[id], a.policyOf(e)
	if p.Damping.HalfLife <= 0 {
		a.forgetFlap(id, e)
		return to
	}
	if f.held && to.Down() && votes != down {
		return to
	}
	if f.held && to.Down() {
		a.holdDown(id, e, f, false)
		a.fell(id, e) // it would have been up
		return to
	}
	a.holdDown(id, e, f, e.status.Down() && to.Up() && a.damps(id, e))
	if f.held {
		return e.status
	}
	return to
}

// damps tells whether an endpoint that went down lately is to stay down whatever
// its votes say.
func (a *Aggregator) damps(id health.EndpointID, e *endpoint) bool {
	return a.flaps[id].suppressed && !a.clusters.at(e.cluster).mostlyDown()
}

// holdDown notes whether an endpoint is held down.
func (a *Aggregator) holdDown(id health.EndpointID, e *endpoint, f *flap, held bool) {
	if f.held == held {
		return
	}
	f.held = held
	k := a.clusters.at(e.cluster)
	if held {
		k.held = append(k.held, id)
		a.damped++
	} else {
		i := slices.Index(k.held, id)
		k.held = slices.Delete(k.held, i, i+1)
		a.damped--
	}
}

// Damped is how many endpoints are held down as they flap.
func (a *Aggregator) Damped() int { return a.damped }

// steadyAt says until when an endpoint is held down.
func (a *Aggregator) steadyAt(id health.EndpointID) string {
	return fmt.Sprintf("it flaps, and is held down until %s UTC if it stays up", a.clock.time(a.flaps[id].due).UTC().Format(time.TimeOnly))
}
