package store

import (
	"encoding/binary"
	"time"

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

// In voted is what the votes came to under an override.
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

// SaveOverrides stores overrides by their scopes; nil takes one out. Others
// stay as they are. It does not wait for the disk; Flush does.
func (s *Store) SaveOverrides(changed map[health.Endpoint]*Override) {
	rows := make(map[string][]byte, len(changed))
	for scope, o := range changed {
		rows[rowKey(scope.Hash())] = encoded(o, encodeOverride)
	}
	s.intake.put(overrides, rows)
}

// SaveVoted stores what the votes come to under an override: not after the
// transitions that were appended before. Nil takes one out, and not before
// these: while the history ends with an override, it is known what was below.
func (s *Store) SaveVoted(changed map[health.Hash]*health.Verdict) {
	rows := make(map[string][]byte, len(changed))
	for hash, v := range changed {
		rows[rowKey(hash)] = encoded(v, encodeVoted)
	}
	s.intake.put(voted, rows)
}
