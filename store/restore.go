package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Restored tells what Restore did.
type Restored struct {
	About
	Path string // of the history
	Kept string // where the one before is now; empty where there was none
}

// Restoring says how to restore. The zero Restoring is good.
type Restoring struct {
	// Damaged accepts a copy in which single rows are damaged.
	Damaged bool

	// Read, if any, gets how much of the copy is read; it is checked after that.
	Read func(done, size int64)

	now func() time.Time
}

// Restore puts a copy in the place of the history in a folder, or where there
// is none, while no hdsd has it open. The history that was there is kept
// beside it. At every moment the folder has the one or the other, whole; with
// an error it has the one that it had.
func Restore(ctx context.Context, folder, from string, r Restoring) (done Restored, err error) {
	if r.now == nil {
		r.now = time.Now
	}
	o := Options{LockTimeout: time.Second}.withDefaults()
	source, err := os.Open(from)
	if err != nil {
		return done, fmt.Errorf("copy: %w", err)
	}
	defer source.Close()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return done, fmt.Errorf("data folder: %w: create it or choose another data_dir", err)
	}
	done.Path = filepath.Join(folder, fileName)
	before, err := lockPlace(ctx, done.Path, os.O_RDWR, o.LockTimeout)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	if before != nil {
		defer before.Close()
	}
	staged, err := stage(ctx, done.Path, source, before, &o, r.Read)
	if err != nil {
		return done, err
	}
	about, db, err := examine(from, staged, &o)
	done.About = about
	switch {
	case err != nil:
	case ctx.Err() != nil: // whoever gave up while it was checked wants it left alone
		err = fmt.Errorf("restore: %w", context.Cause(ctx))
	case about.Rows != nil && !r.Damaged:
		err = about.Rows
	default:
		done.Kept, err = replace(done.Path, before != nil, r.now())
	}
	if err != nil {
		err = errors.Join(err, os.Remove(unfinished(done.Path)))
	}
	return done, errors.Join(err, closeCopy(staged, db))
}

// stage copies the source to where histories are until they are finished, and
// has it on disk. The lock on it keeps a starting hdsd away.
func stage(ctx context.Context, path string, source, before *os.File, o *Options, read func(done, size int64)) (staged *os.File, err error) {
	info, err := source.Stat()
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that 'hdsd backup' has written", source.Name())
	}
	if before != nil && sameFile(before, info) {
		return nil, fmt.Errorf("%s is the history itself: name a copy of it", source.Name())
	}
	staged, err = lockPlace(ctx, unfinished(path), os.O_RDWR|os.O_CREATE, o.LockTimeout)
	if err != nil {
		return nil, err
	}
	found, err := exists(path)
	if err == nil && found != (before != nil) {
		err = fmt.Errorf("%w: %s came or went just now: stop hdsd", ErrLocked, path)
	}
	if err == nil {
		err = copyIn(ctx, staged, source, info.Size(), read)
	}
	if err == nil {
		err = giveTo(staged, filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("restore: %w", err), os.Remove(unfinished(path)), staged.Close())
	}
	return staged, nil
}

func copyIn(ctx context.Context, staged, source *os.File, size int64, read func(done, size int64)) error {
	if err := staged.Truncate(0); err != nil {
		return err
	}
	if read == nil {
		read = func(int64, int64) {}
	}
	to := &counted{to: &until{ctx, staged}, tell: func(done int64) { read(done, size) }}
	if _, err := io.Copy(to, source); err != nil {
		return err
	}
	return staged.Sync()
}

// counted tells how much was written.
type counted struct {
	to   io.Writer
	done int64
	tell func(int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.done += int64(n)
	c.tell(c.done)
	return n, err
}

// replace gives the history that is there a second name, by its date, and then
// its place to the finished one, in one step: there is always one.
func replace(path string, keep bool, now time.Time) (kept string, err error) {
	if keep {
		if kept, err = linkDated(path, now); err != nil {
			return "", err
		}
	}
	if err = SyncFolder(filepath.Dir(path)); err == nil {
		err = os.Rename(unfinished(path), path)
	}
	if err != nil {
		if keep {
			err = errors.Join(err, os.Remove(kept))
		}
		return "", fmt.Errorf("restore: %w", err)
	}
	if err := SyncFolder(filepath.Dir(path)); err != nil {
		return kept, fmt.Errorf("the copy is in place, but may not be after a loss of power: %w", err)
	}
	return kept, nil
}

// mostAlike is how many histories can be kept of one second.
const mostAlike = 100

func linkDated(path string, now time.Time) (string, error) {
	dated := path + now.UTC().Format(".20060102T150405Z")
	for n := range mostAlike {
		name := dated
		if n > 0 {
			name = fmt.Sprintf("%s-%d", dated, n+1)
		}
		err := os.Link(path, name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("restore: keep the history that is there: %w: move %s away yourself and try again", err, path)
		}
		return name, nil
	}
	return "", fmt.Errorf("restore: %s and %d more are there: move some away", dated, mostAlike-1)
}
