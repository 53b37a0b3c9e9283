package store

import (
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/log"
)

// Attend adds an event to an attendance. Events come in order.
func Attend(a log.Attendance, e *Event) {
	a.Add(&log.Event{Time: e.Time, Kind: log.EventKind(e.Kind), Checker: e.Checker, Locality: e.Locality})
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
