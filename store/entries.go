package store

import "hdsd/log"

// EventsOf returns the events of an entry of the log, for the history.
func EventsOf(e *log.Entry) []Event {
	events := make([]Event, len(e.Events))
	for i := range e.Events {
		v := &e.Events[i]
		events[i] = Event{
			Time: v.Time, Kind: EventKind(v.Kind), Cluster: v.Cluster, Address: v.Address, Checker: v.Checker, Locality: v.Locality,
			Author: v.Author, Identity: v.Identity, Text: v.Text, Whole: v.Whole,
		}
	}
	return events
}
