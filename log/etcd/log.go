package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
