package rollout

import (
	"time"

	"hdsd/hds/specifier"
)

// These bound what is on its way to checkers.
const (
	inFlight    = 32 << 20         // bytes of specifiers that no checker follows yet, about, beyond which nobody is sent another
	followed    = 5 * time.Second  // and three report intervals: after that a specifier no longer counts, whether it is followed or not
	longestWait = 20 * time.Second // for which a specifier waits for those of others
)

// Pace decides when checkers are sent their next specifier: each when it has followed the
// last, and all while not too many bytes are on their way. So a change that concerns all of
// a large fleet, as a first start does, makes each specifier once, and checkers are not sent
// more than they, and the network, can take. Its owner makes a specifier when Next says so,
// of what the checker is to have then.
type Pace struct {
	patience time.Duration
	waiting  []turn // in the order in which they came
	waits    map[string]bool
	flights  map[string]*flight
	bytes    int // of all flights
}

// turn is a checker that waits.
type turn struct {
	checker string
	since   time.Time
}

// flight is what a checker was sent last.
type flight struct {
	specifier *specifier.Specifier
	until     time.Time // zero: the checker follows it, or need not
	bytes     int       // that count
}

// NewPace makes a Pace for checkers that report every interval.
func NewPace(report time.Duration) *Pace {
	return &Pace{patience: acceptIntervals*report + followed, waits: map[string]bool{}, flights: map[string]*flight{}}
}

// acceptIntervals is how many report intervals a checker has to follow a specifier, beside
// the time that it takes to come.
const acceptIntervals = 3

// Want notes that a checker is to be sent a specifier.
func (p *Pace) Want(now time.Time, checker string) {
	if !p.waits[checker] {
		p.waits[checker] = true
		p.waiting = append(p.waiting, turn{checker, now})
	}
}

// Next returns the checker that is to be sent its specifier now; false if none is. It no
// longer waits then.
func (p *Pace) Next(now time.Time) (checker string, ok bool) {
	p.expire(now)
	kept := p.waiting[:0]
	for i, t := range p.waiting {
		if !p.waits[t.checker] {
			continue
		}
		if p.busy(t.checker) || p.bytes >= inFlight && now.Sub(t.since) < longestWait {
			kept = append(kept, t)
			continue
		}
		p.waiting = append(kept, p.waiting[i+1:]...)
		delete(p.waits, t.checker)
		return t.checker, true
	}
	p.waiting = kept
	return "", false
}

func (p *Pace) busy(checker string) bool {
	f := p.flights[checker]
	return f != nil && !f.until.IsZero()
}

// Sent notes that a checker is sent a specifier, in its turn or not.
func (p *Pace) Sent(now time.Time, checker string, s *specifier.Specifier) {
	p.Skip(checker)
	before := p.flights[checker]
	if before != nil && specifier.Same(before.specifier, s) && !s.Retell {
		return // nothing is sent
	}
	p.end(before)
	f := &flight{specifier: s}
	if len(s.Order) > 0 {
		f.until, f.bytes = now.Add(p.patience), s.Size()
		p.bytes += f.bytes
	}
	p.flights[checker] = f
}

// Skip notes that a checker no longer waits.
func (p *Pace) Skip(checker string) { delete(p.waits, checker) }

// Followed notes that a checker follows a specifier.
func (p *Pace) Followed(checker string, s *specifier.Specifier) {
	if f := p.flights[checker]; f != nil && f.specifier.Serial == s.Serial {
		p.end(f)
	}
}

// Gone notes that the stream of a checker has begun or ended.
func (p *Pace) Gone(checker string) {
	p.end(p.flights[checker])
	delete(p.flights, checker)
	p.Skip(checker)
}

// Waits reports whether a checker waits for its turn.
func (p *Pace) Waits(checker string) bool { return p.waits[checker] }

// NextDeadline says when Next may have a checker if nothing else happens.
func (p *Pace) NextDeadline() (time.Time, bool) {
	var next time.Time
	if len(p.waits) == 0 {
		return next, false
	}
	for _, f := range p.flights {
		if !f.until.IsZero() && (next.IsZero() || f.until.Before(next)) {
			next = f.until
		}
	}
	return next, !next.IsZero()
}

// expire ends the flights that have lasted too long.
func (p *Pace) expire(now time.Time) {
	for _, f := range p.flights {
		if !f.until.IsZero() && !now.Before(f.until) {
			p.end(f)
		}
	}
}

func (p *Pace) end(f *flight) {
	if f != nil {
		p.bytes -= f.bytes
		f.until, f.bytes = time.Time{}, 0
	}
}
