package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

// copyOf writes a copy of a history of so many transitions.
func copyOf(t testing.TB, count int, change ...func(*Options)) string {
	t.Helper()
	s := open(t, t.TempDir(), change...)
	s.Append(flips(count))
	flush(t, s)
	var copied bytes.Buffer
	if err := s.Backup(&copied); err != nil {
		t.Fatal(err)
	}
	return fileWith(t, copied.Bytes())
}

func fileWith(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// folderOf makes a history of so many transitions, which nobody has open.
func folderOf(t testing.TB, count int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	s.Append(flips(count))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func countIn(t testing.TB, dir string) int {
	t.Helper()
	s := open(t, dir)
	defer s.Close()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	return len(queryAll(t, s, Query{}))
}

// in lists a folder.
func in(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func onDay(r RestoreOptions) RestoreOptions {
	r.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }
	return r
}

func TestRestore(t *testing.T) {
	dir, from := folderOf(t, 7), copyOf(t, 20)
	var seen, whole int64
	done, err := Restore(t.Context(), dir, from, onDay(RestoreOptions{Progress: func(done, size int64) { seen, whole = done, size }}))
	if err != nil {
		t.Fatal(err)
	}
	const dated = fileName + ".20260102T030405Z"
	want := RestoreResult{
		CopyInfo: CopyInfo{Bytes: whole, Transitions: 20, Clusters: 3, First: flips(1)[0].Time, Last: flips(20)[19].Time},
		Path:     filepath.Join(dir, fileName), Kept: filepath.Join(dir, dated),
	}
	if diff := cmp.Diff(want, done); diff != "" || seen != whole || whole == 0 {
		t.Errorf("%d of %d bytes read; %s", seen, whole, diff)
	}
	if got := countIn(t, dir); got != 20 {
		t.Errorf("%d transitions", got)
	}
	if got := countIn(t, folderWith(t, read(t, done.Kept))); got != 7 {
		t.Errorf("%d transitions are kept", got)
	}

	// Back again within the same second, then into an empty folder.
	done, err = Restore(t.Context(), dir, done.Kept, onDay(RestoreOptions{}))
	if got := countIn(t, dir); got != 7 || err != nil || filepath.Base(done.Kept) != dated+"-2" {
		t.Errorf("%d transitions, the others in %s; %v", got, done.Kept, err)
	}
	empty := filepath.Join(t.TempDir(), "new", "folder")
	done, err = Restore(t.Context(), empty, from, RestoreOptions{})
	if got := countIn(t, empty); got != 20 || err != nil || done.Kept != "" {
		t.Errorf("%d transitions, %+v, %v", got, done, err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spoil changes a copy.
func spoil(t testing.TB, path string, change func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func spoilRow(tx *bolt.Tx) error {
	k, v := tx.Bucket(transitions).Cursor().First()
	bad := bytes.Clone(v)
	bad[len(bad)/2]++
	return tx.Bucket(transitions).Put(k, bad)
}

func TestRestoreRefuses(t *testing.T) {
	good := read(t, copyOf(t, 200))
	foreign, spoiled := filepath.Join(t.TempDir(), "foreign.db"), fileWith(t, good)
	spoil(t, foreign, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
	spoil(t, spoiled, spoilRow)
	newSchema := copyOf(t, 5, func(o *Options) {
		o.migrations = []migration{toSchema3, func(*bolt.Tx) error { return nil }}
	})
	newFormat := bytes.Clone(good)
	for _, at := range []int{0, os.Getpagesize()} { // of each first page
		binary.NativeEndian.PutUint32(newFormat[at+pageHead+4:], 99)
	}
	signMetas(newFormat)
	for name, c := range map[string]struct {
		from   string
		target error
		says   string
	}{
		"nothing":             {filepath.Join(t.TempDir(), "none.db"), os.ErrNotExist, "none.db"},
		"a folder":            {t.TempDir(), nil, "is no file that 'hdsd backup' has written"},
		"an empty file":       {fileWith(t, nil), ErrDamaged, "not a bbolt database"},
		"text":                {fileWith(t, bytes.Repeat([]byte("hello\n"), 10_000)), ErrDamaged, "not a bbolt database"},
		"another database":    {foreign, ErrDamaged, "not a history of hdsd"},
		"half a copy":         {fileWith(t, good[:len(good)/2]), ErrDamaged, "cut off"},
		"a copy less a page":  {fileWith(t, good[:len(good)-os.Getpagesize()]), ErrDamaged, "cut off"},
		"a damaged row":       {spoiled, ErrDamaged, "1 row of transitions"},
		"of a newer schema":   {newSchema, ErrVersion, "schema 4, this one knows 3"},
		"of a newer bbolt":    {fileWith(t, newFormat), ErrVersion, "use the hdsd that wrote it"},
		"zeros in the middle": {fileWith(t, slices.Concat(good[:len(good)/3], make([]byte, len(good)/3), good[len(good)/3*2:])), ErrDamaged, "take another copy"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, none := folderOf(t, 7), t.TempDir()
			before := content(t, dir)
			_, err := Restore(t.Context(), dir, c.from, RestoreOptions{})
			if err == nil || c.target != nil && !errors.Is(err, c.target) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.from) {
				t.Errorf("says %v, want %v with %q", err, c.target, c.says)
			}
			if !bytes.Equal(before, content(t, dir)) {
				t.Error("the history has changed")
			}
			if _, err := Restore(t.Context(), none, c.from, RestoreOptions{}); err == nil {
				t.Error("taken where nothing was")
			}
			if left := slices.Concat(in(t, dir), in(t, none)); !slices.Equal(left, []string{fileName}) {
				t.Error("left behind:", left)
			}
		})
	}
	dir := folderOf(t, 7)
	done, err := Restore(t.Context(), dir, spoiled, RestoreOptions{AcceptDamaged: true})
	if !errors.Is(done.Rows, ErrDamaged) || err != nil {
		t.Errorf("a damaged row that is accepted: %v, %v", done.Rows, err)
	}
	s := open(t, dir, func(o *Options) { o.OnError = func(error) {} })
	if got := len(queryAll(t, s, Query{})); got != 199 {
		t.Errorf("%d transitions", got)
	}
	if _, err := Restore(t.Context(), dir, filepath.Join(dir, fileName), RestoreOptions{}); !errors.Is(err, ErrLocked) {
		t.Error("itself, while open:", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Restore(t.Context(), dir, filepath.Join(dir, fileName), RestoreOptions{}); err == nil || !strings.Contains(err.Error(), "the history itself") {
		t.Error("itself:", err)
	}
}

func TestRestoreWhileOpen(t *testing.T) {
	dir, from := t.TempDir(), copyOf(t, 20)
	s := open(t, dir)
	if _, err := Restore(t.Context(), dir, from, RestoreOptions{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "stop the other hdsd") {
		t.Error("while open:", err)
	}
	s.Append(flips(3))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Restore(ctx, dir, copyOf(t, 500), RestoreOptions{Progress: func(done, size int64) {
		if cancel(); done == size {
			t.Error("read in one go: too small for this test")
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, err = Restore(ctx, dir, from, RestoreOptions{Progress: func(done, size int64) {
		if done == size {
			cancel()
		}
	}})
	if got := countIn(t, dir); !errors.Is(err, context.Canceled) || got != 3 {
		t.Errorf("cancelled when it was read: %v, %d transitions", err, got)
	}
	if got := in(t, dir); !slices.Equal(got, []string{fileName}) {
		t.Error("left behind:", got)
	}
}

// FuzzRestore changes bytes of a copy as FuzzOpen does, and truncates it. Restore accepts
// only a whole copy, and else leaves the history as it was.
func FuzzRestore(f *testing.F) {
	file := smallFile(f)
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{}, uint32(5000))
	for at := range 40 {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(at*1021)), 3), uint32(0))
	}
	history := content(f, folderOf(f, 7))
	f.Fuzz(func(t *testing.T, edits []byte, cut uint32) {
		bad := bytes.Clone(file)[:len(file)-int(cut)%len(file)]
		for ; len(edits) >= 5; edits = edits[5:] {
			bad[binary.BigEndian.Uint32(edits)%uint32(len(bad))] ^= edits[4]
		}
		dir := folderWith(t, history)
		if _, err := Restore(t.Context(), dir, fileWith(t, bad), RestoreOptions{}); err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Error("unclear error:", err)
			}
			if !bytes.Equal(history, content(t, dir)) || len(in(t, dir)) != 1 {
				t.Error("refused, but not without a trace:", in(t, dir), err)
			}
			return
		}
		if countIn(t, dir); len(in(t, dir)) != 2 {
			t.Error("there is", in(t, dir))
		}
	})
}
