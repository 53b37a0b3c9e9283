package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
	"hdsd/store/boltfile"
)

// rescuer copies the good rows of a damaged file to a new one, in groups.
type rescuer struct {
	ctx     context.Context
	db      *bolt.DB
	options *Options
	shared  names

	version uint32
	created uint64 // start of the history; 0 if lost
	waiting []rescued
	failed  error // write error

	lost   map[string]int // damaged rows, by bucket
	losses []string       // other losses
	holes  []gap          // places of lost transitions, in order
	last   uint64         // recorded time of the last good transition
	hole   bool           // transitions are lost behind last
	frozen bool           // there is a freeze, but it is damaged
	adrift bool           // there may be a cursor, but it is lost
	kept   int            // number of copied rows
}

// rescued is a good row.
type rescued struct {
	bucket, key, value []byte
}

// run copies a file of this size.
func (r *rescuer) run(damaged *os.File, size int64) error {
	info, err := damaged.Stat()
	if err != nil {
		return err
	}
	r.version = r.options.version()
	head := boltfile.Salvage{Row: r.readHead, Lost: func([]byte, error) {}, Strays: func() bool { return false }}
	if err := head.Read(damaged, size); err != nil {
		return newer(damaged.Name(), err.Error())
	}
	if err := r.options.unreadable(damaged.Name(), r.version); err != nil {
		return err
	}
	if err := r.db.Update(func(tx *bolt.Tx) error { return initialize(tx, r.version, timeOf(r.created)) }); err != nil {
		return err
	}
	salvage := boltfile.Salvage{Row: r.row, Lost: r.lose, Strays: func() bool {
		r.endHole(max(r.last+1, nanos(info.ModTime())))
		return len(r.holes) > 0
	}}
	if err := salvage.Read(damaged, size); err != nil {
		return newer(damaged.Name(), err.Error())
	}
	r.flush()
	if r.failed == nil && r.kept == 0 {
		return fmt.Errorf("%w: nothing in it can be read: restore a backup, or move it away to begin a new history", ErrDamaged)
	}
	if r.failed == nil {
		r.failed = r.db.Update(r.finish)
	}
	return r.failed
}

// readHead reads the schema version and when the history began.
func (r *rescuer) readHead(bucket, k, v []byte) {
	if !bytes.Equal(bucket, header) || !bytes.Equal(k, formatKey) {
		return
	}
	if version, created, ok := parseSchema(v); ok {
		r.version, r.created = version, created
	}
}

// row copies a good row.
func (r *rescuer) row(bucket, k, v []byte) {
	switch {
	case bucket == nil:
		if t, ok := openTransition(k, v, r.shared); ok && t.From.Valid() && t.To.Valid() && t.Endpoint.Address != "" {
			r.keep(transitions, k, v)
		}
	case bytes.Equal(bucket, byCluster), bytes.Equal(bucket, byEndpoint), bytes.Equal(bucket, addresses):
		// The new file has its own.
	case bytes.Equal(bucket, header) && bytes.Equal(k, formatKey):
		if _, _, ok := parseSchema(v); !ok {
			r.lost[string(header)]++
		}
	case !r.good(bucket, k, v):
		r.lost[string(bucket)]++
		r.missing(bucket)
	default:
		if bytes.Equal(bucket, transitions) {
			r.endHole(number(k) - 1)
			r.last = number(k)
		}
		r.keep(bucket, k, v)
	}
}

// good reports whether a row is as it was written, where it was written.
func (r *rescuer) good(bucket, k, v []byte) (ok bool) {
	row, sealed := unseal(k, v)
	switch string(bucket) {
	case string(transitions):
		_, ok = openTransition(k, v, r.shared)
		return ok
	case string(current):
		t, ok := openCurrent(k, v, r.shared)
		return ok && bytes.Equal(k, rowOf(&t.Endpoint))
	case string(header):
		return sealed
	case string(clusters):
		return sealed && string(k) == rowKey(hashOf(string(row)))
	}
	for _, codec := range sealedBuckets {
		if !bytes.Equal(bucket, codec.name) {
			continue
		}
		return sealed && codec.good(k, row)
	}
	return false
}

// lose records unreadable rows.
func (r *rescuer) lose(bucket []byte, reason error) {
	if bucket == nil {
		r.losses = append(r.losses, reason.Error())
		r.hole = true
		return
	}
	for _, index := range [][]byte{byCluster, byEndpoint, addresses} {
		if bytes.Equal(bucket, index) {
			return
		}
	}
	r.losses = append(r.losses, fmt.Sprintf("a part of %s: %v", bucket, reason))
	r.missing(bucket)
}

// missing records the consequences of missing rows of a bucket.
func (r *rescuer) missing(bucket []byte) {
	r.hole = r.hole || bytes.Equal(bucket, transitions)
	r.frozen = r.frozen || bytes.Equal(bucket, freeze)
	r.adrift = r.adrift || bytes.Equal(bucket, header)
}

// endHole records lost transitions up to a recorded time.
func (r *rescuer) endHole(end uint64) {
	if start := max(r.last+1, r.created); r.hole && start <= end {
		r.holes = append(r.holes, gap{from: start, to: end, Gap: Gap{Start: timeOf(start), End: timeOf(end)}})
	}
	r.hole = false
}

func (r *rescuer) keep(bucket, k, v []byte) {
	r.kept++
	r.waiting = append(r.waiting, rescued{slices.Clone(bucket), slices.Clone(k), slices.Clone(v)})
	if len(r.waiting) >= groupSize {
		r.flush()
	}
}

// flush writes queued rows.
func (r *rescuer) flush() {
	if r.failed == nil {
		r.failed = context.Cause(r.ctx)
	}
	if r.failed == nil {
		r.failed = r.db.Update(r.write)
	}
	r.waiting = r.waiting[:0]
}

func (r *rescuer) write(tx *bolt.Tx) error {
	for _, row := range r.waiting {
		rows, err := tx.CreateBucketIfNotExists(row.bucket)
		if err == nil {
			err = rows.Put(row.key, row.value)
		}
		switch {
		case err != nil:
		case bytes.Equal(row.bucket, transitions):
			t, _ := openTransition(row.key, row.value, r.shared)
			err = r.index(tx, &t, number(row.key))
		case bytes.Equal(row.bucket, current):
			t, _ := openCurrent(row.key, row.value, r.shared)
			err = tx.Bucket(addresses).Put(addressKey(t.Endpoint.Address, number(row.key), number(row.key[8:])), present)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish writes the consequences of lost rows.
func (r *rescuer) finish(tx *bolt.Tx) error {
	if r.created == 0 {
		if first, _ := tx.Bucket(transitions).Cursor().First(); len(first) == 8 {
			r.created = number(first)
		}
	}
	if err := putSchema(tx, r.version, r.created); err != nil {
		return err
	}
	if r.frozen && r.version > 1 && (tx.Bucket(freeze) == nil || tx.Bucket(freeze).Get(freezeKey) == nil) {
		f := log.Freeze{Reason: "hdsd was frozen, but the stored reason is damaged", Author: "unknown", Since: r.options.now()}
		if err := putRows(tx, freeze, map[string][]byte{string(freezeKey): encodeFreeze(&f)}); err != nil {
			return err
		}
	}
	return errors.Join(r.putHoles(tx), r.putMissingHealth(tx), r.putDiverged(tx))
}

// putDiverged marks a history with a fleet as diverged if anything is lost.
func (r *rescuer) putDiverged(tx *bolt.Tx) error {
	hasCursor := tx.Bucket(header).Get(fleetKey) != nil
	if !hasCursor && !r.adrift || len(r.lost)+len(r.losses) == 0 {
		return nil
	}
	c, _ := readCursor(tx)
	c.Diverged = true
	return putCursor(tx, c)
}

// putHoles writes the gaps of lost transitions.
func (r *rescuer) putHoles(tx *bolt.Tx) error {
	if len(r.holes) == 0 {
		return nil
	}
	if extra := len(r.holes) - maxGaps; extra > 0 { // the oldest are one
		r.holes[extra].from, r.holes[extra].Start = r.holes[0].from, r.holes[0].Start
		r.holes = r.holes[extra:]
	}
	rows, err := tx.CreateBucketIfNotExists(gaps)
	for i := 0; err == nil && i < len(r.holes); i++ {
		k := key(r.holes[i].from)
		err = rows.Put(k, seal(k, encodeGap(&r.holes[i])))
	}
	return err
}

// putMissingHealth restores lost health from the endpoint's last transition, unless that may be
// lost too.
func (r *rescuer) putMissingHealth(tx *bolt.Tx) error {
	limit := uint64(0)
	if n := len(r.holes); n > 0 {
		limit = r.holes[n-1].to
	}
	if r.lost[string(current)] == 0 && len(r.losses) == 0 {
		return nil
	}
	cursor := tx.Bucket(transitions).Cursor()
	for k, v := cursor.Last(); len(k) == 8 && number(k) > limit; k, v = cursor.Prev() {
		t, ok := openTransition(k, v, r.shared)
		if !ok || tx.Bucket(current).Get(rowOf(&t.Endpoint)) != nil {
			continue
		}
		if err := putCurrent(tx, []place{placeOf(number(k), &t)}); err != nil {
			return err
		}
	}
	return nil
}

// index writes the index rows of a transition.
func (r *rescuer) index(tx *bolt.Tx, t *health.Transition, recorded uint64) error {
	p := placeOf(recorded, t)
	err := tx.Bucket(byCluster).Put(key(p.cluster, recorded), present)
	if r.version < sumsSchema {
		k := key(p.cluster, uint64(p.endpoint), recorded)
		return errors.Join(err, tx.Bucket(byEndpoint).Put(k, []byte{byte(t.From), byte(t.To)}))
	}
	return errors.Join(err, putInIndex(tx.Bucket(byEndpoint).Cursor(), &p))
}
