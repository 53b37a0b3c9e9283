package store

import (
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
)

// maxAudit is how many entries of the audit are kept.
const maxAudit = 50_000

var audit = []byte("audit")

// AuditEntry is a change that somebody made to a running hdsd.
type AuditEntry struct {
	Time              time.Time
	Identity, Address string // of the caller, as far as it was verified
	Author            string // by the caller's own word, as is Reason
	Action, Target    string
	Before, After     string
	Reason            string
}

// AuditQuery asks for entries of the audit. Zero fields do not narrow it.
type AuditQuery struct {
	Start, End  time.Time // Start is included, End is not
	After       uint64    // the place of the last entry of the page before
	NewestFirst bool
	Limit       int
}

// AuditedEntry is an entry and its place in the audit.
type AuditedEntry struct {
	AuditEntry
	Place uint64
}

// trail numbers the entries of the audit, and bounds them. A place is a time in
// nanoseconds since 1970, or one more than the place before.
type trail struct {
	limit int // of entries

	mu     sync.Mutex
	places []uint64 // sorted
}

// load takes over the places of the entries that are stored.
func (t *trail) load(tx *bolt.Tx) {
	if rows := tx.Bucket(audit); rows != nil {
		cursor := rows.Cursor()
		for k, _ := cursor.First(); k != nil; k, _ = cursor.Next() {
			if len(k) == 8 {
				t.places = append(t.places, number(k))
			}
		}
	}
}

// add returns the place of a new entry, and those of entries to delete.
func (t *trail) add(at time.Time) (place uint64, old []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	place = nanos(at)
	if n := len(t.places); n > 0 {
		place = max(place, t.places[n-1]+1)
	}
	t.places = append(t.places, place)
	if over := len(t.places) - t.limit; over > 0 {
		old = slices.Clone(t.places[:over])
		t.places = slices.Delete(t.places, 0, over)
	}
	return place, old
}

// AppendAudit adds an entry to the audit, and deletes the oldest ones if there are too
// many. It does not wait for the disk; Flush does.
func (s *Store) AppendAudit(e AuditEntry) {
	place, old := s.trail.add(e.Time)
	rows := map[string][]byte{string(key(place)): encodeAudit(&e)}
	for _, gone := range old {
		rows[string(key(gone))] = nil
	}
	s.intake.put(audit, rows)
}

// Audit returns entries that are on disk, and whether there are more.
func (h *history) Audit(q AuditQuery) (found []AuditedEntry, more bool, err error) {
	err = h.db.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(audit)
		if rows == nil {
			return nil
		}
		cursor := rows.Cursor()
		for k, v := q.first(cursor); k != nil; k, v = q.next(cursor) {
			row, ok := unseal(k, v)
			e, good := decodeAudit(row)
			h.damage.unless(ok && good, audit, k)
			if !ok || !good || e.Time.Before(q.Start) || !q.End.IsZero() && !e.Time.Before(q.End) {
				continue
			}
			if len(found) == q.Limit {
				more = true
				return nil
			}
			found = append(found, AuditedEntry{e, number(k)})
		}
		return nil
	})
	return found, more, err
}

// first moves to the first entry of a page.
func (q *AuditQuery) first(cursor *bolt.Cursor) (k, v []byte) {
	switch {
	case q.After == 0 && q.NewestFirst:
		return cursor.Last()
	case q.After == 0:
		return cursor.First()
	case !q.NewestFirst:
		return cursor.Seek(key(q.After + 1))
	}
	if k, _ := cursor.Seek(key(q.After)); k == nil {
		return cursor.Last()
	}
	return cursor.Prev()
}

func (q *AuditQuery) next(cursor *bolt.Cursor) (k, v []byte) {
	if q.NewestFirst {
		return cursor.Prev()
	}
	return cursor.Next()
}

func encodeAudit(e *AuditEntry) []byte {
	return marshal(&storev1.AuditEntry{
		Time: timestamp(e.Time), Identity: text(e.Identity), Address: text(e.Address), Author: text(e.Author), Action: text(e.Action),
		Target: text(e.Target), Before: text(e.Before), After: text(e.After), Reason: text(e.Reason),
	})
}

func decodeAudit(row []byte) (e AuditEntry, ok bool) {
	var m storev1.AuditEntry
	if !unmarshal(row, &m) {
		return AuditEntry{}, false
	}
	e = AuditEntry{
		Identity: m.GetIdentity(), Address: m.GetAddress(), Author: m.GetAuthor(), Action: m.GetAction(),
		Target: m.GetTarget(), Before: m.GetBefore(), After: m.GetAfter(), Reason: m.GetReason(),
	}
	e.Time, ok = timeIn(m.GetTime())
	return e, ok
}
