package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/boltfile"
)

// CopyInfo describes a copy of a history.
type CopyInfo struct {
	Bytes       int64
	Transitions int
	Clusters    int
	First, Last time.Time // recorded times of its transitions; zero without any
	Frozen      bool      // publishing was frozen
	Cursor      Cursor    // in the log of a fleet
	Rows        error     // ErrDamaged if single rows are, which hdsd would skip
}

// Examine reads a whole copy of a history that nobody has open, and describes it. The
// error is ErrDamaged or ErrVersion if the copy cannot be restored.
func Examine(ctx context.Context, path string) (CopyInfo, error) {
	o := Options{}.withDefaults()
	file, err := lockPlace(ctx, path, os.O_RDWR, o.LockTimeout)
	if err != nil {
		return CopyInfo{}, err
	}
	info, db, err := examine(path, file, &o)
	return info, errors.Join(err, closeCopy(file, db))
}

// closeCopy closes the file and database of examine.
func closeCopy(file *os.File, db *bolt.DB) error {
	if db != nil {
		return db.Close()
	}
	_ = file.Close() // bbolt may have closed it already
	return nil
}

// examine reads a whole copy. The returned database is open, and owns the file. It is nil if
// bbolt cannot be trusted to close it.
func examine(path string, file *os.File, o *Options) (info CopyInfo, db *bolt.DB, err error) {
	stat, err := file.Stat()
	if err != nil {
		return CopyInfo{}, nil, fmt.Errorf("copy: %w", err)
	}
	info.Bytes = stat.Size()
	err = boltfile.Check(file, info.Bytes)
	switch {
	case errors.Is(err, boltfile.ErrVersion):
		return info, nil, newer(path, err.Error())
	case err != nil:
		return info, nil, damagedCopy(path, err)
	}
	panicked, err := guard(func() (err error) {
		if db, err = bolt.Open(path, 0o600, boltOptions(file, o)); err != nil {
			return err
		}
		return db.View(func(tx *bolt.Tx) error { return info.read(tx, path, o) })
	})
	if panicked { // bbolt may have kept its locks
		db = nil
	}
	if err != nil && !errors.Is(err, ErrVersion) {
		err = damagedCopy(path, err)
	}
	return info, db, err
}

// read fills in i from the rows of a copy, which may be of an older version.
func (i *CopyInfo) read(tx *bolt.Tx, path string, o *Options) error {
	version, _, err := schema(tx)
	if err == nil {
		err = o.unreadable(path, version)
	}
	if err != nil {
		return err
	}
	if err := complete(tx); err != nil {
		return err
	}
	rows := tx.Bucket(transitions)
	if first, _ := rows.Cursor().First(); len(first) == 8 {
		last, _ := rows.Cursor().Last()
		i.First, i.Last = timeOf(number(first)), timeOf(number(last))
	}
	i.Transitions, i.Clusters = rows.Stats().KeyN, tx.Bucket(clusters).Stats().KeyN
	i.Frozen = tx.Bucket(freeze) != nil
	i.Cursor, _ = readCursor(tx)
	if err := checkRows(tx); err != nil {
		i.Rows = fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return nil
}

// IsHistory reports whether a path has the name of hdsd's own file, not of a copy.
func IsHistory(path string) bool { return filepath.Base(path) == fileName }

func damagedCopy(path string, err error) error {
	return fmt.Errorf("%w: %s: %w: it cannot be put in place, take another copy", ErrDamaged, path, err)
}

func newer(path, evidence string) error {
	return fmt.Errorf("%w: %s was written by a newer hdsd (%s): use the hdsd that wrote it, or a newer one", ErrVersion, path, evidence)
}
