package inflight

import (
	"context"
	"math"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"hdsd/peer"
	"hdsd/peer/limit"
)

// Budget bounds the bytes of messages in flight. Make one by NewBudget.
type Budget struct {
	// Room bounds the bytes of messages.
	Room *limit.Room

	// Rush bounds the bytes that clients send before they know their windows: 64 KiB for each
	// new connection.
	Rush *limit.Queue

	// Wide, if not nil, bounds the wide windows of streams: 64 KiB that may arrive without room.
	// One caller may have half of them.
	Wide *limit.Pool

	// Connections, if not nil, bounds the connections of callers.
	Connections *limit.Pool

	// Largest, if not zero, bounds the bytes of a message. LargestField is its configuration
	// field.
	Largest      int
	LargestField string

	// Refused, if not nil, is called for each refused message. It must not block.
	Refused func(caller string, err error)

	// Arrival bounds the time for a message with room to arrive, with a second more for each
	// MiB. Default: 10 s.
	Arrival time.Duration

	// Late, if not nil, is called for each connection that is closed because of a late message.
	// It must not block.
	Late func(caller string, bytes int)
}

// The sizes of Rush and Wide, as parts of Room's.
const (
	rushShare = 8
	wideShare = 4
)

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	wide := max(bytes/wideShare, 1)
	return &Budget{
		Room: limit.NewRoom(bytes), Rush: limit.NewQueue(max(bytes/rushShare, defaultWindow)),
		Wide: limit.NewPool(limit.Limit{Unit: "bytes of wide windows", Field: "limits.max_bytes_in_flight", Total: wide, PerCaller: max(wide/2, 1)}),
	}
}

func (b *Budget) refused(caller string, err error) {
	if b.Refused != nil {
		b.Refused(caller, err)
	}
}

func (b *Budget) arrival(size int) time.Duration {
	timeout := b.Arrival
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	return timeout + time.Duration(size>>20)*time.Second
}

// The windows that grpc grants before the handler reads: the maximum, since a budget grants
// less. That of the connection bounds no memory, since each stream has its own.
const (
	streamWindow     = math.MaxInt32
	connectionWindow = 16 << 20
)

// ServerOptions returns the options of a gRPC server with this budget. No later option may set a
// window.
func (b *Budget) ServerOptions(creds credentials.TransportCredentials) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(&counting{creds, b}), grpc.ChainStreamInterceptor(b.Stream),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
	}
}

type counting struct {
	credentials.TransportCredentials
	budget *Budget
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: raw.RemoteAddr(), AuthInfo: info})
	wrapped := newConn(secured, c.budget, peer.FromContext(ctx).Key())
	if pool := c.budget.Connections; pool != nil {
		if wrapped.place, err = pool.Take(wrapped.caller, 1, nil); err != nil {
			_ = secured.Close() // its caller has too many
			return nil, nil, err
		}
	}
	return wrapped, info, nil
}

// End ends the connection of a call, if it has one of a Budget.
func End(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		c.hangUp()
	}
}

// Ended reports whether hdsd itself has ended the connection of a call.
func Ended(ctx context.Context) bool {
	c := connOf(ctx)
	return c != nil && c.ended.Load()
}

// After calls done when nothing of a call is left to send: its status is on the wire, its client
// has reset it, or its connection has ended. It calls done at once if the call's connection has
// no Budget.
func After(ctx context.Context, done func()) {
	c, id := place(ctx)
	if c == nil || !c.after(id, done) {
		done()
	}
}

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.budget}
}
