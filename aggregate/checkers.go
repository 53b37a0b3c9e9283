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
	common standing      // in the class 0; first what every judgement asks for
	zone   uint32        // number of its zone; none until it connects
	here   bool          // connected, as far as was told
	lost   bool          // its stream is gone
	word   OperatorTrust // an operator's
	sight  sight

	name     string
	votes    []health.Vote       // where it has seats, with what it said there; seat.place points back
	heard    time.Time           // its latest report; zero where there was none
	heardAt  time.Duration       // the same on the aggregator's clock
	climbing []health.EndpointID // where the run of its reports of down still grows
	others   []standing          // in the other classes, by number
}

// standing is what a checker's votes are worth on the endpoints of one class.
type standing struct {
	record  record
	due     tick // the deadline it waits for while fresh or awaited; 0 where none
	hearing hearing
}

// station is a checker's standing in a class.
type station struct{ checker, class uint32 }

// in gives its standing in a class. Most are in no other than the first.
func (c *checker) in(class uint32) *standing {
	if class == 0 {
		return &c.common
	}
	return &c.others[class-1]
}

// classes is in how many it has a standing.
func (c *checker) classes() int { return 1 + len(c.others) }

func (a *Aggregator) standing(at station) *standing {
	return a.checkers.all[at.checker].in(at.class)
}

// stand sees to it that a checker has a standing in a class.
func (a *Aggregator) stand(c, class uint32) {
	x := &a.checkers.all[c]
	for next := uint32(x.classes()); next <= class; next++ {
		x.others = append(x.others, standing{})
		if !x.heard.IsZero() && a.clock.elapsed-x.heardAt <= a.staleness(next) {
			x.in(next).hearing = fresh
			a.watch(station{c, next})
		}
	}
}

// checkers numbers them. A number is free again when the checker is gone and
// its last seat too.
type checkers struct {
	all  []checker
	ids  map[string]uint32
	free []uint32
}

// release frees a number.
func (k *checkers) release(c uint32) {
	delete(k.ids, k.all[c].name)
	k.all[c] = checker{}
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
	x.votes = append(x.votes, health.Vote{Endpoint: id, Status: noVote})
	return uint32(len(x.votes) - 1)
}

// seat gives a checker's seat at an endpoint where it has one.
func (a *Aggregator) seat(id health.EndpointID, c uint32) *seat {
	e := &a.endpoints[id]
	return &a.seats.of(e)[a.seats.find(e, c)]
}

// swap changes the places of two of a checker's votes.
func (a *Aggregator) swap(c, i, j uint32) {
	if i == j {
		return
	}
	votes := a.checkers.all[c].votes
	votes[i], votes[j] = votes[j], votes[i]
	a.seat(votes[i].Endpoint, c).place, a.seat(votes[j].Endpoint, c).place = i, j
}

// vacate takes seat i of an endpoint away, from both sides.
func (a *Aggregator) vacate(e *endpoint, i int) {
	a.enterRecords(e, &a.seats.of(e)[i], 0)
	a.lookAway(&a.seats.of(e)[i])
	s := a.seats.of(e)[i]
	a.seats.drop(e, i)
	c := &a.checkers.all[s.checker]
	last := len(c.votes) - 1
	if int(s.place) != last {
		c.votes[s.place] = c.votes[last]
		a.seat(c.votes[last].Endpoint, s.checker).place = s.place
	}
	c.votes = c.votes[:last]
	a.release(s.checker)
}

// hear notes that a checker spoke just now.
func (a *Aggregator) hear(c uint32) {
	x := &a.checkers.all[c]
	if x.lost {
		a.restart(c)
	}
	x.heard, x.heardAt = a.clock.now, a.clock.elapsed
	back := false
	for class := range x.classes() {
		if k := x.in(uint32(class)); k.hearing != fresh {
			k.hearing, back = fresh, true
			a.watch(station{c, uint32(class)})
		}
	}
	if back {
		a.startRuns(c)
		a.markAll(c)
	}
}

// watch waits for a checker that is fresh to fall silent.
func (a *Aggregator) watch(at station) {
	k := a.standing(at)
	// A tick later, since the staleness itself is not too old yet.
	k.due = a.clock.in(a.checkers.all[at.checker].heardAt, a.staleness(at.class)) + 1
	a.deadlines.add(k.due, pair{noEndpoint, at.checker})
}

// checkSilence does what is due for a checker as a whole, or for the paths.
func (a *Aggregator) checkSilence(c uint32, now tick) {
	a.endDoubt(c, now)
	if c == noChecker {
		return
	}
	for class := range a.checkers.all[c].classes() {
		at := station{c, uint32(class)}
		k, silence := a.standing(at), a.clock.elapsed-a.checkers.all[c].heardAt
		switch {
		case k.due != now: // not any more
		case k.hearing == fresh && silence <= a.staleness(at.class):
			a.watch(at)
		case k.hearing == fresh:
			// Awaited from now, not from when it fell silent: if this process
			// itself stood still, all come back together, and the first of them
			// must not decide alone.
			k.hearing, k.due = awaited, a.clock.in(a.clock.elapsed, a.options.AwaitFor)
			a.deadlines.add(k.due, pair{noEndpoint, c})
			a.markAll(c)
		default:
			k.hearing, k.due = silent, 0
			a.markAll(c)
		}
	}
}

func (a *Aggregator) markAll(c uint32) {
	for _, v := range a.checkers.all[c].votes {
		a.mark(v.Endpoint, &a.endpoints[v.Endpoint])
	}
}

// move puts a checker into a zone.
func (a *Aggregator) move(c uint32, to health.Locality) {
	x, zone := &a.checkers.all[c], a.zones.enter(to)
	defer a.zones.leave(x.zone)
	if zone == x.zone {
		return
	}
	for _, v := range x.votes {
		e := &a.endpoints[v.Endpoint]
		a.enterRecords(e, &a.seats.of(e)[a.seats.find(e, c)], 0)
	}
	x.zone, a.stirred = zone, true
	a.markAll(c)
}

// place puts an endpoint into a zone.
func (a *Aggregator) place(id health.EndpointID, e *endpoint, in health.Locality) {
	zone := a.zones.enter(in)
	defer a.zones.leave(e.zone)
	if zone == e.zone {
		return
	}
	a.leaveRecords(e)
	e.zone = zone
	a.mark(id, e)
}

// leaveRecords takes what the seats of an endpoint add out of all records.
func (a *Aggregator) leaveRecords(e *endpoint) {
	list := a.seats.of(e)
	for i := range list {
		a.enterRecords(e, &list[i], 0)
	}
}
