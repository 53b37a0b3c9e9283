package fleet

import (
	"iter"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

// Checker is the state of a checker, for people.
type Checker struct {
	health.Checker
	Connected  bool
	LastReport time.Time      // on any stream; zero: unknown
	Plan       assign.Checker // its part of the plan, or its sample
	Probation  *Progress      // nil: established
}

// Progress is the progress of a checker's probation.
type Progress struct {
	Since  time.Time
	Agreed time.Duration // with established checkers
	Wrong  time.Time     // start of its disagreement; zero: it agrees
}

// probationOf returns the progress of a checker's probation, or nil.
func (k *checker) probationOf() *Progress {
	if !k.onProbation() {
		return nil
	}
	return &Progress{Since: k.newcomer.start, Agreed: k.newcomer.agreed, Wrong: k.newcomer.against}
}

// Checkers returns the checkers that are connected or keep their seats, in no order.
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
	Seated    int // connected, or with kept seats
	Silent    int // among the connected ones
}

// Present counts the present checkers. Unlike Figures, its cost does not depend on their
// number.
func (f *Fleet) Present() Presence {
	return Presence{Connected: len(f.checkers) - len(f.absent), Seated: len(f.checkers), Silent: len(f.silent)}
}

// Settling reports whether hdsd waits for checkers to come back.
func (f *Fleet) Settling() bool { return f.settling }

// Figures are the figures of the fleet.
type Figures struct {
	Connected int // checkers
	Seated    int // connected checkers, and those with kept seats
	Silent    int // checkers
	Stranded  int // endpoints
	Probation int // checkers

	UnwatchedSince time.Time // start of the time without connected checkers; zero if one is connected, or hdsd settles
}

// OnProbation reports whether a checker is on probation.
func (f *Fleet) OnProbation(id string) bool {
	known := f.checkers[id]
	return known != nil && known.onProbation()
}

// waiting counts the checkers on probation.
func (f *Fleet) waiting() (count int) {
	for _, known := range f.checkers {
		if known.onProbation() {
			count++
		}
	}
	return count
}

// Figures counts the fleet.
func (f *Fleet) Figures() Figures {
	presence := f.Present()
	return Figures{presence.Connected, presence.Seated, presence.Silent, f.strandedEndpoints(), f.waiting(), f.unwatched.start}
}
