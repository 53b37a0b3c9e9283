package fleet

import "hdsd/health"

// Effects lists what the owner of a Fleet has to do, in the order of the fields.
type Effects struct {
	Settled bool                     // the time to settle has just ended
	Ignored bool                     // the report of a silent checker: it must not reach the votes
	Events  []Event                  // to log
	Votes   []VoteChange             // for the votes, in this order
	Rows    map[string][]health.Hash // of the stored plan; nil removes a row
	Specify []string                 // checkers to send a specifier to, in this order: the first may become a canary
	GivenUp []string                 // checkers that are forgotten, with their seats
	Planned bool                     // the plan was worked out again
	Moves   int                      // seats that were given or taken away
	Recount bool                     // Figures may have changed
}

// VoteChange says which votes of a checker to expect from now on. Its fields
// take effect in their order.
type VoteChange struct {
	Checker   string
	Connected *health.Checker // its reports begin anew
	Lost      bool            // its reports have ended
	Unassign  []health.EndpointID
	Assign    []health.EndpointID
}

// Kind says what happened to checkers.
type Kind uint8

// The kinds of event.
const (
	Lost             Kind = iota // its seats are kept for the grace period
	SeatsGivenUp                 // they did not come back in time
	StoppedReporting             // they are connected and have stopped to report
	SilentReplaced               // substitutes check what silent checkers were sent
	SilentGivenUp                // silent checkers lost their seats
	SilentHeld                   // silent checkers keep their seats: too few others report
	DoubtedReplaced              // doubted checkers got substitutes everywhere
	BlindOutnumbered             // blind checkers got substitutes where others do not outnumber them
	DoubtedHeld                  // doubted checkers get substitutes only where they must
	DoubtedHeldOver              // none does any more
)

// Event is something to log.
type Event struct {
	Kind     Kind
	Checkers []string // sorted
	Trust    Trust    // of DoubtedHeld
}

// log notes an event of checkers, of which there may be none.
func (f *Fleet) log(kind Kind, checkers []string) {
	if len(checkers) > 0 {
		f.out.Events = append(f.out.Events, Event{Kind: kind, Checkers: checkers})
	}
}

// effects gives what was noted since the last call.
func (f *Fleet) effects() Effects {
	out := f.out
	f.out = Effects{}
	return out
}

// unassign notes that a checker does not check endpoints any more.
func (e *Effects) unassign(checker string, endpoints []health.EndpointID) {
	if len(endpoints) > 0 {
		e.Votes = append(e.Votes, VoteChange{Checker: checker, Unassign: endpoints})
	}
}
