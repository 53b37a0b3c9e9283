package store

import (
	"math"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// Penalty is the damping of an endpoint that went down lately.
type Penalty struct {
	Value      float64 // at the time At; positive
	At         time.Time
	Suppressed bool // it rose far enough to hold the endpoint down, and has not fallen far enough since
}

var penalties = []byte("penalties")

// SavePenalties stores penalties, by endpoint; nil deletes one. It does not wait for the
// disk.
func (s *Store) SavePenalties(changed map[health.Hash]*Penalty) {
	rows := make(map[string][]byte, len(changed))
	for hash, p := range changed {
		rows[rowKey(hash)] = encoded(p, encodePenalty)
	}
	s.intake.put(penalties, rows)
}

func encodePenalty(p *Penalty) []byte {
	return marshal(&storev1.Penalty{Value: p.Value, At: timestamp(p.At), Suppressed: p.Suppressed})
}

// decodePenalty refuses values that never decay to zero.
func decodePenalty(row []byte) (p Penalty, ok bool) {
	var m storev1.Penalty
	if !unmarshal(row, &m) || !(m.GetValue() > 0) || math.IsInf(m.GetValue(), 1) {
		return Penalty{}, false
	}
	p = Penalty{Value: m.GetValue(), Suppressed: m.GetSuppressed()}
	p.At, ok = timeIn(m.GetAt())
	return p, ok
}

func (r stateReader) penalties() map[health.Hash]Penalty {
	var found map[health.Hash]Penalty
	r.damage.forEach(r.tx, penalties, func(k, row []byte) bool {
		p, ok := decodePenalty(row)
		if ok = ok && len(k) == 8; ok {
			if found == nil {
				found = map[health.Hash]Penalty{}
			}
			found[health.Hash(number(k))] = p
		}
		return ok
	})
	return found
}
