package aggregate

import (
	"math"

	"hdsd/health"
)

// endpoint is the row of one endpoint, packed because there may be millions. The
// comment of a field names the type that writes it; the others only read it.
type endpoint struct {
	since     int64         // decisions: wall clock, Unix nanoseconds; never before the first verdict
	start     uint32        // seats: its first seat
	waitUntil uint32        // waits: low bits of the tick at which the wait ends
	policy    uint32        // Aggregator: number of its policy
	cluster   uint32        // clusters: number of its cluster
	budget    uint32        // budgets: milliseconds spent; while spendsBudget, low bits of the watched tick at which it is used up
	budgetDue uint32        // budgets: low bits of the tick of the deadline for that
	zone      uint32        // Aggregator: number of its zone
	count     uint8         // seats: how many it has
	status    health.Status // clusters
	flags     flags
}

// never is the time of a verdict that there was not.
const never = math.MinInt64

// flags say what is true of an endpoint. The comment of a flag names the type that
// sets it.
type flags uint16

const (
	isKnown            flags = 1 << iota // roster: between Set and Remove
	isMarked                             // roster: to be decided at the end of the step
	isUnobserved                         // decisions: no vote counted when it was last decided
	awaitsAbsent                         // waits: it was unobserved, and the absent are awaited once more
	awaitsConfirmation                   // waits: its votes ask for a change that has to last
	isConfirmed                          // waits: that has lasted
	isFlapping                           // damping: it went down lately, and is damped
	isHeldBack                           // massFailures: its down waits
	isFailing                            // blindness: most votes that count say down
	spendsBudget                         // budgets: its verdict waits
	budgetScheduled                      // budgets: there is a deadline for the end of it
	budgetSpent                          // budgets: it has waited for long enough
)

func (e *endpoint) has(any flags) bool { return e.flags&any != 0 }

func (e *endpoint) set(f flags) { e.flags |= f }

func (e *endpoint) clear(f flags) { e.flags &^= f }
