package inflight

import (
	"context"
	"math"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"hdsd/internal/caller"
	"hdsd/internal/share"
)

// Budget bounds the bytes of messages in flight. NewBudget makes one.
type Budget struct {
	// Room has the bytes of messages.
	Room *share.Room

	// Rush has those that clients send before they know how much they may: 64 KiB for each that
	// has just connected.
	Rush *share.Queue

	// Wide, if not nil, has the wide windows of streams: 64 KiB that may come without room. One
	// caller may have half of them.
	Wide *share.Pool

	// Connections, if not nil, has the connections that callers may have.
	Connections *share.Pool

	// Largest, if not zero, is how many bytes a message may have, and LargestField the
	// configuration field of that.
	Largest      int
	LargestField string

	// Refused, if not nil, is called for each message that is refused. It must not block.
	Refused func(caller string, err error)

	// Arrival is how long a message may take to arrive once it has room, and a second more for
	// each MiB. Default: 10 s.
	Arrival time.Duration

	// Late, if not nil, is called for each connection that is closed because a message
	// took longer. It must not block.
	Late func(caller string, bytes int)
}

// Parts of the bytes that Rush and Wide have beside them.
const (
	rushShare = 8
	wideShare = 4
)

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	wide := max(bytes/wideShare, 1)
	return &Budget{
		Room: share.NewRoom(bytes), Rush: share.NewQueue(max(bytes/rushShare, defaultWindow)),
		Wide: share.NewPool(share.Limit{What: "bytes of wide windows", Field: "limits.max_bytes_in_flight", Total: wide, Each: max(wide/2, 1)}),
	}
}

func (b *Budget) refused(caller string, err error) {
	if b.Refused != nil {
		b.Refused(caller, err)
	}
}

func (b *Budget) arrival(size int) time.Duration {
	from := b.Arrival
	if from <= 0 {
		from = 10 * time.Second
	}
	return from + time.Duration(size>>20)*time.Second
}

// What grpc lets a client send before the handler reads: all that there can be, for a budget lets
// it send less. That of the connection bounds no memory, since each stream has its own: it is the
// largest that grpc would find.
const (
	streamWindow     = math.MaxInt32
	connectionWindow = 16 << 20
)

// ServerOptions gives the options of a gRPC server whose connections have the budget. Other
// options of windows must not follow.
func (b *Budget) ServerOptions(of credentials.TransportCredentials) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(&counting{of, b}), grpc.ChainStreamInterceptor(b.Stream),
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
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: raw.RemoteAddr(), AuthInfo: info})
	made := newConn(secured, c.budget, caller.FromContext(ctx).Key())
	if all := c.budget.Connections; all != nil {
		if made.place, err = all.Take(made.caller, 1, nil); err != nil {
			_ = secured.Close() // its caller has too many
			return nil, nil, err
		}
	}
	return made, info, nil
}

// End ends the connection of a call, if it has one of a Budget.
func End(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(address); ok {
			a.conn.hangUp()
		}
	}
}

// Ended reports whether hdsd itself has ended the connection of a call.
func Ended(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	a, ok := p.Addr.(address)
	return ok && a.conn.ended.Load()
}

// After has a function called when nothing of a call is left to send: its status is on the wire, its
// client has reset it, or its connection has ended. It calls the function at once for a call whose
// connection is not one of a Budget.
func After(ctx context.Context, over func()) {
	c, id := place(ctx)
	if c == nil || !c.after(id, over) {
		over()
	}
}

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.budget}
}
