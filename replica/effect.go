package replica

import (
	"hdsd/envoy/specifier"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/publish"
)

// Effect is a result of a step. The owner carries out the effects in their order.
type Effect interface{ isEffect() }

type (
	// Published carries a change for the data planes of this replica.
	Published struct{ *publish.Change }

	// Stored carries entries of the log for the store, and the cursor to store with them, with the digest of the entry
	// there: the log is followed from there after a restart. It follows the changes for data planes of these entries.
	Stored struct {
		Entries []*log.Entry
		Cursor  uint64
		Digest  uint64
	}

	// Commit asks the owner to append an entry to the log. Committed, Refused or Undecided follows. There is one
	// Commit at a time in an epoch.
	Commit struct {
		Epoch    int64
		Sequence uint64
		Payload  []byte
	}

	// Resign asks the owner to resign the leadership of an epoch.
	Resign struct {
		Epoch int64
		Err   error
	}

	// Send asks the owner to send a message. Sent follows, or LinkClosed.
	Send struct {
		Replica string
		Link    uint64
		Message Message
	}

	// Assigned carries a specifier for a checker of this replica.
	Assigned struct {
		Checker   string
		Specifier *specifier.Specifier
	}

	// OrderDone ends an order. Without an error, the fields of its results are set.
	OrderDone struct {
		ID  log.OrderID
		Err error
	}

	// Decided carries an effect of the Machine of the leader, for metrics and events. It precedes the entry in
	// the log, and may never come to be there. Without a Machine, the Follower has the effects that are about the
	// clusters and the time. It is none of Published, Logged and SpecifierMade.
	Decided struct{ machine.Effect }

	// Promoted reports that this replica leads.
	Promoted struct{ Term Term }
	// Deposed reports that it does not lead any more.
	Deposed struct{ Term Term }

	// Faulted reports that the replica cannot read the log. It follows the log no further, and does not lead, until
	// Recovered.
	Faulted struct{ Err error }
	// Recovered reports that the replica reads the log again.
	Recovered struct{}
)

func (Published) isEffect() {}
func (Stored) isEffect()    {}
func (Commit) isEffect()    {}
func (Resign) isEffect()    {}
func (Send) isEffect()      {}
func (Assigned) isEffect()  {}
func (OrderDone) isEffect() {}
func (Decided) isEffect()   {}
func (Promoted) isEffect()  {}
func (Deposed) isEffect()   {}
func (Faulted) isEffect()   {}
func (Recovered) isEffect() {}
