package etcd

import (
	"context"
	"encoding/json"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Campaign waits until the replica is the leader, and returns the epoch. It sends nothing to etcd
// until the leader's key is deleted. The leadership ends with the session, by Resign or by Depose:
// then the View has another epoch, and commits return ErrFenced. Only a registered replica becomes
// the leader, and only of its own fleet. Errors are those of Join and of ctx.
func (l *Log) Campaign(ctx context.Context) (epoch int64, err error) {
	c := l.client
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l.forgetTrouble(ctx) // of the previous term
	for n := 0; ; {
		view, viewed := c.view.get()
		seat, seated := c.seat.get()
		if view.Known && seat.lease != 0 && (view.Epoch == 0 || view.lease == seat.lease) {
			epoch, err := l.claim(ctx, seat.lease)
			switch {
			case ctx.Err() != nil:
				return 0, context.Cause(ctx)
			case err == nil && epoch != 0:
				c.board.clear(TaskCampaign)
				return epoch, nil
			case isFinal(err):
				c.board.clear(TaskCampaign)
				return 0, err
			case err != nil:
				c.board.fail(TaskCampaign, err)
				sleep(ctx, pause(n))
				n++
				continue
			}
		}
		c.board.clear(TaskCampaign) // another one is the leader, or there is no session
		n = 0
		select {
		case <-viewed:
		case <-seated:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// claim makes the replica the leader, and returns the epoch; 0 if another replica leads.
func (l *Log) claim(ctx context.Context, lease int64) (int64, error) {
	c := l.client
	value, err := json.Marshal(leaderValue{c.options.ID, time.Now()})
	if err != nil {
		return 0, err
	}
	leader := c.keys.leader()
	answer, err := c.conn.transact(ctx, "becoming the leader", &pb.TxnRequest{
		Compare: []*pb.Compare{isAbsent(leader), hasValue(c.keys.fleet(), l.fleet.text)},
		Success: []*pb.RequestOp{put(leader, value, lease)},
		Failure: append(c.keys.measure(), get(leader)),
	})
	if err != nil {
		return 0, err
	}
	if answer.Succeeded {
		t := term{answer.Header.GetRevision(), lease}
		l.setTerm(t)
		return t.epoch, nil
	}
	if e, err := c.keys.extent(answer, 0); err != nil {
		return 0, err
	} else if err := e.check(l.fleet.ID, 0); err != nil {
		return 0, err
	}
	kv := firstKey(answer, 3)
	if kv == nil || kv.Lease != lease {
		return 0, nil
	}
	t := term{kv.CreateRevision, lease} // the answer of an attempt before was lost
	l.setTerm(t)
	return t.epoch, nil
}

// AwaitEnd waits until another epoch has begun, or the leader's key is deleted. It returns the error of ctx otherwise.
// While etcd is away, the leadership does not end.
func (l *Log) AwaitEnd(ctx context.Context, epoch int64) error {
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	for {
		view, changed := l.client.view.get()
		if view.Known && view.revision >= epoch && view.Epoch != epoch {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Resign ends the leadership of an epoch, and keeps the session. A replica that does not lead resigns
// nothing.
func (l *Log) Resign(ctx context.Context, epoch int64) error {
	c := l.client
	ctx, cancel := c.bound(ctx)
	defer cancel()
	t, err := l.termOf(epoch)
	if err != nil {
		return nil //nolint:nilerr // it leads no more
	}
	_, err = c.conn.settle(ctx, "resigning", &pb.TxnRequest{
		Compare: c.keys.isLed(t),
		Success: []*pb.RequestOp{remove(c.keys.leader(), nil)},
	})
	return err
}

// isLed compares the leader's key with a term.
func (k keys) isLed(t term) []*pb.Compare {
	return []*pb.Compare{isCreated(k.leader(), t.epoch), hasLease(k.leader(), t.lease)}
}
