package inflight

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"hdsd/internal/caller"
	"hdsd/internal/share"
)

// Budget bounds the bytes of messages in flight.
type Budget struct {
	// Pool has the bytes.
	Pool *share.Pool

	// Connections, if not nil, has the connections that callers may have.
	Connections *share.Pool

	// Patience is how long a connection waits for room before a message is refused. It
	// waits a tenth as long where it has several streams, and spends a tenth of its time waiting
	// at most. Default: 2 s.
	Patience time.Duration

	// Largest, if not zero, is how many bytes a message may have, and LargestField the
	// configuration field of that.
	Largest      int
	LargestField string

	// Refused, if not nil, is called for each message that is larger. It must not block.
	Refused func(caller string, err error)

	// Arrival is how long a message may take to arrive, and a second more for each MiB.
	// Default: 10 s.
	Arrival time.Duration

	// Late, if not nil, is called for each connection that is closed because a message
	// took longer. It must not block.
	Late func(caller string, bytes int)
}

func (b *Budget) patience() time.Duration {
	if b.Patience > 0 {
		return b.Patience
	}
	return 2 * time.Second
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

// Credentials adds the budget to the connections of a gRPC server.
func (b *Budget) Credentials(of credentials.TransportCredentials) credentials.TransportCredentials {
	return &counting{of, b}
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
			_ = a.conn.Conn.Close() // grpc finds out, and closes it, too
		}
	}
}

// After has a function called when nothing of a call is left to send: its status is on the wire, its
// client has reset it, or its connection has ended. It calls the function at once for a call whose
// connection is not one of a Budget.
func After(ctx context.Context, over func()) {
	c, id := find(ctx)
	if c == nil || !c.follow(id, over) {
		over()
	}
}

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.budget}
}
