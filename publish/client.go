package publish

import "time"

// Client is one type that a connected client takes, or requests although it is not served. A
// client that polls has one for each list of names.
type Client struct {
	ID        string // its node id
	Stream    uint64 // a number for its stream: a node may have several; 0: it polls
	TypeURL   string
	Delta     bool
	Connected time.Time
	Resources int       // subscribed
	Synced    int       // resources in the latest version, or known to be absent
	Stale     int       // changed since, or not acknowledged yet
	Error     int       // the client refused the latest version
	Unasked   int       // checked clusters that it has had for 30 s without requesting their assignments
	LastAck   time.Time // zero without one
	LastError string    // text of the latest refusal, kept after an ACK; for a type that is not served, the remedy
	Poll      *Poll     // nil: it has a stream
}

// Poll is the latest fetch of a client that polls.
type Poll struct {
	Protocol string    // poll.ByREST or poll.ByFetch
	Time     time.Time // of the latest one
	Served   string    // the version of the answer
	Held     string    // the client's previous version; empty: none
}
