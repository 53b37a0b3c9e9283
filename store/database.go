package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"hdsd/store/boltfile"
)

// database is the open file. It turns bbolt's panics into errors, and shows only data on disk.
type database struct {
	path string
	file *os.File
	bolt *bolt.DB

	durable    atomic.Int64              // latest transaction that is on disk
	used       atomic.Int64              // bytes of the pages in use
	broken     atomic.Pointer[error]     // why bbolt can no longer be used
	committing sync.RWMutex              // held while a transaction commits
	began      atomic.Pointer[time.Time] // start of the write transaction in progress; nil for none

	// unsure is whether the page cache may show first pages that are not on disk. The holder of
	// committing owns it.
	unsure bool
}

// tooLong is the duration of a transaction after which the disk counts as failing.
const tooLong = 5 * time.Second

// newDatabase syncs pages that an unclean end left in the page cache. If the disk refuses, the
// file is still readable, and unsettled is the reason.
func newDatabase(db *bolt.DB, file *os.File) (d *database, unsettled, err error) {
	d = &database{path: db.Path(), file: file, bolt: db}
	if err := d.settle(); err != nil {
		d.unsure, unsettled = true, fmt.Errorf("history: write %s: %w", d.path, err)
	}
	d.durable.Store(1<<63 - 1)
	last := 0
	if err := d.view(func(tx *bolt.Tx) error { last = tx.ID(); return nil }); err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	d.durable.Store(int64(last))
	d.measure()
	return d, unsettled, nil
}

var errPanic = errors.New("bbolt gave up on a page")

// guard runs f and turns panics into errors. bbolt panics on a page that makes no
// sense. Reading a mapped file that has become shorter is a fault.
func guard(f func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			panicked, err = true, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return false, f()
}

// view runs f on committed data on disk.
func (d *database) view(f func(*bolt.Tx) error) error {
	if broken := d.broken.Load(); broken != nil {
		return *broken
	}
	txid := -1
	panicked, err := guard(func() error {
		return d.bolt.View(func(tx *bolt.Tx) error {
			txid = tx.ID()
			return f(tx)
		})
	})
	if panicked {
		err = damaged(d.path, err)
		if txid < 0 {
			d.broken.Store(&err) // bbolt keeps its locks
		}
		return err
	}
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err == nil {
		err = d.waitDurable(txid)
	}
	return err
}

// waitDurable waits until a transaction seen by a reader is on disk. bbolt shows it a moment
// earlier.
func (d *database) waitDurable(transaction int) error {
	if int64(transaction) <= d.durable.Load() {
		return nil
	}
	d.committing.RLock() // held by the writer until the transaction is on disk
	defer d.committing.RUnlock()
	if int64(transaction) > d.durable.Load() {
		return errors.New("history: the disk has not taken the latest group yet: try again")
	}
	return nil
}

// update runs f in a transaction that writes.
func (d *database) update(f func(*bolt.Tx) error) error {
	if broken := d.broken.Load(); broken != nil {
		return *broken
	}
	d.committing.Lock()
	defer d.committing.Unlock()
	d.began.Store(new(time.Now()))
	defer d.began.Store(nil)
	if d.unsure {
		if err := d.settle(); err != nil {
			return err
		}
	}
	transaction := 0
	panicked, err := guard(func() error {
		return d.bolt.Update(func(tx *bolt.Tx) error {
			transaction = tx.ID()
			return f(tx)
		})
	})
	if panicked {
		err = damaged(d.path, err)
		d.broken.Store(&err) // bbolt may keep its locks
	}
	if err == nil {
		d.durable.Store(int64(transaction))
		d.measure()
	}
	d.unsure = err != nil
	return err
}

// settle writes the first pages to disk as the page cache shows them. After a failed sync of a
// first page, bbolt would reuse the pages of the transaction before, the last one on disk. The
// kernel does not write such a page again by itself.
func (d *database) settle() error {
	first := make([]byte, 2*d.bolt.Info().PageSize)
	if _, err := d.file.ReadAt(first, 0); err != nil {
		return err
	}
	if _, err := d.file.WriteAt(first, 0); err != nil || d.bolt.NoSync {
		return err
	}
	return d.bolt.Sync()
}

// waited returns how long a transaction has been waiting for the disk.
func (d *database) waited() time.Duration {
	if began := d.began.Load(); began != nil {
		return time.Since(*began)
	}
	return 0
}

// size returns the size of the file, or 0 once it is closed.
func (d *database) size() int64 {
	info, err := d.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// measure counts the pages in use. The rest of the file are free pages.
func (d *database) measure() {
	_ = d.bolt.View(func(tx *bolt.Tx) error {
		stats := d.bolt.Stats()
		free := int64(stats.FreePageN+stats.PendingPageN) * int64(d.bolt.Info().PageSize)
		d.used.Store(max(tx.Size()-free, 0))
		return nil
	})
}

// writeTo writes the file as seen by one transaction.
func (d *database) writeTo(w io.Writer) error {
	return d.view(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// checkPages checks the pages of a transaction, which stay as they are until it ends.
func (d *database) checkPages(tx *bolt.Tx) error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	return boltfile.CheckTransaction(d.file, info.Size(), uint64(tx.ID()))
}

func (d *database) close() error {
	if d.broken.Load() != nil {
		unlock(d.file) // bbolt's Close could wait for ever
		return nil
	}
	return d.bolt.Close()
}
