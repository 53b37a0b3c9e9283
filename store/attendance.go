package store

import (
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// Attendance is the latest event of each checker, by its id.
type Attendance map[string]LastSeen

// LastSeen says when a checker connected and was lost.
type LastSeen struct {
	Locality health.Locality
	Lost     time.Time // zero while connected
}

// Record adds an event. Events come in order.
func (a Attendance) Record(e *Event) {
	switch e.Kind {
	case storev1.EventKind_CHECKER_JOINED:
		a[e.Checker] = LastSeen{Locality: e.Locality}
	case storev1.EventKind_CHECKER_LOST:
		a[e.Checker] = LastSeen{e.Locality, e.Time}
	}
}

func (r stateReader) attendance() Attendance {
	rows := r.tx.Bucket(events)
	if rows == nil {
		return nil
	}
	checkers := Attendance{}
	cursor := rows.Cursor()
	for k, row := cursor.First(); k != nil; k, row = cursor.Next() {
		if len(k) != eventKeySize || kindOf(k) != storev1.EventKind_CHECKER_JOINED && kindOf(k) != storev1.EventKind_CHECKER_LOST {
			continue
		}
		e, _, good := openEvent(k, row)
		if r.damage.unless(good, events, k); good {
			checkers.Record(&e)
		}
	}
	return checkers
}
