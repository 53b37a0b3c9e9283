package store

import (
	"fmt"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
)

const (
	// maxAudit is how many entries of the audit are kept.
	maxAudit = 50_000

	// maxAuditWaiting is how many wait for the disk.
	maxAuditWaiting = 4096
)

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

// AuditGap is a part of the audit that is missing: the disk did not take it, and too much
// waited. The audit has an entry in its place.
type AuditGap struct {
	Start, End time.Time // of the first and the last entry that is missing
	Entries    uint64
}

// mark returns the entry that stands for what is missing.
func (g *AuditGap) mark() AuditEntry {
	return AuditEntry{
		Time: g.Start, Action: "AuditGap", Target: "audit",
		Reason: fmt.Sprintf("%d entries until %s are missing, because the disk did not take them: the log has them as events \"audit\"",
			g.Entries, g.End.UTC().Format(time.RFC3339)),
	}
}

// trail is the queue of entries of the audit. It numbers them and bounds them, in memory
// and on disk. A place is a time in nanoseconds since 1970, or one more than the place
// before.
type trail struct {
	limit int // of entries on disk
	most  int // of entries that wait for the disk

	mu      sync.Mutex
	waiting []trailRow
	missing AuditGap // before those that wait
	places  []uint64 // sorted, of entries on disk and in the group on its way there
}

// trailRow is an entry that waits for the disk.
type trailRow struct {
	at  time.Time
	row []byte
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

// add takes in an entry. If too many wait, the oldest ones go.
func (t *trail) add(at time.Time, row []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, trailRow{at, row})
	if len(t.waiting) <= t.most {
		return
	}
	over := len(t.waiting) - t.most + t.most/16 // more, so that not every entry moves the rest
	if t.missing.Entries == 0 {
		t.missing.Start = t.waiting[0].at
	}
	t.missing.End = t.waiting[over-1].at
	t.missing.Entries += uint64(over)
	t.waiting = slices.Delete(t.waiting, 0, over)
}

// take moves what waits to a group, and has it delete the oldest entries on disk if there
// are too many.
func (t *trail) take(g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return
	}
	rows := map[string][]byte{}
	if t.missing.Entries > 0 {
		mark := t.missing.mark()
		rows[t.place(mark.Time)] = encodeAudit(&mark)
	}
	for _, e := range t.waiting {
		rows[t.place(e.at)] = e.row
	}
	g.unaudited = t.missing
	t.waiting, t.missing = nil, AuditGap{}
	if over := len(t.places) - t.limit; over > 0 {
		for _, old := range t.places[:over] {
			rows[string(key(old))] = nil
		}
		t.places = slices.Delete(t.places, 0, over)
	}
	if g.rows == nil {
		g.rows = changes{}
	}
	g.rows[string(audit)] = rows
}

// place returns the key of the next entry. The caller holds the lock.
func (t *trail) place(at time.Time) string {
	place := nanos(at)
	if n := len(t.places); n > 0 {
		place = max(place, t.places[n-1]+1)
	}
	t.places = append(t.places, place)
	return string(key(place))
}

// AppendAudit adds an entry to the audit, and deletes the oldest ones if there are too
// many. It does not wait for the disk; Flush does. While the disk takes nothing, a bounded
// number of entries wait; what is too much is an AuditGap.
func (s *Store) AppendAudit(e AuditEntry) {
	s.trail.add(e.Time, encodeAudit(&e))
	s.intake.work(func() { s.intake.asked.others++ })
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
