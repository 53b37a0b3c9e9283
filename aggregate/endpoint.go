package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// endpoint is the row of one endpoint, packed because there may be millions. The
// comment of a field names the type that writes it; the others only read it.
type endpoint struct {
	verdictTime int64         // decisions: time of the verdict, Unix nanoseconds; never before the first verdict
	start       uint32        // seats: its first seat
	waitUntil   uint32        // waits: low bits of the tick at which the wait ends
	policy      uint32        // Aggregator: number of its policy
	cluster     uint32        // clusters: number of its cluster
	budget      uint32        // budgets: milliseconds spent; while spendsBudget is set, low bits of the watched tick at which the budget ends
	budgetDue   uint32        // budgets: low bits of the tick of the budget's deadline
	zone        uint32        // Aggregator: number of its zone
	count       uint8         // seats: number of its seats
	status      health.Status // clusters
	flags       flags
}

// never is the time of a verdict that does not exist.
const never = math.MinInt64

// sinceTime returns the time of the verdict; zero if there is none.
func (e *endpoint) sinceTime() time.Time {
	if e.verdictTime == never {
		return time.Time{}
	}
	return time.Unix(0, e.verdictTime).UTC()
}

// flags holds properties of an endpoint. The comment of a flag names the type that
// sets it.
type flags uint16

const (
	isKnown            flags = 1 << iota // roster: between Set and Remove
	isMarked                             // roster: to be decided at the end of the step
	isUnobserved                         // decisions: it had no vote that counted when it was last decided
	awaitsAbsent                         // waits: it was unobserved, and absent checkers are awaited once more
	awaitsConfirmation                   // waits: its votes ask for a change that must last first
	isConfirmed                          // waits: the change has lasted
	isFlapping                           // damping: it went down lately, and is damped
	isHeldBack                           // massFailures: its down waits
	isFailing                            // blindness: most votes that count say down
	spendsBudget                         // budgets: its verdict waits
	budgetScheduled                      // budgets: its budget has a deadline
	budgetSpent                          // budgets: its budget is used up
	countsCut                            // doubts: votes over a cut path count
	awaitsName                           // waits: it is down, and its votes give that another name, which must last first
	// The next two bits are those of witnesses.
)

func (e *endpoint) has(any flags) bool { return e.flags&any != 0 }

func (e *endpoint) set(f flags) { e.flags |= f }

func (e *endpoint) clear(f flags) { e.flags &^= f }
