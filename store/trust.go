package store

import (
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
)

// Word is what an operator says of a checker.
type Word uint8

// The words.
const (
	Unspoken Word = iota
	Distrusted
	Trusted
)

// Trust is an operator's word on a checker, and why.
type Trust struct {
	Word           Word
	Reason, Author string
	Since          time.Time
}

var trust = []byte("trust")

// SaveTrust stores an operator's word on a checker; nil deletes it. It does not wait
// for the disk; Flush does.
func (s *Store) SaveTrust(checker string, t *Trust) {
	s.intake.put(trust, map[string][]byte{checker: encoded(t, encodeTrust)})
}

func encodeTrust(t *Trust) []byte {
	return marshal(&storev1.Trust{Word: storev1.Trust_Word(t.Word), Reason: text(t.Reason), Author: text(t.Author), Since: timestamp(t.Since)})
}

func decodeTrust(row []byte) (t Trust, ok bool) {
	var m storev1.Trust
	if !unmarshal(row, &m) || m.GetWord() != storev1.Trust_DISTRUSTED && m.GetWord() != storev1.Trust_TRUSTED {
		return Trust{}, false
	}
	t = Trust{Word: Word(m.GetWord()), Reason: m.GetReason(), Author: m.GetAuthor()}
	t.Since, ok = timeIn(m.GetSince())
	return t, ok
}
