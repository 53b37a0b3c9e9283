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

// changes are rows to put, by bucket and key. A nil row is deleted, and a nil bucket as a whole.
// A missing bucket comes with its first row, so older files need no change.
type changes map[string]map[string][]byte

// sealedBuckets lists the buckets whose values all have a checksum, and checks that a row can be
// read.
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
	{established, func(_, row []byte) bool { _, ok := decodeEstablished(row); return ok }},
	{penalties, func(k, row []byte) bool { _, ok := decodePenalty(row); return ok && len(k) == 8 }},
	{givenBack, func(_, _ []byte) bool { return true }},
	{takenOver, func(_, _ []byte) bool { return true }},
	{audit, func(k, row []byte) bool { _, ok := decodeAudit(row); return ok && len(k) == 8 }},
	{events, func(k, row []byte) bool { _, _, ok := decodeEvent(row); return ok && len(k) == eventKeySize }},
	{moves, func(k, row []byte) bool { _, ok := decodeMove(k, row); return ok }},
	{gaps, func(k, row []byte) bool { _, ok := decodeGap(k, row); return ok }},
}

// rowKey returns the key of a row indexed by a hash.
func rowKey(hash health.Hash) string { return string(key(uint64(hash))) }

// encoded returns nil for nil.
func encoded[T any](v *T, encode func(*T) []byte) []byte {
	if v == nil {
		return nil
	}
	return encode(v)
}

// put queues rows of a bucket. They replace waiting rows with the same keys.
func (in *intake) put(bucket []byte, changed map[string][]byte) {
	if changed != nil && len(changed) == 0 {
		return
	}
	in.work(func() {
		in.submitted.rows++
		if last := in.fleet.last(); last != nil {
			last.rows.put(string(bucket), changed)
			return
		}
		in.rows.put(string(bucket), changed)
	})
}

// put adds rows of a bucket. They replace rows with the same keys.
func (c *changes) put(bucket string, changed map[string][]byte) {
	if *c == nil {
		*c = changes{}
	}
	if rows := (*c)[bucket]; changed == nil || rows == nil {
		(*c)[bucket] = changed
	} else {
		maps.Copy(rows, changed)
	}
}

// nextRows returns the rows of a group. Deletions from voted wait for the last group with
// transitions. The caller holds the lock.
func (in *intake) nextRows(last bool) changes {
	rows := in.rows
	in.rows = nil
	if !last {
		in.putBackRows(rows)
	}
	return rows
}

// putBackRows returns a group's deletions from voted to the queue, unless the row has changed
// since. The caller holds the lock.
func (in *intake) putBackRows(rows changes) {
	name, deferred := string(voted), map[string][]byte{}
	for k, row := range rows[name] {
		if row == nil {
			deferred[k] = nil
			delete(rows[name], k)
		}
	}
	if len(deferred) == 0 {
		return
	}
	if in.rows == nil {
		in.rows = changes{}
	}
	maps.Copy(deferred, in.rows[name])
	in.rows[name] = deferred
}

func (g *group) writeRows(tx *bolt.Tx) error {
	if err := g.rows.write(tx); err != nil {
		return err
	}
	for _, s := range g.portions {
		if err := s.rows.write(tx); err != nil {
			return err
		}
		placed := changes{string(events): s.events.placed, string(audit): s.audit.placed}
		if err := placed.write(tx); err != nil {
			return err
		}
	}
	return nil
}

func (c changes) write(tx *bolt.Tx) error {
	for bucket, changed := range c {
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
	for _, k := range slices.Sorted(maps.Keys(changed)) { // in order this is many times as fast
		if err := putRow(rows, []byte(k), changed[k]); err != nil {
			return err
		}
	}
	return nil
}

// putRow puts a row unless it is unchanged. Nil deletes it.
func putRow(rows *bolt.Bucket, k, row []byte) error {
	if row == nil {
		return rows.Delete(k)
	}
	if v := seal(k, row); !bytes.Equal(v, rows.Get(k)) {
		return rows.Put(k, v)
	}
	return nil
}
