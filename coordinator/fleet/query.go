package fleet

import (
	"iter"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Checker is what is known of one, for people.
type Checker struct {
	health.Checker
	Connected  bool
	LastReport time.Time      // on whatever stream; zero: none is known
	Plan       assign.Checker // its part of the plan, or its sample
	Probation  *Progress      // nil: it is established
}

// Progress is how far the probation of a checker is.
type Progress struct {
	Since  time.Time
	Agreed time.Duration // with established checkers
	Wrong  time.Time     // since when it disagrees; zero: it does not
}

// probationOf returns how far a checker is on probation, or nil.
func (k *checker) probationOf() *Progress {
	if !k.onProbation() {
		return nil
	}
	return &Progress{Since: k.newcomer.since, Agreed: k.newcomer.agreed, Wrong: k.newcomer.against}
}

// Checkers returns those that are connected or whose seats are kept, in no order.
func (f *Fleet) Checkers() iter.Seq[Checker] {
	return func(yield func(Checker) bool) {
		for id, known := range f.checkers {
			part := f.Part(id)
			part.Endpoints += len(f.samples[id])
			if !yield(Checker{known.Checker, known.connected, known.reported, part, known.probationOf()}) {
				return
			}
		}
	}
}

// Connected reports whether a checker is connected.
func (f *Fleet) Connected(id string) bool {
	known := f.checkers[id]
	return known != nil && known.connected
}

// Presence counts checkers.
type Presence struct {
	Connected int
	Silent    int // of those
}

// Present counts the checkers that are there. Unlike Figures, it looks at no endpoint.
func (f *Fleet) Present() Presence {
	return Presence{Connected: len(f.checkers) - len(f.absent), Silent: len(f.silent)}
}

// Settling reports whether hdsd waits for checkers to come back.
func (f *Fleet) Settling() bool { return f.settling }

// Figures are those of the fleet.
type Figures struct {
	Connected int // checkers
	Seated    int // checkers that are connected or whose seats are kept
	Silent    int // checkers
	Stranded  int // endpoints
	Probation int // checkers

	UnwatchedSince time.Time // since when no checker is connected; zero if one is, or hdsd settles
}

// OnProbation reports whether a checker is.
func (p *Probation) OnProbation(id string) bool {
	f := p.fleet
	known := f.checkers[id]
	return known != nil && known.onProbation()
}

// waiting counts the checkers on probation.
func (p *Probation) waiting() (count int) {
	f := p.fleet
	for _, known := range f.checkers {
		if known.onProbation() {
			count++
		}
	}
	return count
}

// Figures counts the fleet.
func (f *Fleet) Figures() Figures {
	now := f.Present()
	return Figures{now.Connected, len(f.checkers), now.Silent, f.strandedEndpoints(), f.waiting(), f.unwatched.since}
}
