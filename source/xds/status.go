package xds

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Status is the state of a source at one moment.
type Status struct {
	Node  *corev3.Node // as sent to the server
	Types []TypeStatus // clusters, then assignments; always both

	// Fullness is the used share of the limits for clusters, endpoints or bytes,
	// whichever is fullest; 1 means full.
	Fullness float64
}

// TypeStatus is the state of one type of resource. Each type has its own connection state,
// because each may have its own stream.
type TypeStatus struct {
	TypeURL string

	// Server is the target or base URL in use, or the next to try. Connected reports
	// whether it answers, and Since when that last changed. Since is zero before the
	// first answer. If it has not answered since a restart, Since is the last contact
	// before the restart. For REST, both are of the last poll.
	Server    string
	Connected bool
	Since     time.Time

	// Version is the version of the last accepted response: version_info, or
	// system_version_info in delta.
	Version    string
	LastUpdate time.Time // when the last response came, accepted or not
	LastAck    time.Time // when the last accepted one came

	// LastError is the latest error of the connection or of a response. It is empty
	// once resolved.
	LastError     string
	LastErrorTime time.Time

	// Rejected is the error_detail of the last response if it was refused, and
	// RejectedVersion its version.
	Rejected        string
	RejectedVersion string

	Resources []Resource // by name
}

// Resource is a known or subscribed resource.
type Resource struct {
	Name    string
	Version string // its own in delta, else that of its response

	// Config is the version in use, as received; nil if there is none.
	Config      *anypb.Any
	LastUpdated time.Time // when Config last came

	// ClientStatus is REQUESTED, DOES_NOT_EXIST, ACKED, NACKED or TIMEOUT.
	ClientStatus adminv3.ClientResourceStatus
	ConfigStatus statusv3.ConfigStatus

	// Error is the reason why the latest version was refused, until that is resolved.
	// FailedConfiguration is that version.
	Error *adminv3.UpdateFailureState
}
