package store

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// TestFleet: the cursor is on disk with SetFleet, survives a restart, and ends with an empty fleet.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	reopen := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
	}
	wantCursor(t, s, Cursor{})
	s.Apply(&log.Entry{Transitions: flips(3)})
	reopen()
	wantCursor(t, s, Cursor{}) // of a single coordinator
	for _, step := range []struct {
		fleet  string
		cursor uint64
	}{{"a", 7}, {"a", 5}, {"b", 1 << 63}, {"", 0}} {
		setFleet(t, s, step.fleet, step.cursor)
		wantCursor(t, s, Cursor{Fleet: step.fleet, Sequence: step.cursor})
		reopen()
		wantCursor(t, s, Cursor{Fleet: step.fleet, Sequence: step.cursor})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.SetFleet(t.Context(), "a", 1); !errors.Is(err, ErrClosed) {
		t.Error("after the end:", err)
	}
}

// TestDiverges: what is not in the log of the fleet marks the database, in the same transaction.
func TestDiverges(t *testing.T) {
	for name, use := range map[string]func(*Store){
		"an entry":    func(s *Store) { s.Apply(&log.Entry{Trust: &log.TrustChange{Checker: "c"}}) },
		"transitions": func(s *Store) { s.Append(flips(1)) },
		"after another": func(s *Store) {
			s.Follow([]*log.Entry{{Transitions: flips(9)}}, 8, Records{})
			s.Apply(&log.Entry{Transitions: flips(2)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			setFleet(t, s, fleetName, 7)
			s.AppendEvents([]Event{{Time: day, Text: "is of this replica"}})
			flush(t, s)
			wantCursor(t, s, Cursor{Fleet: fleetName, Sequence: 7})
			use(s)
			want := Cursor{Fleet: fleetName, Sequence: max(7, s.intake.fleet.sequence), Diverged: true}
			for range 2 {
				flush(t, s)
				wantCursor(t, s, want)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, dir)
				wantCursor(t, s, want)
			}
			s.Follow([]*log.Entry{{Transitions: flips(4)}}, 9, Records{})
			flush(t, s)
			wantCursor(t, s, Cursor{Fleet: fleetName, Sequence: 9, Diverged: true})
			setFleet(t, s, "new", 3)
			wantCursor(t, s, Cursor{Fleet: "new", Sequence: 3})
		})
	}
}

// TestAnOlderReleaseIsNoticed: a release that knows no fleets keeps the cursor, and appends transitions.
func TestAnOlderReleaseIsNoticed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	setFleet(t, s, fleetName, 7)
	s.Follow([]*log.Entry{{Transitions: flips(4)}}, 8, Records{})
	flush(t, s)
	s.intake.fleet.joined.Store(false)
	s.Append(flips(6)[4:])
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantCursor(t, open(t, dir), Cursor{Fleet: fleetName, Sequence: 8, Diverged: true})
}

// TestADamagedCursor is one of a lost fleet.
func TestADamagedCursor(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	setFleet(t, s, fleetName, 7)
	edit(t, s, func(tx *bolt.Tx) error {
		row := bytes.Clone(tx.Bucket(header).Get(fleetKey))
		row[3]++
		return tx.Bucket(header).Put(fleetKey, row)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var reported error
	s = open(t, dir, func(o *Options) { o.OnError = func(err error) { reported = err } })
	wantCursor(t, s, Cursor{Diverged: true})
	if !errors.Is(reported, ErrSkipped) {
		t.Error(reported)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	wantCursor(t, open(t, dir), Cursor{Diverged: true})
}

// TestSalvageDiverges only if something is lost.
func TestSalvageDiverges(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		dir := t.TempDir()
		s := open(t, dir)
		setFleet(t, s, fleetName, 7)
		s.Follow([]*log.Entry{{Transitions: flips(4), Plan: map[string][]health.Hash{"c": {1}}}}, 8, Records{})
		flush(t, s)
		if lossy {
			edit(t, s, func(tx *bolt.Tx) error {
				k, row := tx.Bucket(plan).Cursor().First()
				return tx.Bucket(plan).Put(k, append([]byte{9}, row...))
			})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Salvage(t.Context(), dir, ""); err != nil {
			t.Fatal(err)
		}
		wantCursor(t, open(t, dir), Cursor{Fleet: fleetName, Sequence: 8, Diverged: lossy})
	}
}

// TestRestoreOfAFleet: a backup has the cursor of its moment, and a single coordinator diverges from there.
func TestRestoreOfAFleet(t *testing.T) {
	s := open(t, t.TempDir())
	setFleet(t, s, fleetName, 7)
	s.Follow([]*log.Entry{{Transitions: flips(20)}}, 8, Records{Digest: 88})
	flush(t, s)
	var copied bytes.Buffer
	if err := s.Backup(&copied); err != nil {
		t.Fatal(err)
	}
	s.Follow([]*log.Entry{{Transitions: flips(21)[20:]}}, 9, Records{})
	dir, path := t.TempDir(), fileWith(t, copied.Bytes())
	want := Cursor{Fleet: fleetName, Sequence: 8, Digest: 88}
	if info, err := Examine(t.Context(), path); err != nil || info.Cursor != want {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := Restore(t.Context(), dir, path, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if found, err := CursorOf(t.Context(), dir); found != want || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	s = open(t, dir)
	wantCursor(t, s, want)
	if _, err := CursorOf(t.Context(), dir); !errors.Is(err, ErrLocked) {
		t.Error("of an open database:", err)
	}
	s.Apply(&log.Entry{Transitions: flips(21)[20:]})
	flush(t, s)
	want.Digest, want.Diverged = 0, true
	wantCursor(t, s, want)
}

// TestReplace: a replica takes the database of another one, with its cursor, and keeps its own.
func TestReplace(t *testing.T) {
	peer := open(t, t.TempDir())
	setFleet(t, peer, fleetName, 7)
	peer.Follow([]*log.Entry{{Transitions: flips(20)}}, 8, Records{})
	flush(t, peer)
	stream := func() io.Reader {
		t.Helper()
		file, err := peer.Copy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return struct{ io.Reader }{file}
	}
	dir := folderOf(t, 7)
	unchanged := func(err error, says string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) || len(in(t, dir)) != 1 || countIn(t, dir) != 7 {
			t.Errorf("%v; %v", err, in(t, dir))
		}
	}
	refusal := errors.New("of another fleet")
	_, err := Replace(t.Context(), dir, stream(), RestoreOptions{Accept: func(c *CopyInfo) error {
		if want := (Cursor{Fleet: fleetName, Sequence: 8}); c.Cursor != want {
			t.Errorf("the copy is at %+v", c.Cursor)
		}
		return refusal
	}})
	unchanged(err, "of another fleet")
	_, err = Replace(t.Context(), dir, io.LimitReader(stream(), 20_000), RestoreOptions{})
	if unchanged(err, "the received copy"); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	_, err = Replace(t.Context(), dir, io.MultiReader(io.LimitReader(stream(), 20_000), brokenStream{}), RestoreOptions{})
	unchanged(err, "the peer is gone")
	open := func(dir string) *Store { return open(t, dir) }
	s := open(dir)
	_, err = Replace(t.Context(), dir, stream(), RestoreOptions{})
	if !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	_ = s.Close()

	done, err := Replace(t.Context(), dir, stream(), onDay(RestoreOptions{}))
	if err != nil || !strings.HasSuffix(done.Kept, fileName+".20260102T030405Z") {
		t.Fatal(done, err)
	}
	if got := countIn(t, folderWith(t, read(t, done.Kept))); got != 7 {
		t.Errorf("%d transitions are kept", got)
	}
	s = open(dir)
	wantCursor(t, s, Cursor{Fleet: fleetName, Sequence: 8})
	s.Follow([]*log.Entry{{Transitions: flips(25)[20:]}}, 9, Records{})
	flush(t, s)
	if got := len(queryAll(t, s, Query{})); got != 25 {
		t.Errorf("%d transitions", got)
	}
}

// brokenStream is a stream that ends early.
type brokenStream struct{}

func (brokenStream) Read([]byte) (int, error) { return 0, errors.New("the peer is gone") }

// FuzzDecodeCursor: what can be read is written again as it was.
func FuzzDecodeCursor(f *testing.F) {
	f.Add(encodeCursor(Cursor{}, 0))
	f.Add(encodeCursor(Cursor{Fleet: fleetName, Sequence: 7, Digest: 77, Diverged: true}, 1<<62))
	f.Add(encodeCursor(Cursor{Fleet: fleetName, Sequence: 7}, 0)[:2+8+8+1+len(fleetName)])
	f.Fuzz(func(t *testing.T, row []byte) {
		c, recorded, ok := decodeCursor(row)
		if !ok {
			return
		}
		again, same, ok := decodeCursor(encodeCursor(c, recorded))
		if !ok || again != c || same != recorded {
			t.Errorf("%+v, %d; then %+v, %d, %v", c, recorded, again, same, ok)
		}
	})
}
