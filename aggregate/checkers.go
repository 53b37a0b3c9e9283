package aggregate

import (
	"time"

	"hdsd/health"
)

// hearing says whether a checker is there to speak.
type hearing uint8

const (
	silent  hearing = iota // never heard, or awaited no longer
	fresh                  // heard lately: its votes count
	awaited                // has just fallen silent
)

// checker is what is kept of a checker while it is connected or has a seat.
type checker struct {
	name      string
	endpoints []health.EndpointID // where it has seats; seat.place points back
	heard     time.Time           // its latest report; zero where there was none
	heardAt   time.Duration       // the same on the aggregator's clock
	due       tick                // the deadline it waits for while fresh or awaited; 0 where none
	zone      uint16              // number of its zone; 0 until it connects
	record    record
	hearing   hearing
	here      bool // connected, as far as was told
	lost      bool // its stream is gone
}

// checkers numbers them. A number is free again when the checker is gone and
// its last seat too.
type checkers struct {
	all  []checker
	ids  map[string]uint32
	free []uint32
}

// release frees the number of a checker that is no longer known.
func (k *checkers) release(c uint32) {
	x := &k.all[c]
	if x.here || len(x.endpoints) > 0 {
		return
	}
	delete(k.ids, x.name)
	*x = checker{}
	k.free = append(k.free, c)
}

func (k *checkers) intern(name string) uint32 {
	c, ok := k.ids[name]
	if ok {
		return c
	}
	if n := len(k.free); n > 0 {
		c, k.free = k.free[n-1], k.free[:n-1]
	} else {
		c = uint32(len(k.all))
		k.all = append(k.all, checker{})
	}
	k.all[c].name = name
	k.ids[name] = c
	return c
}

// list adds an endpoint to a checker's and gives its place there.
func (k *checkers) list(c uint32, id health.EndpointID) uint32 {
	x := &k.all[c]
	x.endpoints = append(x.endpoints, id)
	return uint32(len(x.endpoints) - 1)
}

// vacate takes seat i of an endpoint away, from both sides.
func (a *Aggregator) vacate(e *endpoint, i int) {
	a.enterRecords(e, &a.seats.of(e)[i], 0)
	s := a.seats.of(e)[i]
	a.seats.drop(e, i)
	c := &a.checkers.all[s.checker]
	last := len(c.endpoints) - 1
	if int(s.place) != last {
		moved := c.endpoints[last]
		c.endpoints[s.place] = moved
		m := &a.endpoints[moved]
		a.seats.of(m)[a.seats.find(m, s.checker)].place = s.place
	}
	c.endpoints = c.endpoints[:last]
	a.checkers.release(s.checker)
}

// hear notes that a checker spoke just now.
func (a *Aggregator) hear(c uint32) {
	x := &a.checkers.all[c]
	if x.lost {
		a.restart(c)
	}
	x.heard, x.heardAt = a.clock.now, a.clock.elapsed
	if x.hearing == fresh {
		return
	}
	x.hearing = fresh
	a.watch(c)
	a.markAll(c)
}

// watch waits for a checker that is fresh to fall silent.
func (a *Aggregator) watch(c uint32) {
	x := &a.checkers.all[c]
	// A tick later, since the staleness itself is not too old yet.
	x.due = a.clock.in(x.heardAt, a.options.Staleness) + 1
	a.deadlines.add(x.due, pair{noEndpoint, c})
}

// checkSilence does what is due for a checker as a whole, or for the paths.
func (a *Aggregator) checkSilence(c uint32, at tick) {
	a.endDoubt(c, at)
	if c == noChecker {
		return
	}
	x := &a.checkers.all[c]
	switch {
	case x.due != at: // not any more
	case x.hearing == fresh && a.clock.elapsed-x.heardAt <= a.options.Staleness:
		a.watch(c)
	case x.hearing == fresh:
		// Awaited from now, not from when it fell silent: if this process
		// itself stood still, all come back together, and the first of them
		// must not decide alone.
		x.hearing, x.due = awaited, a.clock.in(a.clock.elapsed, a.options.Settle)
		a.deadlines.add(x.due, pair{noEndpoint, c})
		a.markAll(c)
	default:
		x.hearing, x.due = silent, 0
		a.markAll(c)
	}
}

func (a *Aggregator) markAll(c uint32) {
	for _, id := range a.checkers.all[c].endpoints {
		a.mark(id, &a.endpoints[id])
	}
}

// move puts a checker into a zone.
func (a *Aggregator) move(c uint32, zone uint16) {
	x := &a.checkers.all[c]
	if zone == x.zone {
		return
	}
	for _, id := range x.endpoints {
		e := &a.endpoints[id]
		a.enterRecords(e, &a.seats.of(e)[a.seats.find(e, c)], 0)
	}
	x.zone = zone
	a.markAll(c)
}

// leaveRecords takes what the seats of an endpoint add out of all records.
func (a *Aggregator) leaveRecords(e *endpoint) {
	list := a.seats.of(e)
	for i := range list {
		a.enterRecords(e, &list[i], 0)
	}
}
