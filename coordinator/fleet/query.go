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
	Plan       assign.Checker // its part of the plan
}

// Checkers returns those that are connected or whose seats are kept, in no order.
func (f *Fleet) Checkers() iter.Seq[Checker] {
	return func(yield func(Checker) bool) {
		for id, known := range f.checkers {
			if !yield(Checker{known.Checker, known.connected, known.reported, f.Part(id)}) {
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

func (f *Fleet) connected() int { return len(f.checkers) - len(f.absent) }

// Settling reports whether hdsd waits for checkers to come back.
func (f *Fleet) Settling() bool { return f.settling }

// Figures are those of the fleet.
type Figures struct {
	Connected int // checkers
	Seated    int // checkers that are connected or whose seats are kept
	Silent    int // checkers
	Stranded  int // endpoints
}

// Figures counts the fleet.
func (f *Fleet) Figures() Figures {
	return Figures{f.connected(), len(f.checkers), len(f.silent), f.strandedEndpoints()}
}
