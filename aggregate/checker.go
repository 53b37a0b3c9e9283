package aggregate

import (
	"time"

	"hdsd/health"
)

// checker is the row of a checker that is connected or has a seat. The fields that
// every judgement of a vote reads come first. The comment of a field names the type
// that writes it; other types only read it.
type checker struct {
	trust     OperatorTrust     // Aggregator
	lost      bool              // presence: its stream is gone
	connected bool              // presence
	fresh     bool              // Aggregator: the status codes that it reports are those of its latest probes
	zone      uint32            // presence: number of its zone; noZone until it connects
	hearing   perClass[hearing] // presence
	record    perClass[record]  // records
	outages   outages           // blindness
	name      string
	votes     []health.Vote       // roster, intake: its votes, one for each seat; seat.place points back
	heard     time.Time           // presence: its latest report; zero if there is none
	heardAt   time.Duration       // presence: the same on the clock
	growing   []health.EndpointID // intake: endpoints at which its run of downs still grows
}

// addClass adds a class.
func (k *checker) addClass() {
	k.hearing.grow()
	k.record.grow()
}

// checkerClass names a checker in one class.
type checkerClass struct{ checker, class uint32 }

// perClass holds a value for each class that a checker has seats in. Most checkers
// have seats in the first class only.
type perClass[T any] struct {
	first  T
	others []T
}

// in returns the value of a class.
func (p *perClass[T]) of(class uint32) *T {
	if class == 0 {
		return &p.first
	}
	return &p.others[class-1]
}

// len returns the number of classes.
func (p *perClass[T]) len() int { return 1 + len(p.others) }

// grow adds a class.
func (p *perClass[T]) grow() {
	var zero T
	p.others = append(p.others, zero)
}
