package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/boltfile"
)

// fileName is the file in the data folder.
const fileName = "hdsd.db"

const (
	defaultLockTimeout = 5 * time.Second
	lockPoll           = 20 * time.Millisecond

	// mapSize is how much of the file is mapped at the start. Queries hold up the
	// writer only when the file outgrows the map.
	mapSize = 1 << 30

	// readAll is the largest size of which Open reads every page. Of a larger file it reads the
	// inner pages; queries find faults in the rest.
	readAll = 256 << 20
)

// advice ends the text of ErrDamaged.
const advice = "restore a backup, keep what can be read ('hdsd restore --salvage'), or move the file away to begin a new history; hdsd leaves it as it is"

func damaged(path string, err error) error {
	return fmt.Errorf("%w: %s: %w: %s", ErrDamaged, path, err, advice)
}

// opened is the result of openDatabase.
type opened struct {
	db        *database
	written   time.Time // last write of the file
	unsettled error     // reason why the disk refuses writes; nil if it does not
}

// openDatabase opens the history of a folder, creating folder and file if missing.
func openDatabase(ctx context.Context, dir string, o *Options) (found opened, err error) {
	path := filepath.Join(dir, fileName)
	if err := makeFolder(dir); err != nil {
		return found, fmt.Errorf("data folder: %w: create it or choose another data_dir", err)
	}
	if err := create(ctx, path, o); err != nil {
		return found, err
	}
	file, err := lockPlace(ctx, path, os.O_RDWR, o.LockTimeout)
	if err != nil {
		return found, err
	}
	var db *bolt.DB
	info, err := file.Stat()
	if err == nil {
		db, err = openBolt(path, file, o)
	}
	if err != nil {
		unlock(file)
		_ = file.Close()
		return found, err
	}
	found.written = info.ModTime()
	found.db, found.unsettled, err = newDatabase(db, file)
	return found, err
}

// makeFolder makes a folder and its parents, and syncs their names.
func makeFolder(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if found, err := exists(path); found || err != nil {
		return os.MkdirAll(path, 0o700) // which says what is wrong with it
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// unfinished returns the name of a file that is being made.
func unfinished(path string) string { return path + ".new" }

// create makes an empty history under another name, and renames it when complete, so that no
// part of one ever shows.
func create(ctx context.Context, path string, o *Options) error {
	if found, err := exists(path); found || err != nil {
		return err
	}
	unfinished := unfinished(path)
	file, err := lockFile(ctx, unfinished, os.O_RDWR|os.O_CREATE, o.LockTimeout)
	if err != nil {
		return err
	}
	defer file.Close() // after bbolt has, at the latest
	if found, err := exists(path); found || err != nil {
		return err // another process was faster
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	db, err := bolt.Open(unfinished, 0o600, boltOptions(file, o))
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return initialize(tx, o.version(), o.now()) })
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err == nil && !o.noSync {
		err = SyncFolder(filepath.Dir(path))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("history: %w: a new history needs a disk that takes writes: free disk space, or choose another data_dir", err)
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("history: %w", err)
	}
}

// SyncFolder syncs the names in a folder.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// lockFile opens a file and waits a bounded time for its lock.
func lockFile(ctx context.Context, path string, flag int, timeout time.Duration) (*os.File, error) {
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: %w: hdsd needs to read and write it: give it the right to, make the file system writable, or choose another data_dir", err)
	}
	if err := waitLock(ctx, file, timeout); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// lockPlace locks the file named by a path. While it waits, another file may take that name.
func lockPlace(ctx context.Context, path string, flag int, timeout time.Duration) (*os.File, error) {
	for {
		file, err := lockFile(ctx, path, flag, timeout)
		if err != nil {
			return nil, err
		}
		if named, err := os.Stat(path); err == nil && sameFile(file, named) {
			return file, nil
		}
		_ = file.Close()
	}
}

func sameFile(file *os.File, other os.FileInfo) bool {
	info, err := file.Stat()
	return err == nil && os.SameFile(info, other)
}

func waitLock(ctx context.Context, file *os.File, timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		locked, err := tryLock(file)
		if locked {
			return nil
		}
		if err != nil {
			return fmt.Errorf("history: lock %s: %w", file.Name(), err)
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return fmt.Errorf("%w: %s is held by another process, waited %v: stop the other hdsd or give this one its own data_dir",
				ErrLocked, file.Name(), timeout)
		case <-ctx.Done():
			return fmt.Errorf("history: lock %s: %w", file.Name(), context.Cause(ctx))
		}
	}
}

// openBolt checks a locked file and hands it to bbolt.
func openBolt(path string, file *os.File, o *Options) (db *bolt.DB, err error) {
	if err := checkFile(path, file); err != nil {
		return nil, err
	}
	panicked, err := guard(func() (err error) {
		if db, err = bolt.Open(path, 0o600, boltOptions(file, o)); err != nil {
			return err
		}
		return checkSchema(db, path, o)
	})
	switch {
	case errors.Is(err, errPanic), errors.Is(err, errNoHeader):
		err = damaged(path, err)
	case err != nil && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrDamaged):
		err = fmt.Errorf("history: %s: %w", path, err)
	}
	if err != nil && db != nil && !panicked { // after a panic, bbolt may keep its locks
		_ = db.Close()
	}
	return db, err
}

// checkFile checks the file before bbolt reads it.
func checkFile(path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	check := boltfile.CheckBranches
	if info.Size() <= readAll {
		check = boltfile.Check
	}
	err = check(file, info.Size())
	switch {
	case errors.Is(err, boltfile.ErrVersion):
		return fmt.Errorf("%w: %s: %w: use the hdsd that wrote it, or move it away to begin a new history", ErrVersion, path, err)
	case err != nil:
		return damaged(path, err)
	}
	return nil
}

// checkSchema upgrades the file to the newest schema version.
func checkSchema(db *bolt.DB, path string, o *Options) error {
	var version uint32
	var created uint64
	err := db.View(func(tx *bolt.Tx) (err error) {
		version, created, err = schema(tx)
		return err
	})
	if err != nil {
		return err
	}
	if err := o.unreadable(path, version); err != nil {
		return err
	}
	if version < o.version() {
		err := db.Update(func(tx *bolt.Tx) error { return o.migrate(tx, version, created) })
		if err != nil {
			return fmt.Errorf("upgrade (the file is as it was): %w", err)
		}
	}
	return db.View(func(tx *bolt.Tx) error {
		if err := complete(tx); err != nil {
			return damaged(path, err)
		}
		return nil
	})
}

func boltOptions(file *os.File, o *Options) *bolt.Options {
	return &bolt.Options{
		Timeout: o.LockTimeout, FreelistType: bolt.FreelistMapType, InitialMmapSize: o.mapSize, MaxSize: o.maxSize, NoSync: o.noSync,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return file, nil },
	}
}
