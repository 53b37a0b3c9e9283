package store

import (
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/log"
)

// Attend adds an event to an attendance. Events come in order.
func Attend(a log.Attendance, e *Event) {
	switch e.Kind {
	case storev1.EventKind_CHECKER_JOINED:
		a[e.Checker] = log.LastSeen{Locality: e.Locality}
	case storev1.EventKind_CHECKER_LOST:
		a[e.Checker] = log.LastSeen{Locality: e.Locality, Lost: e.Time}
	}
}

func (r stateReader) attendance() log.Attendance {
	rows := r.tx.Bucket(events)
	if rows == nil {
		return nil
	}
	checkers := log.Attendance{}
	cursor := rows.Cursor()
	for k, row := cursor.First(); k != nil; k, row = cursor.Next() {
		if len(k) != eventKeySize || kindOf(k) != storev1.EventKind_CHECKER_JOINED && kindOf(k) != storev1.EventKind_CHECKER_LOST {
			continue
		}
		e, _, good := openEvent(k, row)
		if r.damage.unless(good, events, k); good {
			Attend(checkers, &e)
		}
	}
	return checkers
}
