package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// content returns the database file of a folder.
func content(t testing.TB, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refused fails unless Open returns an error that names the file and says what to do, and
// leaves the file alone.
func refused(t *testing.T, dir string, o Options, target error, says ...string) {
	t.Helper()
	before := content(t, dir)
	o.mapSize = 1
	s, err := Open(t.Context(), dir, o)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, target) {
		t.Fatalf("got %v, want %v", err, target)
	}
	for _, part := range append(says, filepath.Join(dir, fileName)) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if !bytes.Equal(before, content(t, dir)) {
		t.Error("the file has changed")
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	refused(t, dir, Options{LockTimeout: time.Millisecond}, ErrLocked, "stop the other hdsd")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir, Options{LockTimeout: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}

	opened := make(chan error)
	go func() {
		s, err := Open(t.Context(), dir, Options{LockTimeout: time.Minute})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error("after the other has gone:", err)
	}
}

func TestManyOpenANewFolderAtOnce(t *testing.T) {
	dir := t.TempDir()
	results := make(chan error)
	const openers = 8
	for range openers {
		go func() {
			s, err := Open(t.Context(), dir, Options{LockTimeout: time.Minute})
			if err == nil {
				s.Append(flips(1))
				err = s.Close()
			}
			results <- err
		}()
	}
	for range openers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := len(queryAll(t, open(t, dir), Query{})); got != openers {
		t.Errorf("%d transitions, want one of each", got)
	}
}

func TestOlderFileIsMigrated(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Append(flips(5))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var done []string
	steps := []migration{
		toSchema3,
		func(tx *bolt.Tx) error {
			done = append(done, "3 to 4")
			_, err := tx.CreateBucket([]byte("new in 4"))
			return err
		},
		func(tx *bolt.Tx) error {
			done = append(done, "4 to 5")
			return tx.DeleteBucket([]byte("new in 4"))
		},
	}
	for range 2 { // the second time there is nothing to do
		s = open(t, dir, func(o *Options) { o.migrations = steps })
		if got := len(queryAll(t, s, Query{})); got != 5 {
			t.Errorf("%d transitions", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(done, ", "); got != "3 to 4, 4 to 5" {
		t.Errorf("migrations: %s", got)
	}
	refused(t, dir, Options{}, ErrVersion, "newer hdsd", "schema 5, this one knows 3", "upgrade hdsd")
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Append(flips(5))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no room")
	steps := []migration{
		toSchema3,
		func(tx *bolt.Tx) error { return tx.DeleteBucket(transitions) },
		func(*bolt.Tx) error { return failure },
	}
	refused(t, dir, Options{migrations: steps}, failure, "from schema 4", "the file is as it was")
	if got := len(queryAll(t, open(t, dir), Query{})); got != 5 {
		t.Errorf("%d transitions", got)
	}
}

func TestOtherFiles(t *testing.T) {
	foreign := func(path string) error {
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			return err
		}
		err = db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		return errors.Join(err, db.Close())
	}
	write := func(b []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, b, 0o600) }
	}
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"empty":                {write(nil), "not a bbolt database"},
		"text":                 {write([]byte("hello")), "not a bbolt database"},
		"long text":            {write(bytes.Repeat([]byte("hello\n"), 10_000)), "not a bbolt database"},
		"another bbolt file":   {foreign, "not a history of hdsd"},
		"an empty bbolt file":  {func(p string) error { db, err := bolt.Open(p, 0o600, nil); return errors.Join(err, db.Close()) }, "not a history"},
		"zeros in place of it": {write(make([]byte, 1<<16)), "not a bbolt database"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, fileName)); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, Options{}, ErrDamaged, c.says, "restore a backup", "move the file away")
		})
	}
}

func TestUnfinishedFileIsBegunAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName+".new"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	s.Append(flips(1))
	flush(t, s)
	if _, err := os.Stat(filepath.Join(dir, fileName+".new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the unfinished file is still there:", err)
	}
}
