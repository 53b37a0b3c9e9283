package store

import (
	storev1 "hdsd/gen/hdsd/store/v1"

	"hdsd/log"
)

var established = []byte("established")

// saveEstablished stores established checkers, by id; nil deletes a row. It does not wait for
// the disk.
func (in *intake) saveEstablished(changed map[string]*log.Established) {
	rows := make(map[string][]byte, len(changed))
	for checker, e := range changed {
		rows[checker] = encoded(e, encodeEstablished)
	}
	in.put(established, rows)
}

func encodeEstablished(e *log.Established) []byte {
	return marshal(&storev1.Established{Identity: text(e.Identity), Seen: timestamp(e.Seen), StandIn: timestamp(e.StandIn), Founder: e.Founder})
}

func decodeEstablished(row []byte) (e log.Established, ok bool) {
	var m storev1.Established
	if !unmarshal(row, &m) {
		return log.Established{}, false
	}
	e.Identity, e.Founder = m.GetIdentity(), m.GetFounder()
	var valid bool
	e.Seen, ok = timeIn(m.GetSeen())
	e.StandIn, valid = timeIn(m.GetStandIn())
	return e, ok && valid
}

func (r stateReader) established() map[string]log.Established {
	var checkers map[string]log.Established
	r.damage.forEach(r.tx, established, func(k, row []byte) bool {
		e, ok := decodeEstablished(row)
		if ok {
			if checkers == nil {
				checkers = map[string]log.Established{}
			}
			checkers[string(k)] = e
		}
		return ok
	})
	return checkers
}
