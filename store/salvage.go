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

// SalvageResult describes what Salvage kept and lost.
type SalvageResult struct {
	CopyInfo
	Path string   // of the history
	Kept string   // path of the damaged one; empty if it was a copy elsewhere
	Lost []string // descriptions of lost rows
}

// Salvage makes a new history of the readable part of a damaged one, and puts it in place. It
// reads the history in a folder, or a copy if origin is not empty. It keeps every value with a
// right checksum, and no other. Where transitions are lost, the history has a gap. After an
// error everything is as before.
func Salvage(ctx context.Context, folder, origin string) (done SalvageResult, err error) {
	o := Options{LockTimeout: time.Second}.withDefaults()
	done.Path = filepath.Join(folder, fileName)
	before, err := lockPlace(ctx, done.Path, os.O_RDWR, o.LockTimeout)
	if err != nil && (origin == "" || !errors.Is(err, fs.ErrNotExist)) {
		return done, err
	}
	if before != nil {
		defer before.Close()
	}
	damaged := before
	if origin != "" {
		if damaged, err = os.Open(origin); err != nil {
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

// rescue copies the good rows of one file to another.
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
	rescuer := &rescuer{ctx: ctx, db: db, options: o, shared: names{}, lost: map[string]int{}}
	return db, errors.Join(rescuer.run(damaged, info.Size()), r.describe(rescuer))
}

// describe fills in r from the rescuer's result.
func (r *SalvageResult) describe(rescued *rescuer) error {
	for _, bucket := range slices.Sorted(maps.Keys(rescued.lost)) {
		r.Lost = append(r.Lost, rowsOf(rescued.lost[bucket], []byte(bucket)))
	}
	r.Lost = append(r.Lost, rescued.losses...)
	return rescued.db.View(func(tx *bolt.Tx) error {
		r.Bytes = tx.Size()
		return r.read(tx, r.Path, rescued.options)
	})
}

// rowsOf returns a phrase that counts rows of a bucket.
func rowsOf(n int, bucket []byte) string {
	if n == 1 {
		return fmt.Sprintf("1 row of %s", bucket)
	}
	return fmt.Sprintf("%d rows of %s", n, bucket)
}
