package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// trimEntries limits the entries that one transaction removes, since etcd runs one transaction at a
// time.
const trimEntries = 1000

// Trim removes the entries up to a sequence, except the last entry of the log, and compacts etcd's
// history, so that etcd can use their space again. Trim works also when etcd has no space. A
// replica that is not the leader of the epoch gets ErrFenced.
func (l *Log) Trim(ctx context.Context, epoch int64, until uint64) error {
	c := l.client
	ctx, cancel := c.bound(ctx)
	defer cancel()
	operation := fmt.Sprintf("trimming the log up to entry %d", until)
	t, err := l.termOf(epoch)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	e, err := retry(ctx, c.extent)
	if err == nil {
		err = e.check(l.fleet.ID, 0)
	}
	if err != nil || e.count == 0 {
		return err
	}
	if until = min(until, e.head()-1); until < e.first {
		return nil
	}
	for first := e.first; first <= until; {
		next := min(first+trimEntries, until+1)
		answer, err := c.conn.settle(ctx, operation, &pb.TxnRequest{
			Compare: append(c.keys.isLed(t), isPresent(c.keys.entry(next))),
			Success: []*pb.RequestOp{remove(c.keys.entry(first), c.keys.entry(next))},
		})
		if err != nil {
			return err
		}
		if !answer.Succeeded {
			return fmt.Errorf("%s: %w (epoch %d)", operation, ErrFenced, epoch)
		}
		e.revision, first = answer.Header.GetRevision(), next
	}
	return c.compact(ctx, e.revision)
}

// compact removes old values of all keys from etcd's history. Clients that watch from an older
// revision, those of other users of etcd included, have to read the present values again.
func (c *Client) compact(ctx context.Context, revision int64) error {
	_, err := retry(ctx, func(ctx context.Context) (*pb.CompactionResponse, error) {
		return write(ctx, c.conn, "compacting etcd", func(ctx context.Context, m *member) (*pb.CompactionResponse, error) {
			answer, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
			if hasMessage(err, saysCompacted) { // somebody else has done so
				return answer, nil
			}
			return answer, err
		})
	})
	return err
}
