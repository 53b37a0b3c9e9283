package replica

import (
	"time"

	"hdsd/log"
	"hdsd/machine"
)

// Event is an input of a Replica.
type Event interface {
	handle(r *Replica, now time.Time)
}

// These events come from the replica's own process.
type (
	// Begun reports that the servers listen.
	Begun struct{}

	// Local carries an event of a checker of this replica, or of its sources: Connected, Disconnected, Reported,
	// StreamEnded, Silenced and Followed, Delivered and Answered. A replica has no use for others.
	Local struct{ machine.Event }

	// Tick lets the replica do its due work. Its field is that of machine.Tick.
	Tick struct{ ReceivedUntil time.Time }

	// Ordered carries an order of an operator: SetOverride, ClearOverrides, Freeze, Unfreeze, SetTrust,
	// ClearTrust or Annotate. The id is new. OrderDone follows.
	Ordered struct {
		ID       log.OrderID
		Order    machine.Event
		Operator *log.Operator // as verified; nil: unknown
	}

	// Noted carries events for the history, which the effects in Decided have led to. They come to be in the log in an
	// entry of their own, behind those of the steps before. A replica that does not lead any more drops them: the
	// decisions are gone, too. So Noted is the next event after the step with these effects.
	Noted struct{ Events []log.Event }
)

// These events come from the log. Package log/etcd has calls for them.
type (
	// Read carries the next entry of the log.
	Read struct {
		Sequence uint64
		Epoch    int64
		Digest   uint64 // for Stored
		Payload  []byte
	}
	// Won reports that the replica is the leader of an epoch, and where the log ended when that was certain. So no
	// other leader adds to the entries up to Head.
	Won struct {
		Epoch int64
		Head  uint64
	}
	// Lost reports that the replica is not the leader of an epoch any more.
	Lost struct{ Epoch int64 }
	// Members tells the replicas that have a session, this one too, and which one leads, since which epoch; empty and 0
	// if none does.
	Members struct {
		Replicas []string
		Leader   string
		Epoch    int64
	}
	// Committed reports that an entry is in the log.
	Committed struct {
		Epoch    int64
		Sequence uint64
	}
	// Refused reports that an entry is not in the log, and will never be there, or that the log is not as the
	// leader believes.
	Refused struct {
		Epoch    int64
		Sequence uint64
		Err      error
	}
	// LogEnded reports that this replica cannot follow the log behind an entry, and why.
	LogEnded struct {
		After uint64
		Err   error
	}
	// LogResumed reports that it can do so after LogEnded, and the entry after which it goes on. Epochs of before do
	// not count any more, since etcd may be restored from a snapshot.
	LogResumed struct{ After uint64 }
	// Undecided reports that an entry may be in the log, or come to be there. The replica commits it again.
	Undecided struct {
		Epoch    int64
		Sequence uint64
	}
)

// These events come from links to other replicas. A link has a number, which is new for each connection. It
// delivers messages in order, and loses them only when it closes.
type (
	// LinkOpened reports a link to a replica. It replaces an earlier one.
	LinkOpened struct {
		Replica string
		Link    uint64
	}
	// LinkClosed reports the end of a link.
	LinkClosed struct {
		Replica string
		Link    uint64
	}
	// Sent reports that a link has room for the next message.
	Sent struct {
		Replica string
		Link    uint64
	}
	// Received carries a message of another replica.
	Received struct {
		Replica string
		Link    uint64
		Message Message
	}
)
