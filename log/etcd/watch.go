package etcd

import (
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// interval is the keys of a watch: one key, or those before until.
type interval struct{ key, until []byte }

// tell tells of all changes after a revision, until one of the calls or the watch fails. A watch
// may fail at any time, and does so when the connection goes on to another member of etcd: its
// caller reads the present again and comes back. So the renewals of the lease watch over the
// watches: a member that hangs sends neither.
func (c *Client) tell(ctx context.Context, doing string, after int64, where []interval, filters []pb.WatchCreateRequest_FilterType, each func(*pb.WatchResponse) error) error {
	m, stay := c.conn.member()
	outgoing, token, err := c.conn.outgoing(ctx, m)
	if err != nil {
		return classify(doing, err)
	}
	outgoing, cancel := context.WithCancel(outgoing)
	defer cancel()
	defer context.AfterFunc(stay, cancel)()
	var refused error
	err = watch(outgoing, m, after, where, filters, func(response *pb.WatchResponse) error {
		refused = each(response)
		return refused
	})
	if refused != nil {
		return refused
	}
	if ctx.Err() == nil {
		c.conn.report(stay, err)
	}
	c.conn.forget(token, err)
	return classify(doing, err)
}

// watch reads a watch from one member of etcd. It buffers nothing: while each is busy, the member
// waits.
func watch(ctx context.Context, m *member, after int64, where []interval, filters []pb.WatchCreateRequest_FilterType, each func(*pb.WatchResponse) error) error {
	stream, err := m.watch.Watch(ctx)
	if err != nil {
		return err
	}
	for _, w := range where {
		request := &pb.WatchCreateRequest{Key: w.key, RangeEnd: w.until, StartRevision: after + 1, Filters: filters}
		// The error of a stream that has ended is that of its next read.
		_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: request}})
	}
	for {
		switch response, err := stream.Recv(); {
		case err != nil:
			return err
		case response.CompactRevision != 0:
			return rpctypes.ErrGRPCCompacted
		case response.Canceled:
			return status.Error(codes.Aborted, cmp.Or(response.CancelReason, "the watch was cancelled"))
		default:
			if err := each(response); err != nil {
				return err
			}
		}
	}
}
