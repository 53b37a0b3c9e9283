package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"hdsd/internal/packed"
)

// Cursor is the place of a database in the log of a fleet.
type Cursor struct {
	Fleet    string // identity of the log; empty: the database belongs to no fleet
	Sequence uint64 // of the latest entry of the log that the database has
	Digest   uint64 // of that entry; 0: unknown

	// Diverged reports that the database is not the sum of the log up to Sequence: a single
	// coordinator has used it since, or salvage has lost a part of it. With an empty Fleet, the fleet
	// is lost too.
	Diverged bool
}

// Cursor returns the cursor on disk.
func (s *Store) Cursor() Cursor {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	return s.intake.fleet.cursor
}

// CursorOf returns the cursor of the database in a folder that no process has open. The error is ErrLocked if one has.
func CursorOf(ctx context.Context, folder string) (c Cursor, err error) {
	o, path := Options{LockTimeout: lockPoll}.withDefaults(), filepath.Join(folder, fileName)
	file, err := lockPlace(ctx, path, os.O_RDWR, o.LockTimeout)
	if err != nil {
		return Cursor{}, err
	}
	db, err := openBolt(path, file, &o)
	if err != nil {
		_ = file.Close() // bbolt may have closed it already
		return Cursor{}, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		c, _ = readCursor(tx)
		return nil
	})
	return c, errors.Join(err, db.Close())
}

// SetFleet declares that the database is the sum of the log of a fleet up to a cursor. Diverged ends. An
// empty fleet makes the database that of a single coordinator again. Without an error, this is on disk.
// After an error of the disk it may come to be there later.
func (s *Store) SetFleet(ctx context.Context, fleet string, cursor uint64) error {
	in, closed := s.intake, false
	in.work(func() {
		if closed = in.closed; !closed {
			in.fleet.move(advance{fleet: &fleet, sequence: cursor}, &in.submitted)
		}
	})
	if closed {
		return ErrClosed
	}
	return in.durable(ctx)
}

// fleetKey is the row of the header with the cursor. A file without a fleet has no such row.
var fleetKey = []byte("fleet")

// fleetVersion is the first byte of the row.
const fleetVersion = 1

// encodeCursor writes a cursor, and the recorded time of the newest transition or gap beside it.
func encodeCursor(c Cursor, recorded uint64) []byte {
	diverged := byte(0)
	if c.Diverged {
		diverged = 1
	}
	row := append([]byte{fleetVersion, diverged}, key(c.Sequence, recorded)...)
	return append(packed.AppendText(row, c.Fleet), key(c.Digest)...)
}

func decodeCursor(row []byte) (c Cursor, recorded uint64, ok bool) {
	r := packed.Reader{Rest: row}
	version, diverged := r.Byte(), r.Byte()
	c, recorded = Cursor{Sequence: r.Uint64(), Diverged: diverged == 1}, r.Uint64()
	c.Fleet = r.Text()
	if len(r.Rest) > 0 { // the first rows had no digest
		c.Digest = r.Uint64()
	}
	if version != fleetVersion || diverged > 1 || r.Bad || len(r.Rest) > 0 {
		return Cursor{}, 0, false
	}
	return c, recorded, true
}

// readCursor returns the stored cursor. It returns false for a damaged row, with a cursor of a
// lost fleet. An older hdsd appends transitions without a look at the cursor. The recorded time
// beside it is then too early.
func readCursor(tx *bolt.Tx) (c Cursor, ok bool) {
	sealed := tx.Bucket(header).Get(fleetKey)
	if sealed == nil {
		return Cursor{}, true
	}
	row, ok := unseal(fleetKey, sealed)
	c, recorded, good := decodeCursor(row)
	if !ok || !good {
		return Cursor{Diverged: true}, false
	}
	c.Diverged = c.Diverged || newest(tx) > recorded
	return c, true
}

func putCursor(tx *bolt.Tx, c Cursor) error {
	return tx.Bucket(header).Put(fleetKey, seal(fleetKey, encodeCursor(c, newest(tx))))
}

// writeCursor writes the cursor behind the portions of a group. It follows the history.
func (g *group) writeCursor(tx *bolt.Tx) error {
	if len(g.portions) == 0 {
		return nil
	}
	return putCursor(tx, g.cursor())
}

// cursor returns the cursor behind the portions of a group.
func (g *group) cursor() Cursor {
	c := g.behind
	for _, p := range g.portions {
		p.advance.apply(&c)
	}
	return c
}

// advance is a change of the cursor.
type advance struct {
	fleet    *string // nil: as before
	sequence uint64
	digest   uint64
	diverges bool
}

func (a *advance) apply(c *Cursor) {
	if a.fleet != nil {
		*c = Cursor{Fleet: *a.fleet}
	}
	c.Sequence, c.Digest = a.sequence, a.digest
	c.Diverged = c.Diverged || a.diverges
}

// add adds a later change.
func (a *advance) add(later advance) {
	if later.fleet != nil {
		*a = later
		return
	}
	a.sequence, a.digest = later.sequence, later.digest
	a.diverges = a.diverges || later.diverges
}
