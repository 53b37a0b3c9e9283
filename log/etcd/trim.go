package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// trimEntries bounds what one transaction removes: etcd does nothing else meanwhile.
const trimEntries = 1000

// Trim removes the entries up to a sequence, and compacts etcd's history, which frees their
// space for others. The last entry stays. It works while etcd has no space, too. Only the leader
// of the epoch may trim; others get ErrFenced.
func (l *Log) Trim(ctx context.Context, epoch int64, until uint64) error {
	c := l.client
	ctx, cancel := c.bound(ctx)
	defer cancel()
	doing := fmt.Sprintf("trimming the log up to entry %d", until)
	t, err := l.led(epoch)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	e, err := retried(ctx, c.extent)
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
		answer, err := c.conn.settle(ctx, doing, &pb.TxnRequest{
			Compare: append(c.keys.isLed(t), isPresent(c.keys.entry(next))),
			Success: []*pb.RequestOp{remove(c.keys.entry(first), c.keys.entry(next))},
		})
		if err != nil {
			return err
		}
		if !answer.Succeeded {
			return fmt.Errorf("%s: %w (epoch %d)", doing, ErrFenced, epoch)
		}
		e.revision, first = answer.Header.GetRevision(), next
	}
	return c.compact(ctx, e.revision)
}

// compact removes old values of all keys from etcd's history. Whoever watches from an older
// revision reads the present again.
func (c *Client) compact(ctx context.Context, revision int64) error {
	_, err := retried(ctx, func(ctx context.Context) (*pb.CompactionResponse, error) {
		return call(ctx, c.conn, "compacting etcd", func(ctx context.Context, m *member) (*pb.CompactionResponse, error) {
			answer, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
			if is(err, rpctypes.ErrGRPCCompacted) { // somebody else has done so
				return answer, nil
			}
			return answer, err
		})
	})
	return err
}
