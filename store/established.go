package store

import (
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
)

// Established is a checker that is not on probation.
type Established struct {
	Identity string // since when it stands in for absent checkers; zero: it does not
	Seen     time.Time
	StandIn  time.Time // since when it stands in for checkers that are away; zero: it does not
	Founder  bool      // a newcomer that had seats when the first checkers became established, and had yet to vote
}

var established = []byte("established")

// SaveEstablished stores established checkers, by id; nil deletes a row. It does not wait for
// the disk.
func (s *Store) SaveEstablished(changed map[string]*Established) {
	rows := make(map[string][]byte, len(changed))
	for checker, e := range changed {
		rows[checker] = encoded(e, encodeEstablished)
	}
	s.intake.put(established, rows)
}

func encodeEstablished(e *Established) []byte {
	return marshal(&storev1.Established{Identity: text(e.Identity), Seen: timestamp(e.Seen), StandIn: timestamp(e.StandIn), Founder: e.Founder})
}

func decodeEstablished(row []byte) (e Established, ok bool) {
	var m storev1.Established
	if !unmarshal(row, &m) {
		return Established{}, false
	}
	e.Identity, e.Founder = m.GetIdentity(), m.GetFounder()
	var valid bool
	e.Seen, ok = timeIn(m.GetSeen())
	e.StandIn, valid = timeIn(m.GetStandIn())
	return e, ok && valid
}

func (r stateReader) established() map[string]Established {
	var checkers map[string]Established
	r.damage.forEach(r.tx, established, func(k, row []byte) bool {
		e, ok := decodeEstablished(row)
		if ok {
			if checkers == nil {
				checkers = map[string]Established{}
			}
			checkers[string(k)] = e
		}
		return ok
	})
	return checkers
}
