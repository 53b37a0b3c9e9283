package log

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// Event is an event of the history beside the transitions: about checkers, the paths between zones, or clusters.
type Event struct {
	Time             time.Time
	Kind             EventKind
	Cluster, Address string // empty if the event is not about an endpoint
	Checker          string
	Locality         health.Locality
	Author           string // the author, as claimed
	Identity         string // the author, as verified
	Text             string
	Whole            bool // it also concerns clusters that are not named
}

// EventKind is the kind of an Event. It has the numbers of EventKind in package hdsd.store.v1, which names them all.
type EventKind int32

// These kinds change the Attendance.
const (
	CheckerJoined EventKind = 4
	CheckerLost   EventKind = 5
)

// Attendance is the latest connection or loss of each checker, by its id.
type Attendance map[string]LastSeen

// LastSeen says when a checker was lost.
type LastSeen struct {
	Locality health.Locality
	Lost     time.Time // zero while connected
}

// maxAttendance bounds the checkers of an Attendance. Above it, half of them stay.
const maxAttendance = 20_000

// Add adds an event, if it is about the connection or the loss of a checker. Events come in order. The checkers that
// were lost first are forgotten first.
func (a Attendance) Add(e *Event) {
	switch e.Kind {
	case CheckerJoined:
		a[e.Checker] = LastSeen{Locality: e.Locality}
	case CheckerLost:
		a[e.Checker] = LastSeen{Locality: e.Locality, Lost: e.Time}
	}
	if len(a) <= maxAttendance {
		return
	}
	checkers := slices.SortedFunc(maps.Keys(a), func(i, k string) int {
		if first, second := a[i].Lost, a[k].Lost; first.IsZero() == second.IsZero() {
			return cmp.Or(first.Compare(second), cmp.Compare(i, k))
		} else if first.IsZero() {
			return 1
		}
		return -1
	})
	for _, checker := range checkers[:len(checkers)-maxAttendance/2] {
		delete(a, checker)
	}
}
