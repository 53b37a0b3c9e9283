package store

import (
	"fmt"
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
	Identity, Address string // of the caller, as far as verified
	Author            string // claimed by the caller, as is Reason
	Action, Target    string
	Version           string // of the cluster in Target; empty: the first, or all
	Before, After     string
	Reason            string
}

// AuditQuery asks for entries of the audit. Zero fields do not narrow it.
type AuditQuery struct {
	Start, End  time.Time // Start is included, End is not
	After       uint64    // place of the previous page's last entry
	NewestFirst bool
	Limit       int
}

// AuditedEntry is an entry and its place in the audit.
type AuditedEntry struct {
	AuditEntry
	Place uint64
}

// AuditGap marks entries that the queue dropped while the disk failed. The audit has an entry in
// their place.
type AuditGap struct {
	Start, End time.Time // times of the first and the last missing entry
	Entries    uint64
}

// newTrail makes the journal of the audit.
func newTrail() *journal {
	return &journal{bucket: audit, keySize: 8, ordered: true, limit: maxAudit, lost: func(g Gap) journalEntry {
		return &AuditEntry{
			Time: g.Start, Action: "AuditGap", Target: "audit",
			Reason: fmt.Sprintf("%d entries until %s are missing, because the disk did not take them: the log has them as events \"audit\"",
				g.Transitions, g.End.UTC().Format(time.RFC3339)),
		}
	}}
}

// AppendAudit adds an entry to the audit, and deletes the oldest ones above the limit. It does
// not wait for the disk; Flush does. While the disk fails, the queue is bounded; dropped entries
// become an AuditGap.
func (s *Store) AppendAudit(e AuditEntry) {
	s.trail.add(&e)
	s.intake.work(func() { s.intake.submitted.rows++ })
}

// Audit returns entries on disk, and whether more follow.
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

func (e *AuditEntry) moment() time.Time { return e.Time }

func (e *AuditEntry) kind() EventKind { return 0 }

func (e *AuditEntry) encode(uint64, uint64) []byte {
	return marshal(&storev1.AuditEntry{
		Time: timestamp(e.Time), Identity: text(e.Identity), Address: text(e.Address), Author: text(e.Author), Action: text(e.Action),
		Target: text(e.Target), Version: text(e.Version), Before: text(e.Before), After: text(e.After), Reason: text(e.Reason),
	})
}

func decodeAudit(row []byte) (e AuditEntry, ok bool) {
	var m storev1.AuditEntry
	if !unmarshal(row, &m) {
		return AuditEntry{}, false
	}
	e = AuditEntry{
		Identity: m.GetIdentity(), Address: m.GetAddress(), Author: m.GetAuthor(), Action: m.GetAction(),
		Target: m.GetTarget(), Version: m.GetVersion(), Before: m.GetBefore(), After: m.GetAfter(), Reason: m.GetReason(),
	}
	e.Time, ok = timeIn(m.GetTime())
	return e, ok
}
