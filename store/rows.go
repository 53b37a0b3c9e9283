package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"hdsd/health"
)

// changes are rows to be put, by bucket and key. A row of nil is taken out, a
// bucket of nil goes as a whole. One that is missing comes with its first row,
// so that files from before it need no change.
type changes map[string]map[string][]byte

// sealedBuckets are those in which all values are sealed, each with what tells
// whether a row can be read.
var sealedBuckets = []struct {
	name []byte
	good func(k, row []byte) bool
}{
	{plan, func(_, row []byte) bool { _, _, ok := decodePlan(row); return ok }},
	{clusters, func(_, _ []byte) bool { return true }},
	{trials, func(_, row []byte) bool { _, _, ok := decodeTrials(row); return ok }},
	{freeze, goodFreeze},
	{overrides, func(_, row []byte) bool { _, ok := decodeOverride(row); return ok }},
	{voted, func(k, row []byte) bool { _, ok := decodeVoted(row); return ok && len(k) == 8 }},
	{trust, func(_, row []byte) bool { _, ok := decodeTrust(row); return ok }},
}

// rowKey is the key of what is known by a hash.
func rowKey(hash health.Hash) string { return string(key(uint64(hash))) }

// encoded gives nil for nil.
func encoded[T any](v *T, encode func(*T) []byte) []byte {
	if v == nil {
		return nil
	}
	return encode(v)
}

// put hands rows of a bucket over, in the place of those with their keys.
func (in *intake) put(bucket []byte, changed map[string][]byte) {
	if changed != nil && len(changed) == 0 {
		return
	}
	in.work(func() {
		if in.rows == nil {
			in.rows = changes{}
		}
		if name := string(bucket); changed == nil || in.rows[name] == nil {
			in.rows[name] = changed
		} else {
			maps.Copy(in.rows[name], changed)
		}
		in.asked.others++
	})
}

// takeRows gives the rows that belong to a group, which may be the last one
// that has transitions, or not; the lock is held. What goes out of voted waits
// for the last one.
func (in *intake) takeRows(last bool) changes {
	taken, name, later := in.rows, string(voted), map[string][]byte{}
	in.rows = nil
	if last {
		return taken
	}
	for k, row := range taken[name] {
		if row == nil {
			later[k] = nil
			delete(taken[name], k)
		}
	}
	if len(later) > 0 {
		in.rows = changes{name: later}
	}
	return taken
}

func (g *group) writeRows(tx *bolt.Tx) error {
	for bucket, changed := range g.rows {
		if err := putRows(tx, []byte(bucket), changed); err != nil {
			return fmt.Errorf("%s: %w", bucket, err)
		}
	}
	return nil
}

func putRows(tx *bolt.Tx, bucket []byte, changed map[string][]byte) error {
	if changed == nil {
		if err := tx.DeleteBucket(bucket); !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
		return nil
	}
	rows, err := tx.CreateBucketIfNotExists(bucket)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(changed)) { // in order it is many times as fast
		if err := putRow(rows, []byte(k), changed[k]); err != nil {
			return err
		}
	}
	return nil
}

// putRow puts a row, unless it is there as it is; nil takes it out.
func putRow(rows *bolt.Bucket, k, row []byte) error {
	if row == nil {
		return rows.Delete(k)
	}
	if v := seal(k, row); !bytes.Equal(v, rows.Get(k)) {
		return rows.Put(k, v)
	}
	return nil
}
