package store

import (
	"math"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

var penalties = []byte("penalties")

// savePenalties stores penalties, by endpoint; nil deletes one. It does not wait for the
// disk.
func (in *intake) savePenalties(changed map[health.Hash]*log.Penalty) {
	rows := make(map[string][]byte, len(changed))
	for hash, p := range changed {
		rows[rowKey(hash)] = encoded(p, encodePenalty)
	}
	in.put(penalties, rows)
}

func encodePenalty(p *log.Penalty) []byte {
	return marshal(&storev1.Penalty{Value: p.Value, At: timestamp(p.At), Suppressed: p.Suppressed})
}

// decodePenalty refuses values that never decay to zero.
func decodePenalty(row []byte) (p log.Penalty, ok bool) {
	var m storev1.Penalty
	if !unmarshal(row, &m) || !(m.GetValue() > 0) || math.IsInf(m.GetValue(), 1) {
		return log.Penalty{}, false
	}
	p = log.Penalty{Value: m.GetValue(), Suppressed: m.GetSuppressed()}
	p.At, ok = timeIn(m.GetAt())
	return p, ok
}

func (r stateReader) penalties() map[health.Hash]log.Penalty {
	var found map[health.Hash]log.Penalty
	r.damage.forEach(r.tx, penalties, func(k, row []byte) bool {
		p, ok := decodePenalty(row)
		if ok = ok && len(k) == 8; ok {
			if found == nil {
				found = map[health.Hash]log.Penalty{}
			}
			found[health.Hash(number(k))] = p
		}
		return ok
	})
	return found
}
