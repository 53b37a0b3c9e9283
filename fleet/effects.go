package fleet

import (
	"time"

	"hdsd/health"
)

// Effects lists the work of a Fleet's owner, in this order. The last four fields only describe
// the call.
type Effects struct {
	Settled     bool                     // the time to settle just ended
	Stranded    []health.EndpointID      // no checker is able to check these any more
	Checkable   []health.EndpointID      // a checker is able to check these again
	Events      []Event                  // to log
	Votes       []VoteChange             // to apply to the votes, in this order
	Specify     []string                 // checkers that need a specifier, in this order: the first may become a canary
	Rows        map[string][]health.Hash // of the plan, to store; nil removes a row
	Silent      []string                 // checkers that just fell silent
	Newcomers   []string                 // checkers whose uncounted votes are kept from now on
	Established map[string]*Established  // to store; nil removes a row
	GivenUp     []string                 // forgotten checkers without seats

	Ignored bool // the report is that of a silent checker, and must not reach the votes
	Planned bool // a new plan was made
	Moves   int  // number of added and removed seats
	Recount bool // Figures may have changed
}

// VoteChange changes the expected votes of a checker. Its fields take effect in their order.
type VoteChange struct {
	Checker   string
	Connected *health.Checker // its reports begin anew
	Lost      bool            // its reports have ended
	Unassign  []health.EndpointID
	Assign    []health.EndpointID
}

// Kind is the kind of an event of checkers.
type Kind uint8

// The kinds of event.
const (
	Lost                 Kind = iota // a checker is lost; its seats are kept for the grace period
	SeatsGivenUp                     // lost checkers did not return in time
	StoppedReporting                 // checkers are connected and have stopped reporting
	SilentReplaced                   // silent checkers got substitutes
	SilentGivenUp                    // silent checkers lost their seats
	SilentHeld                       // silent checkers keep their seats, since too few others report
	DoubtedReplaced                  // doubted checkers got substitutes at each of their endpoints
	BlindOutnumbered                 // blind checkers got substitutes where others did not outnumber them
	DoubtedHeld                      // doubted checkers get substitutes only where they must
	DoubtedHeldOver                  // the end of DoubtedHeld
	NewcomersEstablished             // the probation of checkers is over, or they are the first
	NewcomerLost                     // a checker on probation is gone
	StandInsEnded                    // checkers are on probation again, since one that was established before them is back
	NoCheckers                       // the last checker is lost, or none came while hdsd settled
	NoCheckersOver                   // a checker is connected again
	LostHeld                         // lost checkers keep their seats, since too few others report
	FellSilent                       // a checker is connected, and does not report its endpoints
	ReportsAgain                     // a silent checker reports after all
)

// Event is something to log.
type Event struct {
	Kind     Kind
	Checkers []string      // sorted
	Trust    Trust         // of DoubtedHeld
	Lasted   time.Duration // of NoCheckersOver and ReportsAgain
	Stopped  bool          // of FellSilent: it reported on this stream before

	// These fields describe the checker of Lost, NewcomerLost, FellSilent and ReportsAgain.
	Locality   health.Locality
	LastReport time.Time // on any stream; zero: unknown
}

// log adds an event of checkers, if there are any.
func (f *Fleet) log(kind Kind, checkers []string) {
	if len(checkers) > 0 {
		f.out.Events = append(f.out.Events, Event{Kind: kind, Checkers: checkers})
	}
}

// add adds an event of a checker. The caller may fill in the rest before the next event.
func (e *Effects) add(kind Kind, known *checker) *Event {
	e.Events = append(e.Events, Event{Kind: kind, Checkers: []string{known.ID}, Locality: known.Locality, LastReport: known.reported})
	return &e.Events[len(e.Events)-1]
}

// effects returns and clears the effects since the last call.
func (f *Fleet) effects() Effects {
	effects := f.out
	f.out = Effects{}
	return effects
}

// unassign adds endpoints that a checker no longer checks.
func (e *Effects) unassign(checker string, endpoints []health.EndpointID) {
	if len(endpoints) > 0 {
		e.Votes = append(e.Votes, VoteChange{Checker: checker, Unassign: endpoints})
	}
}

// setEstablished stores the record of a checker, or removes it if nil.
func (e *Effects) setEstablished(id string, record *Established) {
	if e.Established == nil {
		e.Established = map[string]*Established{}
	}
	e.Established[id] = record
}
