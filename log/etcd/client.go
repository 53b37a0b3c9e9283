package etcd

import (
	"context"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Client is the session of one replica.
type Client struct {
	options Options
	keys    keys
	conn    *connection
	board   *board

	seat *cell[seat] // the registered session
	view *cell[View] // the replicas and the leader

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	lease int64 // that to revoke; owned by keep until the tasks have ended
}

// Open starts the session of a replica. It does not wait for etcd. An error is about the options.
func Open(o Options) (*Client, error) {
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("replication.etcd: %w", err)
	}
	conn, err := dial(o)
	if err != nil {
		return nil, fmt.Errorf("replication.etcd: %w", err)
	}
	c := &Client{
		options: o, keys: keys{o.Prefix}, conn: conn, board: newBoard(o.Log),
		seat: newCell[seat](), view: newCell[View](),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.tasks.Go(func() { c.keepSession(c.ctx) })
	c.tasks.Go(func() { c.watchView(c.ctx) })
	return c, nil
}

// Close ends the session, and all calls of the client. It revokes the lease, so that a leader
// hands over at once; it waits for etcd half a second at most.
func (c *Client) Close() error {
	c.cancel()
	c.tasks.Wait()
	if c.lease != 0 {
		_, _ = c.revoke(context.Background(), c.lease) // otherwise it expires
	}
	return c.conn.close()
}

// Status returns the status of the session. Its next change closes the channel.
func (c *Client) Status() (Status, <-chan struct{}) { return c.board.cell.get() }

// View returns the replicas and the leader. The next change closes the channel.
func (c *Client) View() (View, <-chan struct{}) { return c.view.get() }

// Depose ends the session of a dead leader, so that another replica becomes the leader at once
// instead of after the TTL. A leader that is alive after all loses its leadership and nothing
// else: its commits are fenced. Depose does nothing if the view has another epoch.
func (c *Client) Depose(ctx context.Context, epoch int64) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	view, _ := c.view.get()
	if view.Epoch != epoch || view.lease == 0 {
		return nil
	}
	_, err := c.revoke(ctx, view.lease)
	return err
}

// revoke ends a lease. A lease that has ended is no error.
func (c *Client) revoke(ctx context.Context, lease int64) (*pb.LeaseRevokeResponse, error) {
	return write(ctx, c.conn, "ending a session", func(ctx context.Context, m *member) (*pb.LeaseRevokeResponse, error) {
		answer, err := m.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease})
		if hasMessage(err, saysLeaseNotFound) {
			return answer, nil
		}
		return answer, err
	})
}

// bound returns a context that also ends with the client.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
