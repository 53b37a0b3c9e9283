package store

import (
	storev1 "hdsd/gen/hdsd/store/v1"

	"hdsd/log"
)

var trust = []byte("trust")

// saveTrust stores the trust in a checker; nil deletes it. It does not wait for the disk; Flush
// does.
func (in *intake) saveTrust(checker string, t *log.Trust) {
	in.put(trust, map[string][]byte{checker: encoded(t, encodeTrust)})
}

func encodeTrust(t *log.Trust) []byte {
	return marshal(&storev1.Trust{Level: storev1.Trust_Level(t.Level), Reason: text(t.Reason), Author: text(t.Author), Since: timestamp(t.Since)})
}

func decodeTrust(row []byte) (t log.Trust, ok bool) {
	var m storev1.Trust
	if !unmarshal(row, &m) || m.GetLevel() != storev1.Trust_DISTRUSTED && m.GetLevel() != storev1.Trust_TRUSTED {
		return log.Trust{}, false
	}
	t = log.Trust{Level: log.TrustLevel(m.GetLevel()), Reason: m.GetReason(), Author: m.GetAuthor()}
	t.Since, ok = timeIn(m.GetSince())
	return t, ok
}
