package rollout

import (
	"slices"
	"time"

	"hdsd/hds/specifier"
)

// These bound what is on its way to checkers.
const (
	inFlight    = 32 << 20         // bytes of specifiers that no checker follows yet, about, beyond which nobody is sent another
	followed    = 5 * time.Second  // and three report intervals: after that a specifier is late, and its bytes no longer count
	longestWait = 20 * time.Second // for which a specifier waits for those of others
	longestLate = 30 * time.Second // for which a checker is sent nothing while its last specifier is late, as those of many others are
	fewLate     = 3                // or one in ten of those that were sent any: more are many
)

// Pace decides when checkers are sent their next specifier: each when it has followed the
// last, and all while not too many bytes are on their way. So a change that concerns all of
// a large fleet, as a first start does, makes each specifier once, and checkers are not sent
// more than they, and the network, can take. Its owner makes a specifier when Next says so,
// of what the checker is to have then.
//
// A checker that does not follow is sent the next specifier all the same when the last is
// late: it may have rejected that. If many are late at once, they, or hdsd, have too much to
// do, and more would be worse: they wait for up to half a minute.
type Pace struct {
	patience time.Duration
	waiting  map[string]time.Time // checkers that are to be sent one, and since when
	ready    []turn               // of these, those that follow their last, in the order in which they came
	flights  map[string]*flight
	flying   []*flight // in the order in which they were sent; those that have ended too
	late     []*flight // in the order in which they became late; those that have ended too
	lateNow  int       // how many are late
	bytes    int       // of all flights
}

// turn is a checker that waits for nothing but the flights of others.
type turn struct {
	checker string
	since   time.Time
}

// flight is what a checker was sent last.
type flight struct {
	checker   string
	specifier *specifier.Specifier
	state     state
	until     time.Time // when it is late, or given up
	bytes     int       // that count
}

// state is how far a checker is with its specifier.
type state uint8

const (
	landed state = iota // it follows it, or need not
	flying              // it is to follow it
	late                // it should have
)

// NewPace makes a Pace for checkers that report every interval.
func NewPace(report time.Duration) *Pace {
	return &Pace{patience: acceptIntervals*report + followed, waiting: map[string]time.Time{}, flights: map[string]*flight{}}
}

// acceptIntervals is how many report intervals a checker has to follow a specifier, beside
// the time that it takes to come.
const acceptIntervals = 3

// Want notes that a checker is to be sent a specifier.
func (p *Pace) Want(now time.Time, checker string) {
	if _, waits := p.waiting[checker]; !waits {
		p.waiting[checker] = now
		p.queue(checker)
	}
}

// queue gives a checker that waits its turn, unless its last specifier is on its way.
func (p *Pace) queue(checker string) {
	since, waits := p.waiting[checker]
	if f := p.flights[checker]; !waits || f != nil && f.state != landed {
		return
	}
	at, found := slices.BinarySearchFunc(p.ready, since, func(t turn, since time.Time) int { return t.since.Compare(since) })
	for ; found && at < len(p.ready) && p.ready[at].since.Equal(since); at++ {
		if p.ready[at].checker == checker {
			return
		}
	}
	p.ready = slices.Insert(p.ready, at, turn{checker, since})
}

// Next returns the checker that is to be sent its specifier now; false if none is. It no
// longer waits then.
func (p *Pace) Next(now time.Time) (checker string, ok bool) {
	p.expire(now)
	for len(p.ready) > 0 {
		t := p.ready[0]
		if since, waits := p.waiting[t.checker]; !waits || !since.Equal(t.since) || p.flights[t.checker] != nil && p.flights[t.checker].state != landed {
			p.ready = p.ready[1:] // it was told at once, or is gone
			continue
		}
		if p.bytes >= inFlight && now.Sub(t.since) < longestWait {
			break
		}
		p.ready = p.ready[1:]
		delete(p.waiting, t.checker)
		return t.checker, true
	}
	return "", false
}

// Sent notes that a checker is sent a specifier, in its turn or not.
func (p *Pace) Sent(now time.Time, checker string, s *specifier.Specifier) {
	p.Skip(checker)
	before := p.flights[checker]
	if before != nil && specifier.Same(before.specifier, s) && !s.Retell {
		return // nothing is sent
	}
	p.end(before)
	f := &flight{checker: checker, specifier: s}
	if len(s.Order) > 0 {
		f.state, f.until, f.bytes = flying, now.Add(p.patience), s.Size()
		p.bytes += f.bytes
		p.flying = append(p.flying, f)
	}
	p.flights[checker] = f
}

// Skip notes that a checker no longer waits.
func (p *Pace) Skip(checker string) { delete(p.waiting, checker) }

// Followed notes that a checker follows a specifier.
func (p *Pace) Followed(checker string, s *specifier.Specifier) {
	if f := p.flights[checker]; f != nil && f.specifier.Serial == s.Serial {
		p.end(f)
	}
}

// Gone notes that the stream of a checker has begun or ended.
func (p *Pace) Gone(checker string) {
	p.Skip(checker)
	p.end(p.flights[checker])
	delete(p.flights, checker)
}

// Waits reports whether a checker waits for its turn.
func (p *Pace) Waits(checker string) bool {
	_, waits := p.waiting[checker]
	return waits
}

// NextDeadline says when Next may have a checker if nothing else happens.
func (p *Pace) NextDeadline() (next time.Time, ok bool) {
	if len(p.waiting) == 0 {
		return next, false
	}
	for _, flights := range [][]*flight{p.flying, p.late} {
		if len(flights) > 0 && (next.IsZero() || flights[0].until.Before(next)) {
			next = flights[0].until
		}
	}
	return next, !next.IsZero()
}

// expire lets the checkers go whose specifiers are late, unless many are: then when they have
// been late for long.
func (p *Pace) expire(now time.Time) {
	for p.flying = dropLanded(p.flying, flying); len(p.flying) > 0 && !now.Before(p.flying[0].until); p.flying = dropLanded(p.flying, flying) {
		f := p.flying[0]
		p.bytes -= f.bytes
		f.state, f.bytes, f.until = late, 0, f.until.Add(longestLate)
		p.late = append(p.late, f)
		p.lateNow++
	}
	few := p.lateNow < max(fewLate, len(p.flights)/10)
	for p.late = dropLanded(p.late, late); len(p.late) > 0 && (few || !now.Before(p.late[0].until)); p.late = dropLanded(p.late, late) {
		p.end(p.late[0])
	}
}

// dropLanded drops the first flights that are no longer in a state.
func dropLanded(flights []*flight, is state) []*flight {
	for len(flights) > 0 && flights[0].state != is {
		flights[0], flights = nil, flights[1:]
	}
	return flights
}

func (p *Pace) end(f *flight) {
	if f == nil {
		return
	}
	if f.state == late {
		p.lateNow--
	}
	p.bytes -= f.bytes
	f.state, f.bytes = landed, 0
	p.queue(f.checker)
}
