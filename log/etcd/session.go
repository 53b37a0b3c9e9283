package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// seat is the state of the replica's key.
type seat struct {
	lease    int64 // lease of this session if the key is under it; else 0
	holder   int64 // lease of another process that has the key; 0: none
	revision int64 // revision of etcd for the fields above; 0 before the first answer
}

// keepSession keeps a lease, and the replica's key under it, until the context ends.
func (c *Client) keepSession(ctx context.Context) {
	defer c.seat.set(seat{})
	// A replica takes its key from a process with its address only once: two processes that have
	// both in common do not replace each other for ever.
	heir := true
	for ctx.Err() == nil {
		if c.grant(ctx) {
			c.renew(ctx, &heir)
		}
		c.seat.set(seat{})
	}
}

// grant gets a lease, and reports whether it did before ctx ended. It chooses the number of the lease,
// so it can repeat a grant after a lost answer.
func (c *Client) grant(ctx context.Context) bool {
	c.lease = 1 + rand.Int64N(1<<62)
	request := &pb.LeaseGrantRequest{ID: c.lease, TTL: c.options.seconds()}
	for n := 0; ; n++ {
		answer, err := write(ctx, c.conn, "opening a session", func(ctx context.Context, m *member) (*pb.LeaseGrantResponse, error) {
			answer, err := m.lease.LeaseGrant(ctx, request)
			if hasMessage(err, saysLeaseExist) { // the attempt before was granted
				return &pb.LeaseGrantResponse{ID: c.lease}, nil
			}
			return answer, err
		})
		if err == nil && answer.ID != c.lease {
			err = fmt.Errorf("opening a session: etcd granted lease %x instead of %x", answer.ID, c.lease)
		}
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.board.fail(TaskSession, err)
		if !sleep(ctx, pause(n)) {
			return false
		}
	}
}

// renew renews the lease three times in a TTL, and returns when the lease has ended. It registers the
// replica again when its key is gone.
func (c *Client) renew(ctx context.Context, heir *bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	timeout := callTimeout
	var s seat
	for n, renewed := 0, false; ; {
		view, changed := c.view.get()
		if renewed && s.isOpen(view, c.options.ID) {
			s = c.register(ctx, heir)
			c.seat.set(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-timer.C:
		}
		answer, err := overlap(ctx, c.conn, callTimeout, func(ctx context.Context) (*pb.LeaseKeepAliveResponse, error) {
			return call(ctx, c.conn, "renewing the session", timeout, c.renewOnce)
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.board.fail(TaskSession, err)
			timer.Reset(pause(n))
			n++
		case answer.TTL <= 0:
			return
		default:
			ttl := time.Duration(answer.TTL) * time.Second
			n, renewed = 0, true
			timeout = max(callTimeout, min(ttl/2, writeTimeout))
			c.board.granted(c.options.TTL, ttl)
			c.board.clear(TaskSession)
			timer.Reset(ttl / 3)
		}
	}
}

// renewOnce renews the lease on a stream of its own, so that the renewal has a deadline.
func (c *Client) renewOnce(ctx context.Context, m *member) (*pb.LeaseKeepAliveResponse, error) {
	stream, err := m.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: c.lease}); err != nil {
		_, err = stream.Recv() // has the reason
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	return stream.Recv()
}

// isOpen reports whether to put the replica's key: its state is unknown, the key is deleted, or its
// holder is gone.
func (s seat) isOpen(view View, id string) bool {
	switch member, ok := view.member(id); {
	case s.revision == 0:
		return true
	case view.revision < s.revision: // the view has yet to catch up
		return false
	default:
		return !ok || member.lease != s.lease+s.holder
	}
}

// register puts the replica's key, unless another process has it.
func (c *Client) register(ctx context.Context, heir *bool) seat {
	key := c.keys.replica(c.options.ID)
	request := &pb.TxnRequest{
		Compare: []*pb.Compare{isAbsent(key)},
		Success: []*pb.RequestOp{put(key, c.describe(), c.lease)},
		Failure: []*pb.RequestOp{get(key)},
	}
	answer, err := c.conn.transact(ctx, "registering the replica", request)
	if err != nil {
		if ctx.Err() == nil {
			c.board.fail(TaskRegister, err)
		}
		return seat{} // the next renewal tries again
	}
	revision := answer.Header.GetRevision()
	if answer.Succeeded {
		*heir = false
		c.board.clear(TaskRegister)
		return seat{lease: c.lease, revision: revision}
	}
	var holder View
	holder.put(c.keys, firstKey(answer, 0))
	other := holder.Members[0]
	switch {
	case other.lease == c.lease: // the answer of an attempt before was lost
		c.board.clear(TaskRegister)
		return seat{lease: c.lease, revision: holder.revision}
	case *heir && other.Address == c.options.Address: // this process, before its restart
		*heir = false
		if _, err := c.revoke(ctx, other.lease); err != nil {
			c.board.fail(TaskRegister, err)
		}
		return seat{holder: other.lease, revision: revision}
	}
	c.board.fail(TaskRegister, fmt.Errorf("%w (%q, at %.200s since %s)", ErrDuplicate, other.ID, other.Address, other.Since.Format(time.RFC3339)))
	return seat{holder: other.lease, revision: revision}
}

func (c *Client) describe() []byte {
	value, _ := json.Marshal(Member{
		Address: c.options.Address, Version: c.options.Version, Started: c.options.Started, Since: time.Now(),
	})
	return value
}
