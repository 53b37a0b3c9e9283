package rollout

import (
	"slices"
	"time"

	"hdsd/envoy/specifier"
)

// These bound the specifiers on their way to checkers.
const (
	inFlight    = 32 << 20         // bytes of specifiers that no checker follows yet, about, beyond which no other is sent
	followed    = 5 * time.Second  // plus three report intervals: after that a specifier is late, and its bytes no longer count
	longestWait = 20 * time.Second // longest wait of a specifier for those of others
	longestLate = 30 * time.Second // longest wait of a checker whose last specifier is late together with those of many others
	fewLate     = 3                // or one in ten of those with a specifier: more are many
)

// Pace decides when checkers get their next specifier: each when it follows the last one, and
// all while not too many bytes are on their way. So a change for a large fleet, such as a first
// start, makes each specifier once, and neither checkers nor the network are overloaded. Its
// owner makes a specifier when Next says so, with the checker's work at that time.
//
// A checker that does not follow its specifier in time gets the next one all the same: it may
// have rejected the last. If many are late at once, they, or hdsd, are overloaded, and more
// would be worse: they wait for up to half a minute.
type Pace struct {
	patience time.Duration
	waiting  map[string]time.Time // checkers that wait for a specifier, with the start of the wait
	ready    []turn               // those that follow their last specifier, in order of arrival
	flights  map[string]*flight
	flying   []*flight // in order of sending; includes ended ones
	late     []*flight // in the order in which they became late; includes ended ones
	lateNow  int       // number of late ones
	bytes    int       // of all flights
}

// turn is a checker that waits only for the flights of others.
type turn struct {
	checker string
	start   time.Time
}

// flight is the latest specifier of a checker.
type flight struct {
	checker   string
	specifier *specifier.Specifier
	state     state
	deadline  time.Time // when it is late, or given up
	bytes     int       // that count
}

// state is a checker's progress with its specifier.
type state uint8

const (
	landed state = iota // the checker follows it, or need not
	flying              // the checker is to follow it
	late                // the time to follow it is over
)

// NewPace makes a Pace for checkers that report every interval.
func NewPace(report time.Duration) *Pace {
	return &Pace{patience: acceptIntervals*report + followed, waiting: map[string]time.Time{}, flights: map[string]*flight{}}
}

// acceptIntervals is the number of report intervals in which a checker must follow a specifier,
// beside its travel time.
const acceptIntervals = 3

// Want notes that a checker needs a specifier.
func (p *Pace) Want(now time.Time, checker string) {
	if _, ok := p.waiting[checker]; !ok {
		p.waiting[checker] = now
		p.queue(checker)
	}
}

// queue gives a waiting checker its turn, unless its last specifier is on its way.
func (p *Pace) queue(checker string) {
	start, ok := p.waiting[checker]
	if f := p.flights[checker]; !ok || f != nil && f.state != landed {
		return
	}
	i, found := slices.BinarySearchFunc(p.ready, start, func(t turn, start time.Time) int { return t.start.Compare(start) })
	for ; found && i < len(p.ready) && p.ready[i].start.Equal(start); i++ {
		if p.ready[i].checker == checker {
			return
		}
	}
	p.ready = slices.Insert(p.ready, i, turn{checker, start})
}

// Next returns and removes the waiting checker whose specifier is due now; false if there is
// none.
func (p *Pace) Next(now time.Time) (checker string, ok bool) {
	p.expire(now)
	for len(p.ready) > 0 {
		t := p.ready[0]
		if start, ok := p.waiting[t.checker]; !ok || !start.Equal(t.start) || p.flights[t.checker] != nil && p.flights[t.checker].state != landed {
			p.ready = p.ready[1:] // it got its specifier at once, or is gone
			continue
		}
		if p.bytes >= inFlight && now.Sub(t.start) < longestWait {
			break
		}
		p.ready = p.ready[1:]
		delete(p.waiting, t.checker)
		return t.checker, true
	}
	return "", false
}

// Sent notes that a checker gets a specifier, in its turn or not.
func (p *Pace) Sent(now time.Time, checker string, s *specifier.Specifier) {
	p.Skip(checker)
	previous := p.flights[checker]
	if previous != nil && specifier.Same(previous.specifier, s) && !s.Retell {
		return // an equal one is not sent
	}
	p.end(previous)
	f := &flight{checker: checker, specifier: s}
	if len(s.Order) > 0 {
		f.state, f.deadline, f.bytes = flying, now.Add(p.patience), s.Size()
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
	_, ok := p.waiting[checker]
	return ok
}

// NextDeadline returns the next time at which Next may have a checker if nothing else happens.
func (p *Pace) NextDeadline() (earliest time.Time, ok bool) {
	if len(p.waiting) == 0 {
		return earliest, false
	}
	for _, flights := range [][]*flight{p.flying, p.late} {
		if len(flights) > 0 && (earliest.IsZero() || flights[0].deadline.Before(earliest)) {
			earliest = flights[0].deadline
		}
	}
	return earliest, !earliest.IsZero()
}

// expire releases checkers whose specifiers are late. If many are, it waits until they have
// been late for long.
func (p *Pace) expire(now time.Time) {
	for p.flying = dropLanded(p.flying, flying); len(p.flying) > 0 && !now.Before(p.flying[0].deadline); p.flying = dropLanded(p.flying, flying) {
		f := p.flying[0]
		p.bytes -= f.bytes
		f.state, f.bytes, f.deadline = late, 0, f.deadline.Add(longestLate)
		p.late = append(p.late, f)
		p.lateNow++
	}
	isFew := p.lateNow < max(fewLate, len(p.flights)/10)
	for p.late = dropLanded(p.late, late); len(p.late) > 0 && (isFew || !now.Before(p.late[0].deadline)); p.late = dropLanded(p.late, late) {
		p.end(p.late[0])
	}
}

// dropLanded drops the first flights that are no longer in the current state.
func dropLanded(flights []*flight, current state) []*flight {
	for len(flights) > 0 && flights[0].state != current {
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
