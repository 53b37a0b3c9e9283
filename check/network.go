package check

import (
	"context"
	"net"
	"time"
)

// Dialer makes the connection of a probe; ctx has the probe's deadline.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// network is shared by all probers.
type network struct {
	dialer Dialer // nil for the real network
	places chan struct{}
	random Random
}

// acquire waits for one of the places for dialing.
func (n *network) acquire(ctx context.Context) error {
	select {
	case n.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *network) release() { <-n.places }

func (n *network) dial(ctx context.Context, dest target, source net.Addr, deadline time.Time) (net.Conn, error) {
	if n.dialer != nil {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		return n.dialer(ctx, dest.network, dest.address)
	}
	// TCP keep-alive does not help probes, and costs system calls.
	d := net.Dialer{Deadline: deadline, KeepAlive: -1}
	if dest.network == "tcp" {
		d.LocalAddr = source
	}
	return d.DialContext(ctx, dest.network, dest.address)
}
