package store

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// What shares of Options.MaxBytes mean. Between two of them nothing changes, so that
// neither alarms nor pruning go on and off.
const (
	calmShare  = 0.75 // below, the alarm ends
	alarmShare = 0.8  // from here on, there is an alarm
	trimmed    = 0.9  // early pruning ends
	fullShare  = 0.95 // early pruning begins
)

// roomEach is what a transition takes at most while its group is written: its rows, and new
// copies of the pages that it changes.
const roomEach = 4096

// Quota says how much of its room the history uses. The file does not shrink: what counts
// is its pages in use, and free ones are used again before it grows.
type Quota struct {
	Used, Max int64     // bytes
	Near      bool      // Used is near Max
	Pruned    uint64    // transitions deleted before their time since Open
	Oldest    time.Time // before this, past health is not known because of that; zero without
}

// String describes the quota on one line.
func (q *Quota) String() string {
	text := fmt.Sprintf("the history uses %d of %d bytes", q.Used, q.Max)
	if !q.Oldest.IsZero() {
		text += " and is pruned to fit: it reaches back to " + q.Oldest.UTC().Format(time.RFC3339)
	}
	return text
}

// quota keeps the history within its room. The writer owns it, but for its figures.
type quota struct {
	db   *database
	told func(Quota)

	max    atomic.Int64
	near   atomic.Bool
	pruned atomic.Uint64
	oldest atomic.Int64 // nanoseconds; 0 if nothing was deleted early

	trimming bool
	before   uint64 // pruned, when trimming began
}

// earlyKey is the row of the header with the time of the newest transition that was
// deleted early. Past health is known from then on.
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
		return math.MaxInt64 // as far as the first that is kept
	}
	return number(row)
}

func putEarly(tx *bolt.Tx, at uint64) error {
	return tx.Bucket(header).Put(earlyKey, seal(earlyKey, key(at)))
}

// figures returns how much is used at present.
func (q *quota) figures() Quota {
	now := Quota{Used: q.db.used.Load(), Max: q.max.Load(), Near: q.near.Load(), Pruned: q.pruned.Load()}
	if at := q.oldest.Load(); at > 0 {
		now.Oldest = timeOf(uint64(at))
	}
	return now
}

// look compares what is used with the quota. It reports whether to delete the oldest
// transitions.
func (q *quota) look() bool {
	most, used := float64(q.max.Load()), float64(q.db.used.Load())
	if most == 0 {
		most = math.Inf(1)
	}
	switch was := q.near.Load(); {
	case !was && used >= alarmShare*most:
		q.near.Store(true)
		q.told(q.figures())
	case was && used < calmShare*most:
		q.near.Store(false)
		q.told(q.figures())
	}
	switch {
	case !q.trimming && used >= fullShare*most:
		q.trimming, q.before = true, q.pruned.Load()
	case q.trimming && used < trimmed*most:
		q.stop()
	}
	return q.trimming
}

// room returns how many transitions the next group may have, so that it does not take more than
// is left, and early pruning keeps up.
func (q *quota) room() int {
	most := q.max.Load()
	switch {
	case most == 0:
		return math.MaxInt
	case q.trimming:
		return groupSize
	}
	return max(int((most-q.db.used.Load())/roomEach), groupSize)
}

// stop ends early pruning.
func (q *quota) stop() {
	q.trimming = false
	if q.pruned.Load() > q.before {
		q.told(q.figures())
	}
}
