package store

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// Freeze keeps verdicts from being published.
type Freeze struct {
	Reason, Author string
	Since          time.Time

	// Held is the health that goes on being published; nil where it is what the
	// sources say.
	Held map[health.Hash]health.Status
}

// freeze is a bucket that is there only while there is a freeze.
var (
	freeze    = []byte("freeze")
	freezeKey = []byte("freeze")
	heldKey   = []byte("held")
)

// freezeVersion is the first byte of an encoded freeze, and of what it holds.
const freezeVersion = 1

const heldSize = 9 // bytes of a hash and a status

func encodeFreeze(f *Freeze) []byte {
	holds := byte(0)
	if f.Held != nil {
		holds = 1
	}
	b := binary.BigEndian.AppendUint64([]byte{freezeVersion, holds}, nanos(f.Since))
	return appendString(appendString(b, f.Author), f.Reason)
}

func decodeFreeze(b []byte) (f Freeze, holds, ok bool) {
	r := reader{rest: b}
	version, flag := r.byte(), r.byte()
	if version != freezeVersion || flag > 1 || len(r.rest) < 8 {
		return Freeze{}, false, false
	}
	f.Since = timeOf(number(r.rest))
	r.rest = r.rest[8:]
	f.Author, f.Reason = r.string(), r.string()
	return f, flag == 1, !r.bad && len(r.rest) == 0
}

// encodeHeld puts them down in order, so that the same is the same.
func encodeHeld(held map[health.Hash]health.Status) []byte {
	b := make([]byte, 0, 1+heldSize*len(held)+4)
	b = append(b, freezeVersion)
	for _, hash := range slices.Sorted(maps.Keys(held)) {
		b = append(binary.BigEndian.AppendUint64(b, uint64(hash)), byte(held[hash]))
	}
	return b
}

func decodeHeld(b []byte) (map[health.Hash]health.Status, bool) {
	if len(b)%heldSize != 1 || b[0] != freezeVersion {
		return nil, false
	}
	held := make(map[health.Hash]health.Status, len(b)/heldSize)
	for rest := b[1:]; len(rest) > 0; rest = rest[heldSize:] {
		status := health.Status(rest[8])
		if !status.Valid() {
			return nil, false
		}
		held[health.Hash(number(rest))] = status
	}
	return held, true
}

// SaveFreeze stores a freeze, in the place of one before; nil ends it. It does
// not wait for the disk; Flush does.
func (s *Store) SaveFreeze(f *Freeze) {
	if f == nil {
		s.intake.put(freeze, nil)
		return
	}
	rows := map[string][]byte{string(freezeKey): encodeFreeze(f), string(heldKey): nil}
	if f.Held != nil {
		rows[string(heldKey)] = encodeHeld(f.Held)
	}
	s.intake.put(freeze, rows)
}

// goodFreeze tells whether a row of a freeze can be read.
func goodFreeze(k, row []byte) (ok bool) {
	switch string(k) {
	case string(freezeKey):
		_, _, ok = decodeFreeze(row)
	case string(heldKey):
		_, ok = decodeHeld(row)
	default:
		ok = true
	}
	return ok
}
