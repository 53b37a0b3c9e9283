package csds

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Source yields some of the connected clients. Several goroutines may call it at a time.
type Source interface {
	// Clients calls yield with every connected client, in a stable order, until it
	// returns false. Neither the clients nor their resources may change afterwards.
	Clients(yield func(Client) bool)
}

// Client is one connected client.
type Client struct {
	Node  *corev3.Node // nil counts as an empty one
	Scope string       // client_scope
	// Resources yields the client's resources and requests, by type. It is called only for
	// selected clients.
	Resources iter.Seq[Resource]
}

// Resource is one resource of a client. If the client is hdsd itself, Version, Updated and Body
// are those that it last accepted.
type Resource struct {
	TypeURL string
	Name    string
	Version string                       // sent last; empty: none
	Updated time.Time                    // time of that; zero: never
	Config  statusv3.ConfigStatus        // UNKNOWN if the client is hdsd itself
	Client  adminv3.ClientResourceStatus // the client's own status
	Body    Body                         // the body sent last
	Error   *Error                       // the last refusal; nil once the client accepts
}

// Error is a refusal.
type Error struct {
	Details string
	Version string
	Time    time.Time
	Body    Body // the refused body
}

// Body makes a configuration. It is nil, or returns nil, if there is none. It is called only if
// contents are requested.
type Body func() *anypb.Any
