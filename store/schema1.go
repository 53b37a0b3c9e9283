package store

import (
	"bytes"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Schema 1 has its own form for the rows that schema 2 stores as messages of
// proto/hdsd/store/v1. Only the upgrade reads it.

// upgrades lists how to turn rows of schema 1 into messages.
var upgrades = []struct {
	bucket  []byte
	convert func(k, row []byte) (message []byte, ok bool)
}{
	{trials, func(_, row []byte) ([]byte, bool) {
		cluster, t, ok := trials1(row)
		return encodeTrials(cluster, &t), ok
	}},
	{freeze, func(k, row []byte) ([]byte, bool) {
		if string(k) == string(heldKey) {
			held, ok := held1(row)
			return encodeHeld(held), ok
		}
		f, ok := freeze1(row)
		return encodeFreeze(&f), ok
	}},
	{overrides, func(_, row []byte) ([]byte, bool) {
		o, ok := override1(row)
		return encodeOverride(&o), ok
	}},
	{voted, func(_, row []byte) ([]byte, bool) {
		v, ok := voted1(row)
		return encodeVoted(&v), ok
	}},
	{trust, func(_, row []byte) ([]byte, bool) {
		t, ok := trust1(row)
		return encodeTrust(&t), ok
	}},
}

// toSchema2 rewrites the rows of operators and canaries as messages. Rows that cannot
// be read stay as they are: readers report them, and a damaged freeze stays a freeze.
func toSchema2(tx *bolt.Tx) error {
	for _, u := range upgrades {
		rows := tx.Bucket(u.bucket)
		if rows == nil {
			continue
		}
		changed := map[string][]byte{}
		cursor := rows.Cursor()
		for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
			row, ok := unseal(k, v)
			if !ok {
				continue
			}
			if message, ok := u.convert(k, row); ok {
				changed[string(k)] = message
			}
		}
		if err := putRows(tx, u.bucket, changed); err != nil {
			return err
		}
	}
	return nil
}

// goodInSchema1 returns what reports whether a row of a bucket can be read. That is other
// for the buckets that schema 2 has not changed.
func goodInSchema1(bucket []byte, other func(k, row []byte) bool) func(k, row []byte) bool {
	for _, u := range upgrades {
		if bytes.Equal(u.bucket, bucket) {
			return func(k, row []byte) bool {
				_, ok := u.convert(k, row)
				return ok
			}
		}
	}
	return other
}

func freeze1(row []byte) (f Freeze, ok bool) {
	r := newReader1(row)
	holds := r.byte()
	f.Since, f.Author, f.Reason = timeOf(r.fixed()), r.string(), r.string()
	if holds == 1 {
		f.Held = map[health.Hash]health.Status{}
	}
	return f, r.end() && holds <= 1
}

func held1(row []byte) (map[health.Hash]health.Status, bool) {
	r, held := newReader1(row), map[health.Hash]health.Status{}
	for !r.end() && !r.bad {
		hash := health.Hash(r.fixed())
		held[hash] = r.status()
	}
	return held, !r.bad
}

func override1(row []byte) (o Override, ok bool) {
	r := newReader1(row)
	o.Status = r.status()
	o.Since, o.Until = timeOf(r.fixed()), r.time()
	l := &o.Scope.Locality
	for _, text := range []*string{&o.Scope.Cluster, &l.Region, &l.Zone, &l.SubZone, &o.Scope.Address, &o.Author, &o.Reason} {
		*text = r.string()
	}
	return o, r.end()
}

func voted1(row []byte) (v health.Verdict, ok bool) {
	r := newReader1(row)
	v.Status, v.Since = r.status(), r.time()
	return v, r.end()
}

func trust1(row []byte) (t Trust, ok bool) {
	r := newReader1(row)
	t.Level, t.Since = TrustLevel(r.byte()), timeOf(r.fixed())
	t.Author, t.Reason = r.string(), r.string()
	return t, r.end() && (t.Level == Distrusted || t.Level == Trusted)
}

func trials1(row []byte) (cluster string, t Trials, ok bool) {
	r := newReader1(row)
	cluster = r.string()
	for range r.count(16) {
		t.Proven = append(t.Proven, Proof{r.fixed(), r.fixed()})
	}
	for range r.count(8) {
		t.Blamed = append(t.Blamed, r.fixed())
	}
	for range r.count(9) {
		t.Losses = append(t.Losses, Loss{Checker: r.string(), Time: timeOf(r.fixed())})
	}
	return cluster, t, r.end()
}

// reader1 reads a row of schema 1, which begins with a byte of 1.
type reader1 struct{ reader }

func newReader1(row []byte) *reader1 {
	r := &reader1{reader{rest: row}}
	if r.byte() != 1 {
		r.fail()
	}
	return r
}

// end reports whether the row was good and is read to its end.
func (r *reader1) end() bool { return !r.bad && len(r.rest) == 0 }

// status reads one of the statuses.
func (r *reader1) status() health.Status {
	s := health.Status(r.byte())
	if !s.Valid() {
		r.fail()
	}
	return s
}

// time reads a time that may be zero.
func (r *reader1) time() time.Time {
	if n := r.fixed(); n != 0 {
		return timeOf(n)
	}
	return time.Time{}
}

// fixed reads a number of 8 bytes.
func (r *reader1) fixed() uint64 {
	if len(r.rest) < 8 {
		r.fail()
		return 0
	}
	n := number(r.rest)
	r.rest = r.rest[8:]
	return n
}

// count reads how many values follow, each of at least so many bytes.
func (r *reader1) count(least int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/least) {
		r.fail()
		return 0
	}
	return int(n)
}
