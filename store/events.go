package store

import (
	"fmt"
	"math"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

const (
	// maxEvents is how many events of each kind are kept.
	maxEvents = 10_000

	// eventsRead bounds the rows that one page of events reads: reading holds the database open.
	eventsRead = 50_000
)

var events = []byte("events")

// EventKind is the kind of an Event.
type EventKind = storev1.EventKind

// Event is a record beside changes of health: actions of checkers and operators, and changes of
// clusters.
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

// EventQuery asks for events. Zero fields do not narrow it.
type EventQuery struct {
	Cluster, Address, Checker string
	Versions                  []string        // as in Query
	Kind                      string          // prefix of the kind's name
	Locality                  health.Locality // of the event, if it has one; an empty part matches all
	Start, End                time.Time       // Start is included, End is not
	After                     uint64          // place of the previous page's last event
	NewestFirst               bool
	Limit                     int
	Visible                   func(*Event) bool // whether the caller may see it; nil: all
}

// PlacedEvent is an event and its place among the others.
type PlacedEvent struct {
	Event
	Place uint64
}

// eventKeySize is the length of an event's key: its place and its kind.
const eventKeySize = 9

// newDiary makes the journal of events.
func newDiary() *journal {
	return &journal{bucket: events, keySize: eventKeySize, limit: maxEvents, lost: func(g Gap) journalEntry {
		return &Event{Time: g.Start, Kind: storev1.EventKind_EVENTS_LOST, Whole: true, Text: fmt.Sprintf(
			"%d events until %s are missing, because the disk did not take them", g.Transitions, g.End.UTC().Format(time.RFC3339),
		)}
	}}
}

// AppendEvents adds events in order, and deletes the oldest ones of a kind above its limit. It
// does not wait for the disk. While the disk fails, the queue is bounded; an event counts the
// dropped ones.
func (s *Store) AppendEvents(events []Event) {
	if len(events) == 0 {
		return
	}
	s.diary.add(journalEntries(events)...)
	s.intake.work(func() { s.intake.submitted.rows++ })
}

func journalEntries(events []Event) []journalEntry {
	entries := make([]journalEntry, len(events))
	for i := range events {
		e := events[i]
		entries[i] = &e
	}
	return entries
}

// Events returns events on disk, and the place after which the next page begins, 0 at the end. A
// page that is not the last may be short or empty.
func (h *history) Events(q EventQuery) (found []PlacedEvent, next uint64, err error) {
	err = h.db.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(events)
		if rows == nil {
			return nil
		}
		cursor, read, last := rows.Cursor(), 0, uint64(0)
		for k, v := q.first(cursor); k != nil; k, v = q.next(cursor) {
			if len(found) == q.Limit || read == eventsRead {
				next = last
				return nil
			}
			read++
			e, _, good := openEvent(k, v)
			h.damage.unless(good, events, k)
			if len(k) == eventKeySize {
				last = number(k)
			}
			if good && q.matches(&e) {
				found = append(found, PlacedEvent{e, last})
			}
		}
		return nil
	})
	return found, next, err
}

// matches reports whether the query selects an event.
func (q *EventQuery) matches(e *Event) bool {
	return isOf(e.Cluster, q.Cluster, q.Versions) &&
		(q.Address == "" || q.Address == e.Address) &&
		(q.Checker == "" || q.Checker == e.Checker) &&
		strings.HasPrefix(e.Kind.String(), q.Kind) &&
		(e.Locality == health.Locality{} || health.Filter{Locality: q.Locality}.In(e.Locality)) &&
		!e.Time.Before(q.Start) && (q.End.IsZero() || e.Time.Before(q.End)) &&
		(q.Visible == nil || q.Visible(e))
}

// first moves to the first event of a page.
func (q *EventQuery) first(cursor *bolt.Cursor) (k, v []byte) {
	if q.NewestFirst {
		before := uint64(math.MaxUint64)
		if !q.End.IsZero() {
			before = nanos(q.End)
		}
		if q.After > 0 {
			before = min(before, q.After)
		}
		return seekBefore(cursor, key(before))
	}
	return cursor.Seek(key(max(q.After+1, nanos(q.Start))))
}

// next moves to the next event, or returns nil behind the last one of the period.
func (q *EventQuery) next(cursor *bolt.Cursor) (k, v []byte) {
	if q.NewestFirst {
		if k, v = cursor.Prev(); len(k) == eventKeySize && number(k) < nanos(q.Start) {
			return nil, nil
		}
		return k, v
	}
	if k, v = cursor.Next(); len(k) == eventKeySize && !q.End.IsZero() && number(k) >= nanos(q.End) {
		return nil, nil
	}
	return k, v
}

// openEvent reads a row and its steady time.
func openEvent(k, v []byte) (e Event, steady uint64, ok bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != eventKeySize {
		return e, 0, false
	}
	return decodeEvent(row)
}

func (e *Event) moment() time.Time { return e.Time }

func (e *Event) kind() EventKind { return e.Kind }

func (e *Event) encode(place, steady uint64) []byte {
	return marshal(&storev1.Event{
		Time: timestamp(timeOf(place)), Kind: e.Kind, Cluster: text(e.Cluster), Address: text(e.Address), Checker: text(e.Checker),
		Locality: localityRow(e.Locality), Author: text(e.Author), Identity: text(e.Identity), Text: text(e.Text), Whole: e.Whole, Steady: steady,
	})
}

func decodeEvent(row []byte) (e Event, steady uint64, ok bool) {
	var m storev1.Event
	if !unmarshal(row, &m) {
		return Event{}, 0, false
	}
	l := m.GetLocality()
	e = Event{
		Kind: m.GetKind(), Cluster: m.GetCluster(), Address: m.GetAddress(), Checker: m.GetChecker(),
		Locality: health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()},
		Author:   m.GetAuthor(), Identity: m.GetIdentity(), Text: m.GetText(), Whole: m.GetWhole(),
	}
	e.Time, ok = timeIn(m.GetTime())
	return e, m.GetSteady(), ok
}
