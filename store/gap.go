package store

import (
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
)

const (
	// maxGaps bounds the gaps that are kept apart. Each further one joins the last.
	maxGaps = 1000

	// gapsApart is the least distance between gaps; nearer ones join.
	gapsApart = time.Minute
)

var gaps = []byte("gaps")

// Gap is a missing part of the history: the queue was full because the disk failed, or the file
// was damaged. The endpoints that changed in it are unknown.
type Gap struct {
	Start, End  time.Time // times of the first and the last missing transition
	Transitions uint64    // number of missing transitions; 0 if unknown, because the file was damaged
}

// String describes a gap on one line.
func (g *Gap) String() string {
	if g.Transitions == 0 {
		return fmt.Sprintf("the history has a gap from %s to %s: what was there is lost, because the database was damaged",
			g.Start.UTC().Format(time.RFC3339), g.End.UTC().Format(time.RFC3339))
	}
	missing := "1 transition was"
	if g.Transitions > 1 {
		missing = fmt.Sprintf("%d transitions were", g.Transitions)
	}
	return fmt.Sprintf("the history has a gap from %s to %s: %s not recorded, because the disk did not take everything",
		g.Start.UTC().Format(time.RFC3339), g.End.UTC().Format(time.RFC3339), missing)
}

// gap is a Gap and the recorded times of its ends.
type gap struct {
	Gap
	from, to uint64
}

// add extends the gap by one missing transition. A clock that was set back may date it before
// earlier ones.
func (g *Gap) add(t time.Time) {
	g.join(Gap{Start: t, End: t, Transitions: 1})
}

// join extends the gap by another one.
func (g *Gap) join(other Gap) {
	if g.Start.IsZero() || other.Start.Before(g.Start) {
		g.Start = other.Start
	}
	if other.End.After(g.End) {
		g.End = other.End
	}
	g.Transitions += other.Transitions
}

func encodeGap(g *gap) []byte {
	return marshal(&storev1.Gap{To: g.to, Start: timestamp(g.Start), End: timestamp(g.End), Transitions: g.Transitions})
}

func decodeGap(k, row []byte) (g gap, ok bool) {
	var m storev1.Gap
	if len(k) != 8 || !unmarshal(row, &m) {
		return g, false
	}
	var start, end bool
	g = gap{from: number(k), to: m.GetTo(), Gap: Gap{Transitions: m.GetTransitions()}}
	g.Start, start = timeIn(m.GetStart())
	g.End, end = timeIn(m.GetEnd())
	return g, start && end && g.from <= g.to
}

// writeGap writes the gap before a group, or joins it to the previous gap if that is near or
// there are many.
func (g *group) writeGap(tx *bolt.Tx) error {
	if g.gap == nil {
		return nil
	}
	rows, err := tx.CreateBucketIfNotExists(gaps)
	if err != nil {
		return err
	}
	next := *g.gap
	if last, ok := lastGap(tx); ok {
		switch {
		case last.to >= next.to:
			return nil // it is there already
		case next.from-last.to <= uint64(gapsApart) || countGaps(rows) >= maxGaps:
			next.from = last.from
			next.join(last.Gap)
		}
	}
	k := key(next.from)
	return rows.Put(k, seal(k, encodeGap(&next)))
}

// countGaps counts no further than maxGaps.
func countGaps(rows *bolt.Bucket) (count int) {
	cursor := rows.Cursor()
	for k, _ := cursor.First(); k != nil && count < maxGaps; k, _ = cursor.Next() {
		count++
	}
	return count
}

// lastGap returns the newest gap, or false if there is none.
func lastGap(tx *bolt.Tx) (gap, bool) {
	rows := tx.Bucket(gaps)
	if rows == nil {
		return gap{}, false
	}
	return openGap(rows.Cursor().Last())
}

// openGap reads a row. It returns false for a damaged one.
func openGap(k, v []byte) (gap, bool) {
	row, ok := unseal(k, v)
	if !ok {
		return gap{}, false
	}
	return decodeGap(k, row)
}

// newest returns the recorded time of the newest transition or gap.
func newest(tx *bolt.Tx) (recorded uint64) {
	if k, _ := tx.Bucket(transitions).Cursor().Last(); len(k) == 8 {
		recorded = number(k)
	}
	if last, ok := lastGap(tx); ok {
		recorded = max(recorded, last.to)
	}
	return recorded
}

// deleteGaps deletes the gaps up to a recorded time.
func deleteGaps(tx *bolt.Tx, upTo uint64) error {
	rows := tx.Bucket(gaps)
	if rows == nil {
		return nil
	}
	var old [][]byte
	cursor := rows.Cursor()
	for k, v := cursor.First(); len(k) == 8 && number(k) <= upTo; k, v = cursor.Next() {
		if g, ok := openGap(k, v); ok && g.to > upTo {
			break
		}
		old = append(old, slices.Clone(k))
	}
	for _, k := range old {
		if err := rows.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// gaps returns all gaps of one transaction, oldest first, with their real times.
func (h *history) gaps(tx *bolt.Tx) (found []gap) {
	line := h.time.timeline()
	h.damage.forEach(tx, gaps, func(k, row []byte) bool {
		g, ok := decodeGap(k, row)
		if ok {
			g.Start, g.End = timeOf(line.Shown(g.from, nanos(g.Start))), timeOf(line.Shown(g.to, nanos(g.End)))
			found = append(found, g)
		}
		return ok
	})
	return found
}

// Gaps returns the gaps of one page of Transitions, of which next is the token. They are
// in the order of the page.
func (h *history) Gaps(q Query, next string) (found []Gap, err error) {
	after, err := q.position()
	if err != nil {
		return nil, err
	}
	until := uint64(0)
	if next != "" {
		q.Token = next
		if until, err = q.position(); err != nil {
			return nil, err
		}
	}
	err = h.db.view(func(tx *bolt.Tx) error {
		for _, g := range h.gaps(tx) {
			// A gap belongs to the page that begins, or goes on, before it.
			low, high := after, until
			if q.NewestFirst {
				low, high = until, after
			}
			inPage := g.from > low && (high == 0 || g.from <= high)
			if inPage && nanos(g.End) >= nanos(q.Start) && nanos(g.Start) < q.end() {
				found = append(found, g.Gap)
			}
		}
		return nil
	})
	if q.NewestFirst {
		slices.Reverse(found)
	}
	return found, err
}
