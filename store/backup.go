package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spare is how much room a copy must leave on the disk for the history, which is still
// being written.
const spare = 64 << 20

// ErrNoRoom means that the disk has no room for a copy.
var ErrNoRoom = errors.New("no room for a copy of the history")

// Backup writes a copy of the file as it is at this moment, which Restore accepts.
// Nothing else waits for it. Until it ends, the file does not reuse its free space.
func (s *Store) Backup(w io.Writer) error {
	if err := s.db.writeTo(w); err != nil {
		return fmt.Errorf("back up history: %w", err)
	}
	return nil
}

// Copy makes the copy in a file beside the database, as fast as the disk is. The file has
// no name and is gone when it is closed. So a slow reader does not hold up the database.
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
	if err := s.Backup(&contextWriter{ctx, file}); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("back up history: %w", err)
	}
	return file, nil
}

// roomFor returns an error if a folder has no room for a copy.
func (s *Store) roomFor(folder string) error {
	needed := s.db.size() + spare
	if free, known := freeBytes(folder); known && free < uint64(needed) {
		return fmt.Errorf("%w: it takes up to %d MiB beside the history for a moment, %s has %d MiB: free some", ErrNoRoom, needed>>20, folder, free>>20)
	}
	return nil
}

// contextWriter fails when its context ends.
type contextWriter struct {
	ctx context.Context
	to  io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(p)
}
