package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// MaxPayload limits the bytes of an entry. By default, etcd limits requests to 1.5 MiB.
const MaxPayload = 1 << 20

// errClosed ends the calls of a closed client.
var errClosed = errors.New("the session is closed")

// Entry is one entry of the log.
type Entry struct {
	Sequence uint64
	Epoch    int64 // of the leader that committed it
	Payload  []byte
}

// Digest returns a number that another entry at the same sequence does not have. It is never 0.
func (e Entry) Digest() uint64 {
	d := xxhash.New()
	_, _ = d.Write(binary.BigEndian.AppendUint64(nil, uint64(e.Epoch)))
	_, _ = d.Write(e.Payload)
	return max(d.Sum64(), 1)
}

// Position is a place in the log: behind the entry at a sequence.
type Position struct {
	Sequence uint64
	Digest   uint64 // of the entry; 0: unknown
}

// Log is the log of one fleet. It is safe for concurrent use.
type Log struct {
	client *Client
	fleet  founding

	// committing holds a value during a commit: there is one at a time.
	committing chan struct{}

	mu   sync.Mutex
	term term // the latest one; guarded by mu
}

// term identifies the time in which a replica is the leader.
type term struct{ epoch, lease int64 }

func newLog(c *Client, f founding) *Log {
	return &Log{client: c, fleet: f, committing: make(chan struct{}, 1)}
}

// Fleet returns the id of the fleet. A replica stores it with its cursor.
func (l *Log) Fleet() string { return l.fleet.ID }

// Head returns the sequence of the last entry, or an error of Join. A new leader reads the log up to
// the head before it commits.
func (l *Log) Head(ctx context.Context) (uint64, error) {
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	e, err := retry(ctx, l.client.extent)
	if err == nil {
		err = e.check(l.fleet.ID, 0)
	}
	return e.head(), err
}

// Begin returns the sequence of the first entry, or of the next one if there is none. The errors are those of Head.
func (l *Log) Begin(ctx context.Context) (uint64, error) {
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	e, err := retry(ctx, l.client.extent)
	if err == nil {
		err = e.check(l.fleet.ID, 0)
	}
	return e.begins(), err
}

// Verify reports whether the log goes on behind a position, and returns the position with its digest. The errors are those
// of Follow.
func (l *Log) Verify(ctx context.Context, p Position) (Position, error) {
	c := l.client
	ctx, cancel := c.bound(ctx)
	defer cancel()
	request := &pb.TxnRequest{Success: append(c.keys.measure(), get(c.keys.entry(p.Sequence)))}
	answer, err := c.conn.settle(ctx, "reading the extent of the log", request)
	if err != nil {
		return p, err
	}
	return l.verify(answer, 0, p)
}

// verify compares a position with the extent and the entry in the responses from the i-th on.
func (l *Log) verify(answer *pb.TxnResponse, i int, p Position) (Position, error) {
	keys := l.client.keys
	e, err := keys.extent(answer, i)
	if err == nil {
		err = e.check(l.fleet.ID, p.Sequence)
	}
	if err == nil && e.isTrimmed(p.Sequence) {
		err = fmt.Errorf("%w (the cursor is at entry %d, the log begins with %d)", ErrTrimmed, p.Sequence, e.begins())
	}
	kv := firstKey(answer, i+3)
	if err != nil || kv == nil {
		return p, err
	}
	entry, err := keys.decode(kv.Key, kv.Value)
	if err != nil {
		return p, err
	}
	if found := entry.Digest(); p.Digest == 0 {
		p.Digest = found
	} else if p.Digest != found {
		return p, fmt.Errorf("%w (entry %d)", ErrReplaced, p.Sequence)
	}
	return p, nil
}

// termOf returns the term of an epoch, or ErrFenced if this replica has led in a later one or never.
func (l *Log) termOf(epoch int64) (term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == 0 || l.term.epoch != epoch {
		return term{}, fmt.Errorf("%w (epoch %d)", ErrFenced, epoch)
	}
	return l.term, nil
}

func (l *Log) setTerm(t term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = t
}
