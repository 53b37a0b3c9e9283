package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// MaxPayload is the most bytes of an entry. etcd takes requests of 1.5 MiB by default.
const MaxPayload = 1 << 20

// errClosed ends the calls of a closed client.
var errClosed = errors.New("the session is closed")

// Entry is one entry of the log.
type Entry struct {
	Sequence uint64
	Epoch    int64 // of the leader that committed it
	Payload  []byte
}

// Log is the log of one fleet. Its methods may be called at the same time.
type Log struct {
	client *Client
	fleet  founding

	// committing holds a value while a commit is on its way: there is one at a time.
	committing chan struct{}

	mu   sync.Mutex
	term term // the latest one; guarded by mu
}

// term is the time in which a replica is the leader.
type term struct{ epoch, lease int64 }

func newLog(c *Client, f founding) *Log {
	return &Log{client: c, fleet: f, committing: make(chan struct{}, 1)}
}

// Fleet is the id of the fleet, which a replica keeps beside its cursor.
func (l *Log) Fleet() string { return l.fleet.ID }

// Head returns the sequence of the last entry. A new leader reads up to it before it commits. It
// fails as Follow does for a replica without a cursor.
func (l *Log) Head(ctx context.Context) (uint64, error) {
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	e, err := retried(ctx, l.client.extent)
	if err == nil {
		err = e.check(l.fleet.ID, 0)
	}
	return e.head(), err
}

// led is the term of an epoch, if it is the latest one of this replica.
func (l *Log) led(epoch int64) (term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == 0 || l.term.epoch != epoch {
		return term{}, fmt.Errorf("%w (epoch %d)", ErrFenced, epoch)
	}
	return l.term, nil
}

func (l *Log) begin(t term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = t
}
