package store

import (
	"math"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// maxWaiting bounds the rows of a journal in memory.
const maxWaiting = 4096

// journal is the queue of the audit, or that of the events. It gives rows their places, and
// bounds them in memory and, by kind, on disk. A place is a time in nanoseconds since 1970, or
// the next free one.
type journal struct {
	bucket  []byte
	keySize int                    // of a key: its place and, of an event, its kind
	ordered bool                   // places only grow, whatever the wall clock does
	limit   int                    // of rows of a kind on disk
	lost    func(Gap) journalEntry // makes the row that stands for missing rows

	mu      sync.Mutex
	waiting []journalEntry
	missing Gap                    // rows dropped before they were on disk
	places  map[EventKind][]uint64 // sorted, of rows on disk and in the group on its way there
}

// journalEntry is a row that waits for the disk.
type journalEntry interface {
	moment() time.Time
	kind() EventKind // of an event; of the audit, always the same
	encode(place, steady uint64) []byte
}

// load reads the places of stored rows.
func (j *journal) load(tx *bolt.Tx) {
	j.places = map[EventKind][]uint64{}
	rows := tx.Bucket(j.bucket)
	if rows == nil {
		return
	}
	cursor := rows.Cursor()
	for k, _ := cursor.First(); k != nil; k, _ = cursor.Next() {
		if len(k) == j.keySize {
			j.places[kindOf(k)] = append(j.places[kindOf(k)], number(k))
		}
	}
}

// add queues rows. Above the limit, the oldest ones go.
func (j *journal) add(entries ...journalEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, entries...)
	if len(j.waiting) <= maxWaiting {
		return
	}
	excess := len(j.waiting) - maxWaiting + maxWaiting/16 // a sixteenth more, which saves moving the rest for every row
	for _, e := range j.waiting[:excess] {
		j.missing.add(e.moment())
	}
	j.waiting = slices.Delete(j.waiting, 0, excess)
}

// moveTo moves the queue to a group, and deletes the oldest rows of kinds above their limit. It
// returns the gap before them.
func (j *journal) moveTo(g *group, steady uint64) (missing Gap) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		return Gap{}
	}
	rows := map[string][]byte{}
	if j.missing.Transitions > 0 {
		j.put(rows, j.lost(j.missing), steady)
	}
	for _, e := range j.waiting {
		j.put(rows, e, steady)
	}
	missing, j.waiting, j.missing = j.missing, nil, Gap{}
	if g.rows == nil {
		g.rows = changes{}
	}
	g.rows[string(j.bucket)] = rows
	return missing
}

// place gives the records of a portion their places.
func (j *journal) place(r *records, steady uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	rows := map[string][]byte{}
	if r.lost.Transitions > 0 {
		j.put(rows, j.lost(r.lost), steady)
	}
	for _, e := range r.waiting {
		j.put(rows, e, steady)
	}
	r.waiting, r.lost = nil, Gap{}
	r.addPlaced(rows)
}

// put adds a row. The caller holds the lock.
func (j *journal) put(rows map[string][]byte, e journalEntry, steady uint64) {
	kind := e.kind()
	places, place := j.places[kind], max(nanos(e.moment()), 1)
	if n := len(places); j.ordered && n > 0 {
		place = max(place, places[n-1]+1)
	}
	for j.occupied(place) {
		place++
	}
	rows[j.key(place, kind)] = e.encode(place, steady)
	i, _ := slices.BinarySearch(places, place)
	places = slices.Insert(places, i, place)
	for ; len(places) > j.limit; places = places[1:] {
		rows[j.key(places[0], kind)] = nil
	}
	j.places[kind] = places
}

func (j *journal) occupied(place uint64) bool {
	for _, places := range j.places {
		if _, ok := slices.BinarySearch(places, place); ok {
			return true
		}
	}
	return false
}

// forget drops the places of deleted rows.
func (j *journal) forget(keys [][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range keys {
		places := j.places[kindOf(k)]
		if i, ok := slices.BinarySearch(places, number(k)); ok {
			j.places[kindOf(k)] = slices.Delete(places, i, i+1)
		}
	}
}

func (j *journal) key(place uint64, kind EventKind) string {
	return string(append(key(place), byte(min(uint32(kind), math.MaxUint8)))[:j.keySize])
}

// kindOf returns the kind in the key of an event, and none of a key of the audit.
func kindOf(k []byte) EventKind {
	if len(k) < eventKeySize {
		return 0
	}
	return EventKind(k[eventKeySize-1])
}
