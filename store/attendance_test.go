package store

import (
	"testing"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

// TestKindsOfEventsHaveTheNumbersOfTheLog covers the kinds that package log knows.
func TestKindsOfEventsHaveTheNumbersOfTheLog(t *testing.T) {
	for kind, stored := range map[log.EventKind]EventKind{
		log.CheckerJoined: storev1.EventKind_CHECKER_JOINED, log.CheckerLost: storev1.EventKind_CHECKER_LOST,
	} {
		if EventKind(kind) != stored {
			t.Errorf("%v is %d in the log", stored, kind)
		}
	}
}

// TestAStartKnowsWhoIsAway, and since when, also if an event between is of another kind.
func TestAStartKnowsWhoIsAway(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	minute := func(n int) time.Time { return day.Add(time.Duration(n) * time.Minute) }
	in := func(zone string) health.Locality { return health.Locality{Region: "eu", Zone: zone} }
	s.AppendEvents([]Event{
		{Time: minute(0), Kind: storev1.EventKind_CHECKER_JOINED, Checker: "there", Locality: in("a")},
		{Time: minute(0), Kind: storev1.EventKind_CHECKER_JOINED, Checker: "lost", Locality: in("b")},
		{Time: minute(1), Kind: storev1.EventKind_CHECKER_LOST, Checker: "back", Locality: in("c")},
		{Time: minute(2), Kind: storev1.EventKind_CHECKER_LOST, Checker: "lost", Locality: in("b")},
		{Time: minute(3), Kind: storev1.EventKind_CHECKER_JOINED, Checker: "back", Locality: in("c")},
		{Time: minute(4), Kind: storev1.EventKind_CHECKER_DOUBTED, Checker: "lost", Locality: in("b")},
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := open(t, dir).State()
	if err != nil {
		t.Fatal(err)
	}
	want := log.Attendance{"there": {Locality: in("a")}, "lost": {Locality: in("b"), Lost: minute(2)}, "back": {Locality: in("c")}}
	if len(found.Attendance) != len(want) {
		t.Errorf("known are %v", found.Attendance)
	}
	for id, last := range want {
		if found.Attendance[id] != last {
			t.Errorf("%s: %v, want %v", id, found.Attendance[id], last)
		}
	}
}
