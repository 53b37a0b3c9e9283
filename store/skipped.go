package store

import (
	"fmt"
	"sync"
)

// mostSkipped is how many damaged values are told apart.
const mostSkipped = 1000

// skipped remembers which damaged values were met, so that each is counted and
// reported once.
type skipped struct {
	mu   sync.Mutex
	rows map[string]struct{}
}

func (d *skipped) add(row string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = map[string]struct{}{}
	}
	if _, ok := d.rows[row]; ok || len(d.rows) >= mostSkipped {
		return false
	}
	d.rows[row] = struct{}{}
	return true
}

func (d *skipped) count() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(len(d.rows))
}

// skipUnless reports a row that could not be read.
func (s *Store) skipUnless(ok bool, bucket, key []byte) {
	if ok {
		return
	}
	if row := fmt.Sprintf("%s/%x", bucket, key); s.skipped.add(row) {
		s.options.OnError(fmt.Errorf("%w: %s of %s", ErrSkipped, row, s.path))
	}
}
