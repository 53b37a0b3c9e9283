package xds

import (
	"fmt"
	"slices"
	"time"
)

// MissingReason returns the reason why the server's assignment of a name is not in use; empty if
// it is.
func (s *Source) MissingReason(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.assignments.entries[name]
	talk := &s.assignments.talk
	if a != nil && !s.settings.delta && s.assignments.covers(foreignNames, a) {
		talk = &s.foreign
	}
	switch {
	case a == nil || len(a.askers) == 0:
		return "it has not been asked for it yet"
	case a.good != nil:
		return ""
	case a.refused != nil:
		return "what it sent is refused: " + a.refused.reason
	case a.report != "":
		return "it says: " + a.report
	case a.gone:
		return "it has none"
	case a.lapsed:
		return "the time to live that it gave it is over"
	case !talk.connected && !talk.open && talk.failure != "":
		return fmt.Sprintf("it cannot be asked (%s)", talk.failure)
	case a.waiting(time.Now(), s.settings.fetchTimeout):
		return "it has not answered yet"
	case slices.Contains(talk.silent, name):
		return silence(talk.silent)
	default:
		return fmt.Sprintf("it has not sent it within %s", s.settings.fetchTimeout)
	}
}
