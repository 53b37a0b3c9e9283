package replica

import (
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica/clusters"
)

// Term is the life of one Machine: the epoch of its leader, and its number in the epoch. A leader whose
// decisions cannot be committed begins anew with the state of the log.
type Term struct {
	Epoch int64
	Round uint64
}

// Message goes from one replica to another. It names endpoints by their hashes.
type Message interface{ term() Term }

// Welcome tells a replica that the sender leads. The replica answers with a full Report.
type Welcome struct {
	Term Term
	Head uint64 // of the log, when the term began: no entry of an earlier term follows
}

// Report tells the leader about the checkers, orders and clusters of a replica: all of them if it is full, else changes.
// A list of clusters may take several reports.
type Report struct {
	Term     Term
	Full     bool
	Sessions []Session // sorted by checker
	Orders   []Order
	Clusters *clusters.Update // nil: nothing to tell, or the replica is of a release that tells none
}

// Session tells about a checker of a replica.
type Session struct {
	Checker   string
	Number    uint64          // of the session; new for each Connected
	Node      *health.Checker // nil: the leader knows it
	Connected bool
	Lost      bool // an earlier session, or this one, was lost since the previous report
	Ended     bool // hdsd itself has ended an earlier one, or this one
	Silent    bool
	Assigned  uint64 // serial of the latest specifier of this term; 0: none
	Followed  uint64 // serial of the specifier of this term that the votes follow; 0: none
	Heard     bool   // the checker has reported since the previous report
	Votes     []Vote // changed ones
}

// Vote is health.Vote between replicas.
type Vote struct {
	Endpoint       health.Hash
	Status         health.Status
	HTTPStatusCode uint16
}

// Order is an order of an operator.
type Order struct {
	ID       log.OrderID
	Event    machine.Event
	Operator *log.Operator // who gave it, as verified; nil: unknown
}

// Directions tells a replica what its checkers have to do, and the refusals of its orders.
type Directions struct {
	Term        Term
	Assignments []Assignment
	Resend      []string // checkers whose state the leader needs in full
	Refusals    []Refusal
	Wanted      []string // clusters whose content the leader needs
}

// Assignment is a specifier for a session of a checker.
type Assignment struct {
	Checker   string
	Session   uint64
	Serial    uint64
	Specifier *specifier.Specifier // its ids mean nothing to the receiver
	Endpoints []health.Hash        // in its order
}

// Refusal says why the leader does not carry out an order.
type Refusal struct {
	ID  log.OrderID
	Err error
}

func (m Welcome) term() Term    { return m.Term }
func (m Report) term() Term     { return m.Term }
func (m Directions) term() Term { return m.Term }
