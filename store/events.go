package store

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

const (
	// maxEvents is how many events of each kind are kept.
	maxEvents = 10_000

	// maxEventsWaiting is how many wait for the disk.
	maxEventsWaiting = 4096

	// eventsRead is how many rows a page of events looks at. It holds the database open.
	eventsRead = 50_000
)

var events = []byte("events")

// EventKind is what an Event is about.
type EventKind = storev1.EventKind

// Event is something beside a change of health: what checkers and operators did, and which
// clusters changed.
type Event struct {
	Time             time.Time
	Kind             EventKind
	Cluster, Address string // empty where it is not about one
	Checker          string
	Locality         health.Locality
	Author           string // who did it, by their own word
	Identity         string // the same, as far as it was verified
	Text             string
	Whole            bool // it concerns clusters that it does not name
}

// EventQuery asks for events. Zero fields do not narrow it.
type EventQuery struct {
	Cluster, Address, Checker string
	Kind                      string          // what the names of kinds begin with
	Locality                  health.Locality // of the event, if it has one; an empty part matches all
	Start, End                time.Time       // Start is included, End is not
	After                     uint64          // the place of the last event of the page before
	NewestFirst               bool
	Limit                     int
	May                       func(*Event) bool // whether the caller may see it; nil: all
}

// PlacedEvent is an event and its place among the others.
type PlacedEvent struct {
	Event
	Place uint64
}

// diary is the queue of events. It numbers them, and bounds them in memory, and by kind on
// disk. A place is a time in nanoseconds since 1970, or one more than the place before.
type diary struct {
	limit int // of events of a kind on disk
	most  int // of events that wait for the disk

	mu      sync.Mutex
	waiting []Event
	missing Gap                    // of those dropped before they were on disk
	places  map[EventKind][]uint64 // sorted, of events on disk and in the group on its way there
}

func newDiary() *diary {
	return &diary{limit: maxEvents, most: maxEventsWaiting, places: map[EventKind][]uint64{}}
}

// load takes over the places of the events that are stored.
func (d *diary) load(tx *bolt.Tx) {
	rows := tx.Bucket(events)
	if rows == nil {
		return
	}
	cursor := rows.Cursor()
	for k, _ := cursor.First(); k != nil; k, _ = cursor.Next() {
		if len(k) == eventKeySize {
			d.places[kindOf(k)] = append(d.places[kindOf(k)], number(k))
		}
	}
}

// add takes in events. If too many wait, the oldest ones go.
func (d *diary) add(all []Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, all...)
	if len(d.waiting) <= d.most {
		return
	}
	over := len(d.waiting) - d.most + d.most/16 // more, so that not every event moves the rest
	for i := range d.waiting[:over] {
		d.missing.add(d.waiting[i].Time)
	}
	d.waiting = slices.Delete(d.waiting, 0, over)
}

// take moves what waits to a group, and has it delete the oldest events of kinds that have
// too many.
func (d *diary) take(g *group, steady uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return
	}
	rows := map[string][]byte{}
	if d.missing.Transitions > 0 {
		d.put(rows, &Event{Time: d.missing.Start, Kind: storev1.EventKind_EVENTS_LOST, Whole: true, Text: fmt.Sprintf(
			"%d events until %s are missing, because the disk did not take them", d.missing.Transitions, d.missing.End.UTC().Format(time.RFC3339),
		)}, steady)
	}
	for i := range d.waiting {
		d.put(rows, &d.waiting[i], steady)
	}
	d.waiting, d.missing = nil, Gap{}
	if g.rows == nil {
		g.rows = changes{}
	}
	g.rows[string(events)] = rows
}

// put adds the row of an event. The caller holds the lock.
func (d *diary) put(rows map[string][]byte, e *Event, steady uint64) {
	place := max(nanos(e.Time), 1)
	for d.taken(place) {
		place++
	}
	at := *e
	at.Time = timeOf(place)
	rows[eventKey(place, e.Kind)] = encodeEvent(&at, steady)
	places := d.places[e.Kind]
	i, _ := slices.BinarySearch(places, place)
	places = slices.Insert(places, i, place)
	if over := len(places) - d.limit; over > 0 {
		for _, old := range places[:over] {
			rows[eventKey(old, e.Kind)] = nil
		}
		places = slices.Delete(places, 0, over)
	}
	d.places[e.Kind] = places
}

func (d *diary) taken(place uint64) bool {
	for _, places := range d.places {
		if _, ok := slices.BinarySearch(places, place); ok {
			return true
		}
	}
	return false
}

// forget drops places that are no longer on disk.
func (d *diary) forget(keys [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		places := d.places[kindOf(k)]
		if at, ok := slices.BinarySearch(places, number(k)); ok {
			d.places[kindOf(k)] = slices.Delete(places, at, at+1)
		}
	}
}

// eventKeySize is the length of an event's key: its place and its kind.
const eventKeySize = 9

func eventKey(place uint64, kind EventKind) string {
	return string(append(key(place), byte(min(uint32(kind), math.MaxUint8))))
}

func kindOf(k []byte) EventKind { return EventKind(k[eventKeySize-1]) }

// AppendEvents adds events to the history, in this order, and deletes the oldest of kinds
// that have too many. It does not wait for the disk. While that takes nothing, a bounded
// number of events wait; an event says how many are missing.
func (s *Store) AppendEvents(all []Event) {
	if len(all) == 0 {
		return
	}
	s.diary.add(all)
	s.intake.work(func() { s.intake.asked.others++ })
}

// Events returns events that are on disk, and the place to go on after, 0 at the end. A
// page that is not the last may be short, or have nothing.
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

// matches tells whether an event is asked for.
func (q *EventQuery) matches(e *Event) bool {
	return (q.Cluster == "" || q.Cluster == e.Cluster) &&
		(q.Address == "" || q.Address == e.Address) &&
		(q.Checker == "" || q.Checker == e.Checker) &&
		strings.HasPrefix(e.Kind.String(), q.Kind) &&
		(e.Locality == health.Locality{} || health.Filter{Locality: q.Locality}.In(e.Locality)) &&
		!e.Time.Before(q.Start) && (q.End.IsZero() || e.Time.Before(q.End)) &&
		(q.May == nil || q.May(e))
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

// openEvent reads a row, and the steady time of it.
func openEvent(k, v []byte) (e Event, steady uint64, ok bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != eventKeySize {
		return e, 0, false
	}
	return decodeEvent(row)
}

func encodeEvent(e *Event, steady uint64) []byte {
	return marshal(&storev1.Event{
		Time: timestamp(e.Time), Kind: e.Kind, Cluster: text(e.Cluster), Address: text(e.Address), Checker: text(e.Checker),
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
