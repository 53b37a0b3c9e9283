package coordinator

import (
	"testing"
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/log"
	"hdsd/store"
)

// TestCheckersJoinOnce covers checkers that are connected when another replica becomes the leader: they do not
// join again in the history.
func TestCheckersJoinOnce(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := sharedEvents{finding: true, present: log.Attendance{"connected": {}, "lost": {Lost: noon}}}
	for _, event := range []struct {
		checker string
		kind    store.EventKind
		isFound bool
	}{
		{"connected", storev1.EventKind_CHECKER_JOINED, false},
		{"lost", storev1.EventKind_CHECKER_JOINED, true},
		{"new", storev1.EventKind_CHECKER_JOINED, true},
		{"new", storev1.EventKind_CHECKER_JOINED, false},
		{"connected", storev1.EventKind_CHECKER_LOST, true},
		{"connected", storev1.EventKind_CHECKER_JOINED, true},
		{"connected", storev1.EventKind_CHECKER_SILENT, true},
	} {
		s.AppendEvents([]store.Event{{Time: noon, Kind: event.kind, Checker: event.checker}})
		if found := s.takeFound(); len(found) == 1 != event.isFound {
			t.Errorf("%v of %s: found %v", event.kind, event.checker, found)
		}
	}
}
