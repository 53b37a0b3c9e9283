package etcd

import (
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// interval is the keys of a watch: from key until the key until; one key without that.
type interval struct{ key, until []byte }

// watch passes the changes after a revision to handle, until handle or the watch fails. A watch may
// fail at any time, and fails when the connection moves on to another member of etcd. Then the caller
// reads the present values, and watches again. Renewals of the lease detect a member that hangs, for
// watches as well.
func (c *Client) watch(ctx context.Context, operation string, after int64, intervals []interval, filters []pb.WatchCreateRequest_FilterType, handle func(*pb.WatchResponse) error) error {
	m, stay := c.conn.member()
	outgoing, token, err := c.conn.outgoing(ctx, m)
	if err != nil {
		return classify(operation, err)
	}
	outgoing, cancel := context.WithCancel(outgoing)
	defer cancel()
	defer context.AfterFunc(stay, cancel)()
	var refused error
	err = readWatch(outgoing, m, after, intervals, filters, func(response *pb.WatchResponse) error {
		refused = handle(response)
		return refused
	})
	if refused != nil {
		return refused
	}
	if ctx.Err() == nil {
		c.conn.report(stay, err)
	}
	c.conn.forget(token, err)
	return classify(operation, err)
}

// readWatch reads a watch from one member of etcd. It buffers nothing: while handle is busy, the
// member waits.
func readWatch(ctx context.Context, m *member, after int64, intervals []interval, filters []pb.WatchCreateRequest_FilterType, handle func(*pb.WatchResponse) error) error {
	stream, err := m.watch.Watch(ctx)
	if err != nil {
		return err
	}
	for _, w := range intervals {
		request := &pb.WatchCreateRequest{Key: w.key, RangeEnd: w.until, StartRevision: after + 1, Filters: filters}
		// The error of a stream that has ended is that of its next read.
		_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: request}})
	}
	for {
		switch response, err := stream.Recv(); {
		case err != nil:
			return err
		case response.CompactRevision != 0:
			return status.Error(codes.OutOfRange, saysCompacted)
		case response.Canceled:
			return status.Error(codes.Aborted, cmp.Or(response.CancelReason, "the watch was cancelled"))
		default:
			if err := handle(response); err != nil {
				return err
			}
		}
	}
}
