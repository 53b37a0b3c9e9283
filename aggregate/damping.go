package aggregate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"hdsd/health"
)

// Damping holds down an endpoint that goes down again and again, until it has been
// steady for a while (RFC 2439). Each down adds 1000 to a penalty that halves in
// HalfLife rounds. hdsd holds an endpoint once the penalty reaches Suppress, until it
// falls below Reuse. The zero Damping is off.
type Damping struct {
	Suppress, Reuse float64
	HalfLife        int // in rounds of checks or of reports, whichever are longer
}

// DefaultDamping has the values of RFC 2439. With rounds of a second, an endpoint
// that goes down three times within a minute is held for about a minute.
var DefaultDamping = Damping{Suppress: 2000, Reuse: 750, HalfLife: 30}

const (
	penaltyOfDown = 1000 // added each time an endpoint goes down
	ceiling       = 16   // times Reuse: the largest penalty, which falls below Reuse within four half-lives
	forgotten     = 0.5  // times Reuse: below this penalty, the endpoint's flapping is forgotten
)

// flap is the state of a recently failed endpoint.
type flap struct {
	penalty    float64 // at time
	time       time.Duration
	due        tick // when the penalty is low enough
	suppressed bool // from Suppress until the penalty is below Reuse
	held       bool // held down although the votes say up
}

// longestHalfLife is longer than any useful half-life, and far from an overflow.
const longestHalfLife = 365 * 24 * time.Hour

// halfLife returns the time in which a penalty halves.
func (p *policy) halfLife() time.Duration {
	ms := int64(min(p.Damping.HalfLife, 1_000_000)) * int64(p.round)
	return time.Duration(min(ms, longestHalfLife.Milliseconds())) * time.Millisecond
}

// now returns the present penalty.
func (f *flap) now(p *policy, elapsed time.Duration) float64 {
	return f.penalty * math.Exp2(-float64(elapsed-f.time)/float64(p.halfLife()))
}

// damping holds down endpoints that flap.
type damping struct {
	clock     *clock
	deadlines *deadlines
	settings  *settings
	roster    *roster
	effects   *Effects
	flaps     map[health.EndpointID]*flap    // damped endpoints that went down lately
	held      map[uint32][]health.EndpointID // endpoints that are down only because they flap, by number of their cluster
	count     int                            // number of endpoints in held
}

func newDamping(c *clock, d *deadlines, s *settings, r *roster, e *Effects) damping {
	return damping{
		clock: c, deadlines: d, settings: s, roster: r, effects: e,
		flaps: map[health.EndpointID]*flap{}, held: map[uint32][]health.EndpointID{},
	}
}

// fell adds to the penalty of an endpoint that went down.
func (d *damping) fell(id health.EndpointID, e *endpoint) {
	p := d.settings.ofEndpoint(e)
	if p.Damping.HalfLife <= 0 {
		return
	}
	f := d.flaps[id]
	if f == nil {
		f = &flap{time: d.clock.elapsed}
		d.flaps[id] = f
		e.set(isFlapping)
	}
	f.penalty, f.time = min(f.now(p, d.clock.elapsed)+penaltyOfDown, ceiling*p.Damping.Reuse), d.clock.elapsed
	f.suppressed = f.suppressed || f.penalty >= p.Damping.Suppress
	d.schedule(id, p, f)
	d.effects.Penalties = append(d.effects.Penalties, PenaltyChange{
		Endpoint: id, Penalty: Penalty{Value: f.penalty, At: d.clock.now, Suppressed: f.suppressed},
	})
}

// restore restores the penalty of an endpoint from before a restart. A time in the future, by a
// clock that was set back, counts as now: so the endpoint is held for four half-lives at most.
func (d *damping) restore(id health.EndpointID, e *endpoint, penalty Penalty) {
	p := d.settings.ofEndpoint(e)
	f := &flap{penalty: min(penalty.Value, ceiling*p.Damping.Reuse), time: d.clock.elapsed - max(0, d.clock.now.Sub(penalty.At))}
	if p.Damping.HalfLife <= 0 || !(f.now(p, d.clock.elapsed) >= forgotten*p.Damping.Reuse) {
		d.effects.Penalties = append(d.effects.Penalties, PenaltyChange{Endpoint: id, Over: true})
		return
	}
	f.penalty, f.time = f.now(p, d.clock.elapsed), d.clock.elapsed
	f.suppressed = penalty.Suppressed && f.penalty >= p.Damping.Reuse
	d.flaps[id] = f
	e.set(isFlapping)
	d.schedule(id, p, f)
	d.roster.mark(id, e)
}

// schedule sets the deadline at which the penalty is low enough.
func (d *damping) schedule(id health.EndpointID, p *policy, f *flap) {
	low := p.Damping.Reuse
	if !f.suppressed {
		low *= forgotten
	}
	halves := min(math.Log2(f.now(p, d.clock.elapsed)/low), math.Log2(ceiling/forgotten))
	f.due = d.clock.tickAfter(max(0, time.Duration(halves*float64(p.halfLife())))) + 1
	d.deadlines.add(f.due, deadline{id, dueDamping})
}

// due ends the suppression of an endpoint, or forgets that it flapped.
func (d *damping) due(id health.EndpointID, now tick) {
	f, e := d.flaps[id], d.roster.endpoint(id)
	if f == nil || e == nil || f.due != now {
		return
	}
	d.roster.mark(id, e)
	p := d.settings.ofEndpoint(e)
	if f.suppressed && p.Damping.HalfLife > 0 {
		f.suppressed = false
		d.schedule(id, p, f)
		return
	}
	d.forget(id, e)
}

// forget forgets that an endpoint flapped.
func (d *damping) forget(id health.EndpointID, e *endpoint) {
	if f := d.flaps[id]; f != nil {
		d.setHeld(id, e, f, false)
		delete(d.flaps, id)
		d.effects.Penalties = append(d.effects.Penalties, PenaltyChange{Endpoint: id, Over: true})
	}
	e.clear(isFlapping)
}

// damp returns the status of a recently failed endpoint. The endpoint stays down while it
// flaps, unless more than half of its cluster is down. Another down of the votes adds to the
// penalty; awaited votes do not.
func (d *damping) damp(id health.EndpointID, e *endpoint, status health.Status, votes side, mostlyDown bool) health.Status {
	f := d.flaps[id]
	if d.settings.ofEndpoint(e).Damping.HalfLife <= 0 {
		d.forget(id, e)
		return status
	}
	if f.held && status.Down() && votes != down {
		return status
	}
	if f.held && status.Down() {
		d.setHeld(id, e, f, false)
		d.fell(id, e) // without damping it would have been up before
		return status
	}
	d.setHeld(id, e, f, e.status.Down() && status.Up() && f.suppressed && !mostlyDown)
	if f.held {
		return e.status
	}
	return status
}

// suppresses reports whether the penalty of an endpoint keeps it down.
func (d *damping) suppresses(id health.EndpointID, e *endpoint) bool {
	return e.has(isFlapping) && d.flaps[id].suppressed
}

// holds reports whether an endpoint is held down.
func (d *damping) holds(id health.EndpointID, e *endpoint) bool {
	return e.has(isFlapping) && d.flaps[id].held
}

// setHeld records whether an endpoint is held down.
func (d *damping) setHeld(id health.EndpointID, e *endpoint, f *flap, held bool) {
	if f.held == held {
		return
	}
	f.held = held
	list := d.held[e.cluster]
	if held {
		d.held[e.cluster] = append(list, id)
		d.count++
		return
	}
	i := slices.Index(list, id)
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		d.held[e.cluster] = list
	} else {
		delete(d.held, e.cluster)
	}
	d.count--
}

// markHeld marks all endpoints of a cluster that are held down.
func (d *damping) markHeld(cluster uint32) {
	for _, id := range d.held[cluster] {
		d.roster.mark(id, d.roster.row(id))
	}
}

// reason returns the reason why an endpoint is held down, with the end.
func (d *damping) reason(id health.EndpointID) string {
	return fmt.Sprintf("it flaps, and is held down until %s UTC if it stays up", d.clock.time(d.flaps[id].due).UTC().Format(time.TimeOnly))
}
