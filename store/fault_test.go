package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// smallFile returns a database with a few pages of everything.
func smallFile(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	for _, some := range [][]health.Transition{flips(150), flips(100)} {
		s.Append(some)
		s.intake.savePlan(map[string][]health.Hash{"checker-1": make([]health.Hash, len(some)), "checker-2": {1, 2}})
		s.rememberClusters([]string{"seen"})
		s.intake.saveFreeze(&log.Freeze{Reason: "why", Author: "alice", Held: map[health.Hash]health.Status{1: health.Healthy}})
		s.intake.saveOverrides(map[health.Endpoint]*log.Override{{Cluster: "seen"}: {Scope: health.Endpoint{Cluster: "seen"}, Reason: "why"}})
		s.intake.saveVoted(map[health.Hash]*health.Verdict{1: {Status: health.Healthy}, 2: {}})
		flush(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return content(t, dir)
}

// survive opens and uses a file that may be damaged in any way. That must end, and fail
// only by the promised errors. It reports whether the file could be opened.
func survive(t testing.TB, dir string) bool {
	t.Helper()
	before := content(t, dir)
	s, err := Open(t.Context(), dir, Options{mapSize: 1, LockTimeout: 10 * time.Second})
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			t.Fatal("unclear error:", err)
		}
		if !bytes.Equal(before, content(t, dir)) {
			t.Fatal("a refused file has changed:", err)
		}
		return false
	}
	for _, err := range use(s) {
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal("unclear error:", err)
		}
	}
	s.Append(flips(30))
	s.intake.savePlan(map[string][]health.Hash{"checker-1": nil})
	_ = s.Close() // may not have been able to write
	return true
}

func use(s *Store) []error {
	_, state := s.State()
	_, _, all := s.Transitions(Query{})
	_, _, some := s.Transitions(Query{Address: "10.0.0.1:80", NewestFirst: true})
	return []error{state, all, some, s.Check(), s.Backup(&bytes.Buffer{})}
}

func folderWith(t testing.TB, file []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTruncatedFile(t *testing.T) {
	file := smallFile(t)
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 15, 16, 80, 1024, 4095, 4096, 4097, 8192, 12288, len(file) / 2}
	for range 20 {
		sizes = append(sizes, random.IntN(len(file)/2))
	}
	for _, size := range sizes {
		if survive(t, folderWith(t, file[:size])) {
			t.Errorf("%d of %d bytes were taken for a whole file", size, len(file))
		}
	}
}

func TestFlippedBytes(t *testing.T) {
	file := smallFile(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	used := len(bytes.TrimRight(file, "\x00"))
	opened := 0
	for range 80 {
		bad := bytes.Clone(file)
		for range 1 + random.IntN(4) {
			bad[random.IntN(used)] ^= byte(1 + random.IntN(255))
		}
		if survive(t, folderWith(t, bad)) {
			opened++
		}
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
	t.Logf("seed %d: %d of 80 could be opened", seed, opened)
}

// TestDamagedValues: a damaged value is skipped, reported and counted, and the rest is
// there.
func TestDamagedValues(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Append(flips(10))
	s.intake.savePlan(map[string][]health.Hash{"a": {1}, "b": {2}})
	flush(t, s)
	edit(t, s, func(tx *bolt.Tx) error {
		for _, bucket := range [][]byte{transitions, current, plan} {
			rows := tx.Bucket(bucket)
			k, v := rows.Cursor().First()
			bad := bytes.Clone(v)
			bad[len(bad)/2]++
			if err := rows.Put(k, bad); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var reported errorLog
	s = open(t, dir, func(o *Options) { o.OnError = reported.add })
	for range 2 {
		if diff := cmp.Diff(flips(10)[1:], queryAll(t, s, Query{})); diff != "" {
			t.Error(diff)
		}
		if got := stateOf(t, s); len(got.Current) != 9 || len(got.Plan) != 1 {
			t.Errorf("current health of %d endpoints, plan of %d checkers", len(got.Current), len(got.Plan))
		}
	}
	if got := s.Stats().Skipped; got != 3 || len(reported.all) != 3 || !reported.has(ErrSkipped) {
		t.Errorf("%d counted; reported: %v", got, reported.all)
	}
	if err := s.Check(); !errors.Is(err, ErrDamaged) {
		t.Error("Check:", err)
	}
}

// TestCircleOfPages makes each branch its own child, which bbolt would follow
// until the stack overflows.
func TestCircleOfPages(t *testing.T) {
	const branch = 1 // flag
	file := smallFile(t)
	size := os.Getpagesize()
	for at := 2 * size; at+size <= len(file); at += size {
		if p := file[at : at+size]; binary.NativeEndian.Uint16(p[8:]) == branch {
			copy(p[pageHead+8:], p[:8])
		}
	}
	refused(t, folderWith(t, file), Options{}, ErrDamaged, "used twice")
}

// TestFileCutOffWhileOpen: reading a mapped page that is gone is a fault,
// which must not end the process.
func TestFileCutOffWhileOpen(t *testing.T) {
	dir := folderWith(t, smallFile(t))
	var reported errorLog
	s := open(t, dir, func(o *Options) { o.OnError = reported.add })
	if err := os.Truncate(filepath.Join(dir, fileName), int64(3*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Transitions(Query{}); !errors.Is(err, ErrDamaged) {
		t.Error("query:", err)
	}
	s.Append(flips(10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Flush(ctx); err == nil {
		t.Error("flushed to nowhere")
	}
	if err := s.Close(); !errors.Is(err, ErrDamaged) {
		t.Error("close:", err)
	}
	if !reported.has(ErrDamaged) {
		t.Error("reported:", reported.all)
	}
}

// TestFullDisk: callers never wait, and the queue drops and reports what is too much. When
// there is room again, the rest is written, and the health of what was dropped too.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var reported errorLog
	failed := make(chan struct{}, 1000)
	s := open(t, dir, func(o *Options) {
		o.OnError = func(err error) { reported.add(err); failed <- struct{}{} }
		o.MaxPending, o.maxSize = 100, 256<<10
	})
	s.Append(flips(100))
	flush(t, s)
	s.intake.savePlan(map[string][]health.Hash{"big": make([]health.Hash, 100_000)})
	<-failed // the plan does not fit, and is tried again and again
	if s.Stats().LastError == nil {
		t.Error("no error in the figures")
	}
	lost := flip(endpoint("lost", "a", "x"), 200)
	kept := flips(100)
	s.Append([]health.Transition{lost})
	s.Append(kept)
	for !reported.has(ErrDropped) {
		<-failed
	}
	// It waits for the writer, so nobody else reads the field.
	edit(t, s, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	flush(t, s)
	stats := s.Stats()
	if stats.Dropped == 0 || stats.LastError != nil || stats.Pending != 0 || stats.Committed != 201-stats.Dropped {
		t.Errorf("%+v", stats)
	}
	if got := len(queryAll(t, s, Query{})); got != int(stats.Committed) {
		t.Errorf("%d transitions, %d were committed", got, stats.Committed)
	}
	now := stateOf(t, s)
	if v := now.Current[lost.Endpoint.Hash()]; v.Reason != lost.Reason {
		t.Errorf("health of the dropped: %+v", v)
	}
	if v := now.Current[kept[99].Endpoint.Hash()]; v.Reason != kept[99].Reason {
		t.Errorf("health of the kept: %+v", v)
	}
	if len(now.Plan["big"]) != 100_000 {
		t.Error("the plan is missing")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestAGroupThatDoesNotFit: where a large group does not fit on the disk, smaller ones do. What
// was put back is written in order, behind what was written of the group.
func TestAGroupThatDoesNotFit(t *testing.T) {
	var reported errorLog
	s := open(t, t.TempDir(), func(o *Options) { o.OnError, o.maxSize = reported.add, 256<<10 })
	const count = 3000
	all := flips(count)
	s.Append(all)
	err := s.intake.wait(t.Context(), func() bool { return s.intake.stat.Committed > 0 })
	if err != nil || len(reported.all) == 0 {
		t.Fatal(err, reported.all)
	}
	edit(t, s, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	flush(t, s)
	if stats := s.Stats(); stats.Committed != count || stats.Pending != 0 || stats.LastError != nil {
		t.Errorf("%+v", stats)
	}
	if diff := cmp.Diff(all, queryAll(t, s, Query{})); diff != "" {
		t.Error(diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestANewHistoryOnAFullDisk is refused, and leaves nothing behind that a later start would
// take for one.
func TestANewHistoryOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, Options{maxSize: 4096}); err == nil || !strings.Contains(err.Error(), "free disk space, or choose another data_dir") {
		t.Error(err)
	}
	open(t, dir)
}

func TestCloseOnFullDisk(t *testing.T) {
	var reported errorLog
	s := open(t, t.TempDir(), func(o *Options) { o.OnError, o.maxSize = reported.add, 32<<10 })
	s.Append(flips(1000))
	if err := s.Close(); err == nil || len(reported.all) == 0 {
		t.Errorf("%v; reported: %v", err, reported.all)
	}
	if err := s.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error("flush:", err)
	}
}

func TestBackup(t *testing.T) {
	s := open(t, t.TempDir())
	s.Append(flips(20))
	s.rememberClusters([]string{"seen"})
	flush(t, s)
	var copied bytes.Buffer
	if err := s.Backup(&copied); err != nil {
		t.Fatal(err)
	}
	s.Append(flips(1))
	restored := open(t, folderWith(t, copied.Bytes()))
	if diff := cmp.Diff(flips(20), queryAll(t, restored, Query{})); diff != "" || !restored.KnownCluster("seen") {
		t.Error(diff)
	}
	failure := errors.New("pipe is broken")
	if err := s.Backup(failing{failure}); !errors.Is(err, failure) && err == nil {
		t.Error("to a broken pipe:", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Sizes in a bbolt file: the header of a page, and the part of a meta page that its
// checksum covers.
const (
	pageHead   = 16
	metaSummed = 56
)

// signMetas gives both meta pages right checksums.
func signMetas(file []byte) {
	for _, at := range []int{0, os.Getpagesize()} {
		m, sum := file[at+pageHead:], fnv.New64a()
		_, _ = sum.Write(m[:metaSummed])
		binary.NativeEndian.PutUint64(m[metaSummed:], sum.Sum64())
	}
}

// FuzzOpen changes bytes of a small file, five bytes of edits each: where (4)
// and by what (1). With signed, the first pages get right checksums again.
func FuzzOpen(f *testing.F) {
	file := smallFile(f)
	edit := func(at uint32, by byte) []byte { return append(binary.BigEndian.AppendUint32(nil, at), by) }
	f.Add([]byte{}, false)
	for at := range 3 { // numbers of the root, of the list of free pages, of pages
		f.Add(append(edit(uint32(pageHead+16+16*at), 1), edit(uint32(4096+pageHead+16+16*at), 1)...), true)
	}
	for at := 2; at < 16; at++ { // kind of page, place of its first row
		f.Add(append(edit(uint32(at*4096+8), 3), edit(uint32((at+20)*4096+pageHead), 1)...), false)
	}
	f.Fuzz(func(t *testing.T, edits []byte, signed bool) {
		bad := bytes.Clone(file)
		for ; len(edits) >= 5; edits = edits[5:] {
			bad[binary.BigEndian.Uint32(edits)%uint32(len(bad))] ^= edits[4]
		}
		if signed {
			signMetas(bad)
		}
		survive(t, folderWith(t, bad))
	})
}
