package store

import (
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// maxDamaged bounds the damaged values that are counted separately.
const maxDamaged = 1000

// damage counts damaged values, and reports each once.
type damage struct {
	path   string
	report func(error)

	mu   sync.Mutex
	rows map[string]struct{}
}

// unless reports an unreadable row.
func (d *damage) unless(ok bool, bucket, key []byte) {
	if ok {
		return
	}
	if row := fmt.Sprintf("%s/%x", bucket, key); d.add(row) {
		d.report(fmt.Errorf("%w: %s of %s", ErrSkipped, row, d.path))
	}
}

// add reports whether a row is new.
func (d *damage) add(row string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = map[string]struct{}{}
	}
	if _, ok := d.rows[row]; ok || len(d.rows) >= maxDamaged {
		return false
	}
	d.rows[row] = struct{}{}
	return true
}

func (d *damage) count() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(len(d.rows))
}

// forEach calls take with every row of a bucket, which may be missing. It reports rows with a
// wrong checksum and rows that take refuses.
func (d *damage) forEach(tx *bolt.Tx, bucket []byte, take func(k, row []byte) bool) {
	rows := tx.Bucket(bucket)
	if rows == nil {
		return
	}
	cursor := rows.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		row, ok := unseal(k, v)
		d.unless(ok && take(k, row), bucket, k)
	}
}
