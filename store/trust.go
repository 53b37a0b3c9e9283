package store

import (
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
)

// TrustLevel is an operator's trust in a checker.
type TrustLevel uint8

// The levels.
const (
	Unspecified TrustLevel = iota
	Distrusted
	Trusted
)

// Trust is an operator's trust in a checker, and the reason.
type Trust struct {
	Level          TrustLevel
	Reason, Author string
	Since          time.Time
}

var trust = []byte("trust")

// SaveTrust stores the trust in a checker; nil deletes it. It does not wait for the disk; Flush
// does.
func (s *Store) SaveTrust(checker string, t *Trust) {
	s.intake.put(trust, map[string][]byte{checker: encoded(t, encodeTrust)})
}

func encodeTrust(t *Trust) []byte {
	return marshal(&storev1.Trust{Level: storev1.Trust_Level(t.Level), Reason: text(t.Reason), Author: text(t.Author), Since: timestamp(t.Since)})
}

func decodeTrust(row []byte) (t Trust, ok bool) {
	var m storev1.Trust
	if !unmarshal(row, &m) || m.GetLevel() != storev1.Trust_DISTRUSTED && m.GetLevel() != storev1.Trust_TRUSTED {
		return Trust{}, false
	}
	t = Trust{Level: TrustLevel(m.GetLevel()), Reason: m.GetReason(), Author: m.GetAuthor()}
	t.Since, ok = timeIn(m.GetSince())
	return t, ok
}
