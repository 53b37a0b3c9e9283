package store

import (
	"math"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// Penalty is what damping holds against an endpoint that went down lately.
type Penalty struct {
	Value      float64 // at the moment At; positive
	At         time.Time
	Suppressed bool // it was large enough to hold the endpoint down, and not small since
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

// decodePenalty takes no value that would never halve to nothing.
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
	var all map[health.Hash]Penalty
	r.damage.each(r.tx, penalties, func(k, row []byte) bool {
		p, ok := decodePenalty(row)
		if ok = ok && len(k) == 8; ok {
			if all == nil {
				all = map[health.Hash]Penalty{}
			}
			all[health.Hash(number(k))] = p
		}
		return ok
	})
	return all
}
