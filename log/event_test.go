package log_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
	"hdsd/log"
)

var day = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

// TestEventsKeepTheAttendance covers checkers that joined, were lost and came back, and events of other kinds.
func TestEventsKeepTheAttendance(t *testing.T) {
	in := func(zone string) health.Locality { return health.Locality{Region: "eu", Zone: zone} }
	var s log.State
	s.Apply(&log.Entry{Events: []log.Event{
		{Time: day, Kind: log.CheckerJoined, Checker: "present", Locality: in("a")},
		{Time: day, Kind: log.CheckerJoined, Checker: "lost", Locality: in("b")},
		{Time: day, Kind: log.CheckerLost, Checker: "back", Locality: in("c")},
	}})
	before := s.Clone()
	s.Apply(&log.Entry{Events: []log.Event{
		{Time: day.Add(time.Minute), Kind: log.CheckerLost, Checker: "lost", Locality: in("b")},
		{Time: day.Add(time.Minute), Kind: log.CheckerJoined, Checker: "back", Locality: in("d")},
		{Time: day.Add(time.Minute), Kind: 6, Checker: "present", Locality: in("x")},
		{Time: day.Add(time.Minute), Kind: 8, Checker: "unknown"},
	}})
	want := log.Attendance{"present": {Locality: in("a")}, "lost": {Locality: in("b"), Lost: day.Add(time.Minute)}, "back": {Locality: in("d")}}
	if diff := cmp.Diff(want, s.Attendance); diff != "" {
		t.Error(diff)
	}
	if before.Attendance["lost"].Lost != (time.Time{}) {
		t.Error("a copy of the state changes")
	}
}

// TestAnAttendanceIsBounded covers ids that come and go for ever: those lost first are forgotten first, and the
// connected ones last.
func TestAnAttendanceIsBounded(t *testing.T) {
	var s log.State
	add := func(kind log.EventKind, checker string, minute int) {
		s.Apply(&log.Entry{Events: []log.Event{{Time: day.Add(time.Duration(minute) * time.Minute), Kind: kind, Checker: checker}}})
	}
	add(log.CheckerJoined, "connected", 0)
	for i := range 20_000 {
		add(log.CheckerLost, fmt.Sprint("lost-", i), i)
	}
	_, connected := s.Attendance["connected"]
	_, first := s.Attendance["lost-10000"]
	_, next := s.Attendance["lost-10001"]
	if len(s.Attendance) != 10_000 || !connected || first || !next {
		t.Errorf("%d checkers are known: the connected one %t, the last one to be forgotten %t, the next one %t", len(s.Attendance), connected, first, next)
	}
}
