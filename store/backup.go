package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spare is the free space that a copy must leave on the disk for the history.
const spare = 64 << 20

// ErrNoRoom means that the disk has no room for a copy.
var ErrNoRoom = errors.New("no room for a copy of the history")

// Backup writes a snapshot of the file, which Restore accepts. Nothing else waits for it. Until
// it ends, the file does not reuse its free space.
func (s *Store) Backup(w io.Writer) error {
	if err := s.db.writeTo(w); err != nil {
		return fmt.Errorf("back up history: %w", err)
	}
	return nil
}

// Copy makes the snapshot in an unnamed file beside the database, at the speed of the disk, so
// that a slow reader does not hold up the database. Closing the file deletes it.
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
	if free, ok := freeBytes(folder); ok && free < uint64(needed) {
		return fmt.Errorf("%w: it takes up to %d MiB beside the history for a moment, %s has %d MiB: free some", ErrNoRoom, needed>>20, folder, free>>20)
	}
	return nil
}

// contextWriter fails when its context ends.
type contextWriter struct {
	ctx    context.Context
	writer io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.writer.Write(p)
}
