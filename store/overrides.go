package store

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Override is a health that an operator has put above the votes.
type Override struct {
	Scope          health.Endpoint // whom it is for: a part that is empty may be anything
	Status         health.Status
	Reason, Author string
	Since          time.Time
	Until          time.Time // zero: until it is cleared
}

// Both buckets are made with their first row, so that files from before them
// need no change. In voted is what the votes came to under an override.
var (
	overrides = []byte("overrides")
	voted     = []byte("voted")
)

// overrideVersion is the first byte of an encoded override, and of a verdict
// of the votes.
const overrideVersion = 1

func encodeOverride(o *Override) []byte {
	b := binary.BigEndian.AppendUint64([]byte{overrideVersion, byte(o.Status)}, nanos(o.Since))
	b = binary.BigEndian.AppendUint64(b, orZero(o.Until))
	l := o.Scope.Locality
	for _, text := range []string{o.Scope.Cluster, l.Region, l.Zone, l.SubZone, o.Scope.Address, o.Author, o.Reason} {
		b = appendString(b, text)
	}
	return b
}

func decodeOverride(b []byte) (o Override, ok bool) {
	r := reader{rest: b}
	if r.byte() != overrideVersion {
		return Override{}, false
	}
	o.Status = health.Status(r.byte())
	o.Since, o.Until = timeOf(r.fixed()), unlessZero(r.fixed())
	l := &o.Scope.Locality
	for _, text := range []*string{&o.Scope.Cluster, &l.Region, &l.Zone, &l.SubZone, &o.Scope.Address, &o.Author, &o.Reason} {
		*text = r.string()
	}
	return o, !r.bad && len(r.rest) == 0 && o.Status.Valid()
}

func encodeVoted(v *health.Verdict) []byte {
	return binary.BigEndian.AppendUint64([]byte{overrideVersion, byte(v.Status)}, orZero(v.Since))
}

func decodeVoted(b []byte) (v health.Verdict, ok bool) {
	r := reader{rest: b}
	if r.byte() != overrideVersion {
		return health.Verdict{}, false
	}
	v.Status, v.Since = health.Status(r.byte()), unlessZero(r.fixed())
	return v, !r.bad && len(r.rest) == 0 && v.Status.Valid()
}

// orZero puts down the zero time as 0, which unlessZero reads.
func orZero(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return nanos(t)
}

func unlessZero(nanos uint64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return timeOf(nanos)
}

// Overrides gives the stored overrides, those that have expired included, in no
// order.
func (s *Store) Overrides() (all []Override, err error) {
	err = s.openRows(overrides, func(_, row []byte) bool {
		o, ok := decodeOverride(row)
		if ok {
			all = append(all, o)
		}
		return ok
	})
	return all, err
}

// Voted gives what the votes had come to of endpoints under an override, by
// their hashes: status, and since when. Who is not under one any more may still
// be in it.
func (s *Store) Voted() (map[health.Hash]health.Verdict, error) {
	all := map[health.Hash]health.Verdict{}
	err := s.openRows(voted, func(k, row []byte) bool {
		v, ok := decodeVoted(row)
		if ok = ok && len(k) == 8; ok {
			all[health.Hash(number(k))] = v
		}
		return ok
	})
	return all, err
}

// openRows goes through a bucket that may not be there. Rows that are damaged
// are passed over.
func (s *Store) openRows(bucket []byte, take func(k, row []byte) bool) error {
	return s.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(bucket)
		if rows == nil {
			return nil
		}
		return rows.ForEach(func(k, v []byte) error {
			row, ok := unseal(k, v)
			s.skipUnless(ok && take(k, row), bucket, k)
			return nil
		})
	})
}

// SaveOverrides stores overrides by their scopes; nil takes one out. Others
// stay as they are. It does not wait for the disk; Flush does.
func (s *Store) SaveOverrides(changed map[health.Endpoint]*Override) {
	if len(changed) == 0 {
		return
	}
	s.intake.work(func() {
		if s.intake.overrides == nil {
			s.intake.overrides = map[health.Endpoint]*Override{}
		}
		maps.Copy(s.intake.overrides, changed)
		s.intake.asked.others++
	})
}

// SaveVoted stores what the votes come to under an override: not after the
// transitions that were appended before. Nil takes one out, and not before
// these: while the history ends with an override, it is known what was below.
func (s *Store) SaveVoted(changed map[health.Hash]*health.Verdict) {
	if len(changed) == 0 {
		return
	}
	s.intake.work(func() {
		if s.intake.voted == nil {
			s.intake.voted = map[health.Hash]*health.Verdict{}
		}
		maps.Copy(s.intake.voted, changed)
		s.intake.asked.others++
	})
}

// takeVoted gives what of it belongs to a group, which may be the last one that
// has transitions, or not; the lock is held.
func (in *intake) takeVoted(last bool) map[health.Hash]*health.Verdict {
	if last {
		all := in.voted
		in.voted = nil
		return all
	}
	kept := map[health.Hash]*health.Verdict{}
	maps.Copy(kept, in.voted)
	maps.DeleteFunc(kept, func(_ health.Hash, v *health.Verdict) bool { return v == nil })
	maps.DeleteFunc(in.voted, func(_ health.Hash, v *health.Verdict) bool { return v != nil })
	return kept
}

func (g *group) writeOverrides(tx *bolt.Tx) error {
	rows := make(map[uint64][]byte, len(g.overrides))
	for scope, o := range g.overrides {
		rows[uint64(scope.Hash())] = nil
		if o != nil {
			rows[uint64(scope.Hash())] = encodeOverride(o)
		}
	}
	return putRows(tx, overrides, rows)
}

func (g *group) writeVoted(tx *bolt.Tx) error {
	rows := make(map[uint64][]byte, len(g.voted))
	for hash, v := range g.voted {
		rows[uint64(hash)] = nil
		if v != nil {
			rows[uint64(hash)] = encodeVoted(v)
		}
	}
	return putRows(tx, voted, rows)
}

// putRows puts rows into a bucket, which is made when it is first needed; nil
// takes one out.
func putRows(tx *bolt.Tx, bucket []byte, changed map[uint64][]byte) error {
	if len(changed) == 0 {
		return nil
	}
	rows, err := tx.CreateBucketIfNotExists(bucket)
	for _, n := range slices.Sorted(maps.Keys(changed)) { // in order it is many times as fast
		switch k, row := key(n), changed[n]; {
		case err != nil:
			return err
		case row == nil:
			err = rows.Delete(k)
		default:
			err = rows.Put(k, seal(k, row))
		}
	}
	return err
}

// goodRow tells whether a sealed row is what a decoder takes.
func goodRow[T any](decode func([]byte) (T, bool)) func(k, v []byte) bool {
	return func(k, v []byte) bool {
		row, ok := unseal(k, v)
		if ok {
			_, ok = decode(row)
		}
		return ok
	}
}
