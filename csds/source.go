package csds

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Source knows some of the connected clients. It is asked from several
// goroutines at a time.
type Source interface {
	// Clients calls yield with every client that is connected now, in an order
	// that lasts, until it gives false. Neither the clients nor what they hold
	// may change afterwards.
	Clients(yield func(Client) bool)
}

// Client is one connected client.
type Client struct {
	Node  *corev3.Node // nil counts as an empty one
	Scope string       // client_scope
	// Resources returns what the client was sent or asks for, by type. It is
	// called only when the client was selected.
	Resources iter.Seq[Resource]
}

// Resource is one resource of a client. Where that is hdsd itself, Version,
// Updated and Body are of what it accepted last.
type Resource struct {
	TypeURL string
	Name    string
	Version string                       // of what the client was last sent; empty: none
	Updated time.Time                    // when that was; zero: never
	Config  statusv3.ConfigStatus        // UNKNOWN where the client is hdsd itself
	Client  adminv3.ClientResourceStatus // what the client would say
	Body    Body                         // what the client was last sent
	Error   *Error                       // what the client refused last; nil once it accepted
}

// Error is a refusal.
type Error struct {
	Details string
	Version string
	Time    time.Time
	Body    Body // what was refused
}

// Body makes a configuration; nil, or giving nil, where there is none. It is
// called only when contents are asked for.
type Body func() *anypb.Any
