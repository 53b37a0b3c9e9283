package store

import (
	"encoding/binary"
	"time"
)

// Word is what an operator says of a checker.
type Word uint8

// The words.
const (
	Unspoken Word = iota
	Distrusted
	Trusted
)

// Trust is what an operator says of a checker, and why.
type Trust struct {
	Word           Word
	Reason, Author string
	Since          time.Time
}

var trust = []byte("trust")

// trustVersion is the first byte of an encoded Trust.
const trustVersion = 1

func encodeTrust(t *Trust) []byte {
	b := binary.BigEndian.AppendUint64([]byte{trustVersion, byte(t.Word)}, nanos(t.Since))
	return appendString(appendString(b, t.Author), t.Reason)
}

func decodeTrust(b []byte) (t Trust, ok bool) {
	r := reader{rest: b}
	if r.byte() != trustVersion {
		return Trust{}, false
	}
	t.Word, t.Since = Word(r.byte()), timeOf(r.fixed())
	t.Author, t.Reason = r.string(), r.string()
	return t, !r.bad && len(r.rest) == 0 && (t.Word == Distrusted || t.Word == Trusted)
}

// SaveTrust stores what is said of a checker; nil when nothing is any more. It
// does not wait for the disk; Flush does.
func (s *Store) SaveTrust(checker string, t *Trust) {
	s.intake.put(trust, map[string][]byte{checker: encoded(t, encodeTrust)})
}
