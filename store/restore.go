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

// RestoreResult describes the restored history.
type RestoreResult struct {
	CopyInfo
	Path string // of the history
	Kept string // path of the replaced history; empty if there was none
}

// RestoreOptions says how to restore. The zero RestoreOptions is good.
type RestoreOptions struct {
	// AcceptDamaged accepts a copy in which single rows are damaged.
	AcceptDamaged bool

	// Accept, if set, may refuse a copy that is good. An error of it leaves everything as it was.
	Accept func(*CopyInfo) error

	// Progress, if set, gets the number of bytes read, and the size of the copy, 0 if unknown. Restore
	// checks the copy then.
	Progress func(done, size int64)

	now func() time.Time
}

// Restore puts a copy in place of the history in a folder, or in an empty folder, while no hdsd
// has it open. It keeps the replaced history beside the new one. At every moment the folder has
// one of them, complete. After an error it has the old one.
func Restore(ctx context.Context, folder, origin string, r RestoreOptions) (RestoreResult, error) {
	file, err := os.Open(origin)
	if err != nil {
		return RestoreResult{}, fmt.Errorf("copy: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return RestoreResult{}, fmt.Errorf("copy: %w", err)
	}
	return r.restore(ctx, folder, &source{Reader: file, name: origin, info: info, size: info.Size()})
}

// Replace is Restore of a copy that arrives as a stream, as another replica's Copy does. The stream
// ends with the copy. Each replaced history stays until somebody deletes it.
func Replace(ctx context.Context, folder string, from io.Reader, r RestoreOptions) (RestoreResult, error) {
	return r.restore(ctx, folder, &source{Reader: from, name: "the received copy"})
}

// source is a copy to put in place.
type source struct {
	io.Reader
	name string
	info os.FileInfo // nil: it is a stream
	size int64       // 0 if unknown
}

func (r RestoreOptions) restore(ctx context.Context, folder string, from *source) (done RestoreResult, err error) {
	if r.now == nil {
		r.now = time.Now
	}
	if r.Progress == nil {
		r.Progress = func(int64, int64) {}
	}
	if r.Accept == nil {
		r.Accept = func(*CopyInfo) error { return nil }
	}
	o := Options{LockTimeout: time.Second}.withDefaults()
	if err := makeFolder(folder); err != nil {
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
	staged, err := stage(ctx, done.Path, from, before, &o, r.Progress)
	if err != nil {
		return done, err
	}
	info, db, err := examine(from.name, staged, &o)
	done.CopyInfo = info
	switch {
	case err != nil:
	case ctx.Err() != nil: // a caller that cancels during the check wants the history unchanged
		err = fmt.Errorf("restore: %w", context.Cause(ctx))
	case info.Rows != nil && !r.AcceptDamaged:
		err = info.Rows
	default:
		if err = r.Accept(&info); err == nil {
			done.Kept, err = replace(done.Path, before != nil, r.now())
		}
	}
	if err != nil {
		err = errors.Join(err, os.Remove(unfinished(done.Path)))
	}
	return done, errors.Join(err, closeCopy(staged, db))
}

// stage copies the source to the name of unfinished histories, and syncs it. Its lock keeps a
// starting hdsd away.
func stage(ctx context.Context, path string, from *source, before *os.File, o *Options, progress func(done, size int64)) (staged *os.File, err error) {
	if from.info != nil && !from.info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that 'hdsd backup' has written", from.name)
	}
	if from.info != nil && before != nil && sameFile(before, from.info) {
		return nil, fmt.Errorf("%s is the history itself: name a copy of it", from.name)
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
		err = copyIn(ctx, staged, from, progress)
	}
	if err == nil {
		err = giveTo(staged, filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("restore: %w", err), os.Remove(unfinished(path)), staged.Close())
	}
	return staged, nil
}

func copyIn(ctx context.Context, staged *os.File, from *source, progress func(done, size int64)) error {
	if err := staged.Truncate(0); err != nil {
		return err
	}
	counter := &countingWriter{writer: &contextWriter{ctx, io.NewOffsetWriter(staged, 0)}, written: func(done int64) { progress(done, from.size) }}
	if _, err := io.Copy(counter, from.Reader); err != nil {
		return err
	}
	return staged.Sync()
}

// countingWriter reports the number of bytes written.
type countingWriter struct {
	writer  io.Writer
	done    int64
	written func(int64)
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.writer.Write(p)
	c.done += int64(n)
	c.written(c.done)
	return n, err
}

// replace gives the old history a second name, by its date, and then renames the finished one
// over it, so that there is always one.
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

// maxKept bounds the kept histories of one second.
const maxKept = 100

func linkDated(path string, now time.Time) (string, error) {
	dated := path + now.UTC().Format(".20060102T150405Z")
	for n := range maxKept {
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
	return "", fmt.Errorf("restore: %s and %d more exist: move some away", dated, maxKept-1)
}
