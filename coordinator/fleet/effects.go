package fleet

import (
	"time"

	"hdsd/health"
)

// Effects lists what the owner of a Fleet has to do, in this order. The last four fields
// only tell what happened.
type Effects struct {
	Settled     bool                     // the time to settle has just ended
	Stranded    []health.EndpointID      // no checker is able to check these any more
	Checkable   []health.EndpointID      // and these, one is again
	Events      []Event                  // to log
	Votes       []VoteChange             // for the votes, in this order
	Specify     []string                 // checkers to send a specifier to, in this order: the first may become a canary
	Rows        map[string][]health.Hash // of the plan, to store; nil removes a row
	Silent      []string                 // checkers that have just fallen silent
	Newcomers   []string                 // checkers whose votes are to be kept from now on, since they do not count
	Established map[string]*Established  // to store; nil removes a row
	GivenUp     []string                 // checkers that are forgotten, with their seats

	Ignored bool // the report is that of a silent checker, and must not reach the votes
	Planned bool // the plan was worked out anew
	Moves   int  // how many seats were given or taken away
	Recount bool // Figures may have changed
}

// VoteChange says which votes to expect of a checker from now on. Its fields take effect
// in their order.
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
	Lost                 Kind = iota // a checker is lost; its seats are kept for the grace period
	SeatsGivenUp                     // lost checkers did not come back in time
	StoppedReporting                 // checkers are connected and have stopped reporting
	SilentReplaced                   // silent checkers got substitutes
	SilentGivenUp                    // silent checkers lost their seats
	SilentHeld                       // silent checkers keep their seats, since too few others report
	DoubtedReplaced                  // doubted checkers got substitutes at each of their endpoints
	BlindOutnumbered                 // blind checkers got substitutes where others did not outnumber them
	DoubtedHeld                      // doubted checkers get substitutes only where they must
	DoubtedHeldOver                  // no checker does any more
	NewcomersEstablished             // the probation of checkers is over, or they were there first
	NewcomerLost                     // a checker on probation is gone
	StandInsEnded                    // checkers are on probation again, since one that was established before them is back
	NoCheckers                       // the last checker is lost, or none came while hdsd settled
	NoCheckersOver                   // a checker is connected again
	LostHeld                         // lost checkers keep their seats, since too few others report
	FellSilent                       // a checker is connected, and reports nothing of its specifier
	ReportsAgain                     // a checker that was silent reports after all
)

// Event is something to log.
type Event struct {
	Kind     Kind
	Checkers []string      // sorted
	Trust    Trust         // of DoubtedHeld
	Lasted   time.Duration // of NoCheckersOver and ReportsAgain
	Stopped  bool          // of FellSilent: it reported on this stream before

	// Of the checker of Lost, NewcomerLost, FellSilent and ReportsAgain.
	Locality   health.Locality
	LastReport time.Time // on whatever stream; zero: none is known
}

// log notes what happened to checkers, if there are any.
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

// effects returns what was noted since the last call.
func (f *Fleet) effects() Effects {
	out := f.out
	f.out = Effects{}
	return out
}

// unassign notes that a checker no longer checks endpoints.
func (e *Effects) unassign(checker string, endpoints []health.EndpointID) {
	if len(endpoints) > 0 {
		e.Votes = append(e.Votes, VoteChange{Checker: checker, Unassign: endpoints})
	}
}

// setEstablished stores what is known of a checker; nil: nothing any more.
func (e *Effects) setEstablished(id string, is *Established) {
	if e.Established == nil {
		e.Established = map[string]*Established{}
	}
	e.Established[id] = is
}
