package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// SalvageResult says what Salvage kept, and what is lost.
type SalvageResult struct {
	CopyInfo
	Path string   // of the history
	Kept string   // where the damaged one is; empty if it was a copy elsewhere
	Lost []string // what could not be read
}

// Salvage makes a new history of what can be read of a damaged one, and puts it in place.
// That is the history in a folder, or a copy of one if from is not empty. It keeps every
// value whose checksum is right, and no other. Where transitions are lost, the history has
// a gap. After an error everything is as it was.
func Salvage(ctx context.Context, folder, from string) (done SalvageResult, err error) {
	o := Options{LockTimeout: time.Second}.withDefaults()
	done.Path = filepath.Join(folder, fileName)
	before, err := lockPlace(ctx, done.Path, os.O_RDWR, o.LockTimeout)
	if err != nil && (from == "" || !errors.Is(err, fs.ErrNotExist)) {
		return done, err
	}
	if before != nil {
		defer before.Close()
	}
	damaged := before
	if from != "" {
		if damaged, err = os.Open(from); err != nil {
			return done, fmt.Errorf("copy: %w", err)
		}
		defer damaged.Close()
	}
	staged, err := lockPlace(ctx, unfinished(done.Path), os.O_RDWR|os.O_CREATE, o.LockTimeout)
	if err != nil {
		return done, err
	}
	db, err := done.rescue(ctx, damaged, staged, &o)
	if err == nil {
		err = giveTo(staged, folder)
	}
	if err == nil {
		done.Kept, err = replace(done.Path, before != nil, o.now())
	}
	if err != nil {
		err = errors.Join(err, os.Remove(unfinished(done.Path)))
	}
	return done, errors.Join(err, closeCopy(staged, db))
}

// rescue copies what is good of one file to another.
func (r *SalvageResult) rescue(ctx context.Context, damaged, staged *os.File, o *Options) (*bolt.DB, error) {
	info, err := damaged.Stat()
	if err == nil {
		err = staged.Truncate(0)
	}
	if err != nil {
		return nil, fmt.Errorf("salvage: %w", err)
	}
	db, err := bolt.Open(staged.Name(), 0o600, boltOptions(staged, o))
	if err != nil {
		return nil, fmt.Errorf("salvage: %w", err)
	}
	to := &rescuer{ctx: ctx, db: db, options: o, shared: names{}, lost: map[string]int{}}
	return db, errors.Join(to.run(damaged, info.Size()), r.describe(to))
}

// describe fills in r from what was rescued.
func (r *SalvageResult) describe(from *rescuer) error {
	for _, bucket := range slices.Sorted(maps.Keys(from.lost)) {
		r.Lost = append(r.Lost, rowsOf(from.lost[bucket], []byte(bucket)))
	}
	r.Lost = append(r.Lost, from.why...)
	return from.db.View(func(tx *bolt.Tx) error {
		r.Bytes = tx.Size()
		return r.read(tx, r.Path, from.options)
	})
}

// rowsOf says how many rows of a bucket.
func rowsOf(n int, bucket []byte) string {
	if n == 1 {
		return fmt.Sprintf("1 row of %s", bucket)
	}
	return fmt.Sprintf("%d rows of %s", n, bucket)
}
