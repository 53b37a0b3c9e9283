package fleet

import "time"

// Established is the stored record of a checker that was on probation, or was one of the first.
type Established struct {
	Identity string // in its certificate; empty without one
	Any      bool   // the first checker with its id gets it: the stored plan has no identities
	Seen     time.Time
	StandIn  time.Time // start of its time as a stand-in for absent earlier checkers; zero: it is none
	Founder  bool      // late founder: not established yet
}

// roll is the stored records by checker id, with counts by kind.
type roll struct {
	records  map[string]Established
	standIns int
	late     int // founders that had seats, and had not voted when the first were established
}

// put stores the record of a checker, or removes it if nil.
func (r *roll) put(id string, e *Established) {
	previous := r.records[id]
	r.standIns -= boolToInt(!previous.StandIn.IsZero())
	r.late -= boolToInt(previous.Founder)
	if delete(r.records, id); e != nil {
		r.records[id] = *e
		r.standIns += boolToInt(!e.StandIn.IsZero())
		r.late += boolToInt(e.Founder)
	}
}

// knows reports whether a checker of this id is established.
func (r *roll) knows(id string) bool {
	e, ok := r.records[id]
	return ok && !e.Founder
}

// standsIn reports whether a checker is a stand-in.
func (r *roll) standsIn(id string) bool { return !r.records[id].StandIn.IsZero() }
