package xds

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Status is what a source knows at one moment.
type Status struct {
	Types []TypeStatus // clusters, then assignments; both always there

	// Fullness is how much there is of what the server may have of clusters,
	// endpoints or bytes, whichever is nearest to its limit; 1 for all.
	Fullness float64
}

// TypeStatus is what is known of one type of resource. It has its own
// connection state, since each type may have a stream of its own.
type TypeStatus struct {
	TypeURL string

	// Server is the target or base URL that is talked to, or tried next.
	// Connected tells whether it answers, and Since when that last changed
	// (zero: not yet; where it never did since a restart, since it was last
	// there before that). For REST, it is what became of the last poll.
	Server    string
	Connected bool
	Since     time.Time

	// Version is that of the last response that was accepted: version_info,
	// or system_version_info in delta.
	Version    string
	LastUpdate time.Time // when the last response came, whatever became of it
	LastAck    time.Time // when the last one was accepted

	// LastError is the last thing that went wrong, with the connection or in
	// a response; it is empty when all is well again.
	LastError     string
	LastErrorTime time.Time

	// Rejected is the error_detail of the last response if that was refused,
	// and RejectedVersion its version; empty otherwise.
	Rejected        string
	RejectedVersion string

	Resources []Resource // by name
}

// Resource is one that is known or asked for.
type Resource struct {
	Name    string
	Version string // its own in delta, else that of its response

	// Config is what is in use, as it came; nil where there is nothing.
	Config      *anypb.Any
	LastUpdated time.Time // when Config last came

	// ClientStatus is REQUESTED, DOES_NOT_EXIST, ACKED, NACKED or TIMEOUT.
	ClientStatus adminv3.ClientResourceStatus
	ConfigStatus statusv3.ConfigStatus

	// Error tells what was refused of the resource last, if that is not
	// resolved; FailedConfiguration is what came.
	Error *adminv3.UpdateFailureState
}
