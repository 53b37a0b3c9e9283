package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

var errFault = errors.New("bbolt gave up on a page")

// guard runs f. bbolt panics on a page that makes no sense, and reading a
// mapped file that has become shorter is a fault; both become an error.
func guard(f func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			panicked, err = true, fmt.Errorf("%w: %v", errFault, p)
		}
	}()
	return false, f()
}

// view runs f on what is committed and on disk.
func (s *Store) view(f func(*bolt.Tx) error) error {
	if broken := s.broken.Load(); broken != nil {
		return *broken
	}
	seen := -1
	panicked, err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			seen = tx.ID()
			return f(tx)
		})
	})
	if panicked {
		err = damaged(s.path, err)
		if seen < 0 {
			s.broken.Store(&err) // bbolt has kept its locks
		}
		return err
	}
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err == nil {
		err = s.settled(seen)
	}
	return err
}

// settled waits for a transaction that a reader has seen to be on disk: bbolt
// shows it a moment earlier.
func (s *Store) settled(transaction int) error {
	if int64(transaction) <= s.durable.Load() {
		return nil
	}
	s.committing.RLock() // held by the writer until it is
	defer s.committing.RUnlock()
	if int64(transaction) > s.durable.Load() {
		return errors.New("history: the disk has not taken the latest group yet: try again")
	}
	return nil
}

// update runs f in a transaction of the writer.
func (s *Store) update(f func(*bolt.Tx) error) error {
	if broken := s.broken.Load(); broken != nil {
		return *broken
	}
	s.committing.Lock()
	defer s.committing.Unlock()
	transaction := 0
	panicked, err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			transaction = tx.ID()
			return f(tx)
		})
	})
	if panicked {
		err = damaged(s.path, err)
		s.broken.Store(&err) // bbolt may have kept its locks
	}
	if err == nil {
		s.durable.Store(int64(transaction))
	}
	return err
}
