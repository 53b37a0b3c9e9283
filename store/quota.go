package store

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// The shares of Options.MaxBytes. The distances between them keep alarms and pruning from
// flapping.
const (
	calmShare  = 0.75 // below, the alarm ends
	alarmShare = 0.8  // from here on, there is an alarm
	trimmed    = 0.9  // early pruning ends
	fullShare  = 0.95 // early pruning begins
)

// roomEach bounds what a transition takes while its group is written: its rows, and new copies
// of the changed pages.
const roomEach = 4096

// Quota is the use of the history's room. The file does not shrink: its pages in use count, and
// free ones are used again before it grows.
type Quota struct {
	Used, Max int64     // bytes
	Near      bool      // Used is near Max
	Pruned    uint64    // transitions deleted early since Open
	Oldest    time.Time // past health before this time is unknown, because of early deletions; zero without any
}

// String describes the quota on one line.
func (q *Quota) String() string {
	text := fmt.Sprintf("the history uses %d of %d bytes", q.Used, q.Max)
	if !q.Oldest.IsZero() {
		text += " and is pruned to fit: it reaches back to " + q.Oldest.UTC().Format(time.RFC3339)
	}
	return text
}

// quota keeps the history within its room. The writer owns it, apart from its figures.
type quota struct {
	db     *database
	report func(Quota)

	max    atomic.Int64
	near   atomic.Bool
	pruned atomic.Uint64
	oldest atomic.Int64 // nanoseconds; 0 if nothing was deleted early

	trimming bool
	before   uint64 // pruned at the start of trimming
}

// earlyKey is the row of the header with the time of the newest transition deleted early. Past
// health is known from then on.
var earlyKey = []byte("early")

func (q *quota) load(tx *bolt.Tx) { q.oldest.Store(int64(readEarly(tx))) }

// readEarly returns 0 if nothing was deleted early.
func readEarly(tx *bolt.Tx) uint64 {
	sealed := tx.Bucket(header).Get(earlyKey)
	if sealed == nil {
		return 0
	}
	row, ok := unseal(earlyKey, sealed)
	if !ok || len(row) != 8 {
		return math.MaxInt64 // as far as the first kept transition
	}
	return number(row)
}

func putEarly(tx *bolt.Tx, t uint64) error {
	return tx.Bucket(header).Put(earlyKey, seal(earlyKey, key(t)))
}

// figures returns the present use.
func (q *quota) figures() Quota {
	now := Quota{Used: q.db.used.Load(), Max: q.max.Load(), Near: q.near.Load(), Pruned: q.pruned.Load()}
	if oldest := q.oldest.Load(); oldest > 0 {
		now.Oldest = timeOf(uint64(oldest))
	}
	return now
}

// look compares the use with the quota, and reports whether to delete the oldest transitions.
func (q *quota) look() bool {
	limit, used := float64(q.max.Load()), float64(q.db.used.Load())
	if limit == 0 {
		limit = math.Inf(1)
	}
	switch previous := q.near.Load(); {
	case !previous && used >= alarmShare*limit:
		q.near.Store(true)
		q.report(q.figures())
	case previous && used < calmShare*limit:
		q.near.Store(false)
		q.report(q.figures())
	}
	switch {
	case !q.trimming && used >= fullShare*limit:
		q.trimming, q.before = true, q.pruned.Load()
	case q.trimming && used < trimmed*limit:
		q.stop()
	}
	return q.trimming
}

// room returns the bound of the next group, so that it fits, and early pruning keeps up.
func (q *quota) room() int {
	limit := q.max.Load()
	switch {
	case limit == 0:
		return math.MaxInt
	case q.trimming:
		return groupSize
	}
	return max(int((limit-q.db.used.Load())/roomEach), groupSize)
}

// stop ends early pruning.
func (q *quota) stop() {
	q.trimming = false
	if q.pruned.Load() > q.before {
		q.report(q.figures())
	}
}
