package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spare is how much room a copy must leave on the disk: the history goes on
// being written.
const spare = 64 << 20

// ErrNoRoom says that the disk has no room for a copy.
var ErrNoRoom = errors.New("no room for a copy of the history")

// Backup writes a copy of the file as it is at this moment, while work goes
// on. The copy can take the file's place. As long as it takes, space that
// becomes free in the file is not used again.
func (s *Store) Backup(w io.Writer) error {
	if err := s.db.writeTo(w); err != nil {
		return fmt.Errorf("back up history: %w", err)
	}
	return nil
}

// Copy makes a copy as Backup does, as fast as the disk is, in a file beside
// the database that has no name and is gone with its last reader. It is for
// readers that may be slow.
func (s *Store) Copy(ctx context.Context) (_ *os.File, err error) {
	folder := filepath.Dir(s.db.path)
	if err := s.roomFor(folder); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, fileName+".copy-*")
	if err != nil {
		return nil, fmt.Errorf("back up history: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return nil, fmt.Errorf("back up history: %w", err)
	}
	if err := s.Backup(&until{ctx, file}); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("back up history: %w", err)
	}
	return file, nil
}

// roomFor refuses a copy for which a folder has no room.
func (s *Store) roomFor(folder string) error {
	needed := s.db.size() + spare
	if free, known := freeBytes(folder); known && free < uint64(needed) {
		return fmt.Errorf("%w: it takes up to %d MiB beside the history for a moment, %s has %d MiB: free some", ErrNoRoom, needed>>20, folder, free>>20)
	}
	return nil
}

// until is a writer that fails when a context ends.
type until struct {
	ctx context.Context
	to  io.Writer
}

func (u *until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.to.Write(p)
}
