package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Commit appends an entry to the log: it is there, once, when Commit returns nil. The sequence is
// that after the last entry. Commits wait for each other.
//
// ErrFenced says that the entry is not in the log and never will be, ErrTaken and ErrGap that the
// log is not as the leader believes; ErrTooLarge that nothing was sent. After any other error the
// entry may be in the log, or come to be there: the leader commits the same payload at the same
// sequence again, or resigns. While etcd does not answer, Commit goes on until ctx ends.
func (l *Log) Commit(ctx context.Context, epoch int64, sequence uint64, payload []byte) error {
	operation := fmt.Sprintf("committing entry %d", sequence)
	if len(payload) > MaxPayload {
		return fmt.Errorf("%s of %d bytes: %w", operation, len(payload), ErrTooLarge)
	}
	if sequence == 0 {
		return fmt.Errorf("%s: %w (the first one is 1)", operation, ErrGap)
	}
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	select {
	case l.committing <- struct{}{}:
		defer func() { <-l.committing }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", operation, context.Cause(ctx))
	}
	t, err := l.termOf(epoch)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	entry := proposal{sequence, t, encode(epoch, payload)}
	err = l.propose(ctx, operation, entry)
	if err == nil || isVerdict(err) || ctx.Err() != nil {
		l.client.board.clear(TaskCommit)
	} else {
		l.client.board.fail(TaskCommit, err)
	}
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// isVerdict reports whether an error of a commit is about the entry, not about etcd.
func isVerdict(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrTaken) || errors.Is(err, ErrGap) || errors.Is(err, ErrTooLarge) || isFinal(err)
}

// forgetTrouble forgets why commits fail. It waits for one in progress.
func (l *Log) forgetTrouble(ctx context.Context) {
	select {
	case l.committing <- struct{}{}:
		l.client.board.clear(TaskCommit)
		<-l.committing
	case <-ctx.Done():
	}
}

// proposal is an entry that a leader wants in the log.
type proposal struct {
	sequence uint64
	term     term
	value    []byte
}

// propose repeats a transaction until the fate of the entry is known.
func (l *Log) propose(ctx context.Context, operation string, entry proposal) error {
	c := l.client
	request := c.keys.commit(entry)
	for first := true; ; first = false {
		answer, err := c.conn.settle(ctx, operation, request)
		if err != nil || answer.Succeeded {
			return err
		}
		fate, err := c.keys.judge(entry, answer, l.fleet)
		if err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
		switch {
		case fate == fateCommitted:
			return nil
		case !first: // the log has begun meanwhile, without this leader
			return fmt.Errorf("%s: %w", operation, ErrGap)
		}
		request = c.keys.beginLog(entry, l.fleet)
	}
}

// commit appends an entry after another one.
func (k keys) commit(entry proposal) *pb.TxnRequest {
	key, before := k.entry(entry.sequence), k.entry(entry.sequence-1)
	return &pb.TxnRequest{
		Compare: append(k.isLed(entry.term), isAbsent(key), isPresent(before)),
		Success: []*pb.RequestOp{put(key, entry.value, 0)},
		Failure: append(k.measure(), get(k.leader()), get(key)),
	}
}

// beginLog puts the first entry of a log, which follows the head at the founding of the fleet.
func (k keys) beginLog(entry proposal, fleet founding) *pb.TxnRequest {
	request := k.commit(entry)
	request.Compare[len(request.Compare)-1] = hasValue(k.fleet(), fleet.text)
	return request
}

// fate is the result of a commit that etcd refused.
type fate int

const (
	fateUnknown   fate = iota
	fateCommitted      // an attempt before has put the entry
	fateBegins         // it is the first one of the log
)

// judge finds the fate of an entry whose transaction etcd refused, or the error.
func (k keys) judge(entry proposal, answer *pb.TxnResponse, fleet founding) (fate, error) {
	e, err := k.extent(answer, 0)
	if err != nil {
		return fateUnknown, err
	}
	leader, present := firstKey(answer, 3), firstKey(answer, 4)
	switch {
	case present != nil && bytes.Equal(present.Value, entry.value):
		return fateCommitted, nil
	case leader == nil:
		return fateUnknown, fmt.Errorf("%w (epoch %d; there is no leader)", ErrFenced, entry.term.epoch)
	case leader.CreateRevision != entry.term.epoch || leader.Lease != entry.term.lease:
		return fateUnknown, fmt.Errorf("%w (epoch %d; now there is epoch %d)", ErrFenced, entry.term.epoch, leader.CreateRevision)
	case present != nil:
		return fateUnknown, ErrTaken
	}
	if err := e.check(fleet.ID, entry.sequence-1); err != nil {
		return fateUnknown, err
	}
	if e.count == 0 && e.fleet.After == entry.sequence-1 {
		return fateBegins, nil
	}
	return fateUnknown, fmt.Errorf("%w (it ends with entry %d)", ErrGap, e.head())
}
