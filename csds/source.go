package csds

import (
	"iter"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Source has some of the connected clients. Several goroutines may call it at a time.
type Source interface {
	// Clients calls yield with every connected client, in a stable order, until it
	// returns false. Neither the clients nor their resources may change afterwards.
	Clients(yield func(Client) bool)
}

// Client is one connected client.
type Client struct {
	Node  *corev3.Node // nil counts as an empty one
	Scope string       // client_scope
	// Resources yields what the client was sent or asks for, by type. It is called only
	// for selected clients.
	Resources iter.Seq[Resource]
}

// Resource is one resource of a client. Where the client is hdsd itself, Version, Updated
// and Body are those that it last accepted.
type Resource struct {
	TypeURL string
	Name    string
	Version string                       // that the client was last sent; empty: none
	Updated time.Time                    // when that was; zero: never
	Config  statusv3.ConfigStatus        // UNKNOWN where the client is hdsd itself
	Client  adminv3.ClientResourceStatus // what the client would say
	Body    Body                         // what the client was last sent
	Error   *Error                       // what the client last refused; nil once it accepts
}

// Error is a refusal.
type Error struct {
	Details string
	Version string
	Time    time.Time
	Body    Body // what was refused
}

// Body makes a configuration. It is nil, or returns nil, where there is none. It is called
// only if contents are asked for.
type Body func() *anypb.Any
