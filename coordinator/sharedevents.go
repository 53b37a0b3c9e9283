package coordinator

import (
	"hdsd/log"
	"hdsd/store"
)

// sharedEvents directs events of the history, so that all replicas have them: those that the leader finds into the log,
// and those of entries of the log into the store with the entries.
type sharedEvents struct {
	eventStore

	finding bool           // events are findings of the Machine of the leader
	found   []log.Event    // to be put into the log
	present log.Attendance // of the checkers, with the found events

	gathering bool          // events are those of entries
	gathered  []store.Event // for the store
}

// AppendEvents implements eventStore.
func (s *sharedEvents) AppendEvents(events []store.Event) {
	switch {
	case s.gathering:
		s.gathered = append(s.gathered, events...)
	case s.finding:
		for i := range events {
			s.find(logEvent(&events[i]))
		}
	default:
		s.eventStore.AppendEvents(events)
	}
}

// find adds a finding. A checker that was connected under the previous leader does not join again.
func (s *sharedEvents) find(e log.Event) {
	if seen, known := s.present[e.Checker]; e.Kind == log.CheckerJoined && known && seen.Lost.IsZero() {
		return
	}
	if s.present == nil {
		s.present = log.Attendance{}
	}
	s.present.Add(&e)
	s.found = append(s.found, e)
}

func (s *sharedEvents) takeFound() []log.Event {
	found := s.found
	s.found = nil
	return found
}

func (s *sharedEvents) takeGathered() []store.Event {
	gathered := s.gathered
	s.gathering, s.gathered = false, nil
	return gathered
}

func logEvent(e *store.Event) log.Event {
	return log.Event{
		Time: e.Time, Kind: log.EventKind(e.Kind), Cluster: e.Cluster, Address: e.Address, Checker: e.Checker, Locality: e.Locality,
		Author: e.Author, Identity: e.Identity, Text: e.Text, Whole: e.Whole,
	}
}
