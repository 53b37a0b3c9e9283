package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// saved is a file, and everything that it answers.
type saved struct {
	file        []byte
	transitions map[string]health.Transition // by reason
	state       log.State
	endpoints   []health.Endpoint
	past        map[time.Time][]health.Verdict
}

// newSaved makes a file whose transitions have a reason each. Its list of buckets takes
// several pages, as that of a database in use does.
func newSaved(t testing.TB) *saved {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	f := &saved{transitions: map[string]health.Transition{}, past: map[time.Time][]health.Verdict{}}
	var all []health.Transition
	for i := range 5 {
		f.endpoints = append(f.endpoints, endpoint(fmt.Sprint("web-", i%2), "a", fmt.Sprintf("10.0.0.%d:80", i)))
	}
	for n := range 600 { // each endpoint goes up and down in turn
		tr := flip(f.endpoints[n%5], n)
		tr.From, tr.To = health.Status(1+n/5%2), health.Status(1+(n/5+1)%2)
		all = append(all, tr)
		f.transitions[tr.Reason] = tr
	}
	for len(all) > 0 {
		s.Append(all[:100])
		all = all[100:]
		s.intake.savePlan(map[string][]health.Hash{"checker-1": make([]health.Hash, 100)})
		s.intake.saveFreeze(&log.Freeze{Reason: strings.Repeat("why", 200), Author: "alice", Since: day})
		s.intake.saveTrust("checker-1", &log.Trust{Level: log.Trusted, Reason: strings.Repeat("why", 200), Since: day})
		for _, e := range f.endpoints {
			s.intake.saveOverrides(map[health.Endpoint]*log.Override{e: {Scope: e, Status: health.Draining, Reason: "why", Author: "ann", Since: day}})
		}
		s.intake.saveEstablished(map[string]*log.Established{"checker-1": {Seen: day}})
		flush(t, s)
	}
	f.state = stateOf(t, s)
	for n := range 60 {
		at := sec(float64(10*n) + 4.5)
		held, err := s.AsOf(f.endpoints, at)
		if err != nil {
			t.Fatal(err)
		}
		f.past[at] = held
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.file = content(t, dir)
	wantListInSeveralPages(t, dir)
	return f
}

// wantListInSeveralPages sees that a file has a list of buckets with branches.
func wantListInSeveralPages(t testing.TB, dir string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { // bbolt tells of pages only here
		list, err := tx.Page(int(tx.Cursor().Bucket().RootPage()))
		if err == nil && list.Type != "branch" {
			err = fmt.Errorf("the list of buckets is one page, a %s", list.Type)
		}
		return errors.Join(err, errors.New("change nothing"))
	})
	if err.Error() != "change nothing" {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// salvaged opens what a salvage of a file makes, or returns nil if it refuses to.
func salvaged(t testing.TB, file []byte) (*Store, SalvageResult) {
	t.Helper()
	dir := folderWith(t, file)
	done, err := Salvage(t.Context(), dir, "")
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			t.Fatal("unclear error:", err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 || !bytes.Equal(file, content(t, dir)) {
			t.Fatal("a file that cannot be salvaged has changed, or something is beside it:", err)
		}
		return nil, done
	}
	if kept, err := os.ReadFile(done.Kept); err != nil || !bytes.Equal(kept, file) {
		t.Error("the damaged file is not kept:", err)
	}
	s := open(t, dir)
	if err := s.Check(); err != nil {
		t.Fatal("what was salvaged is damaged:", err)
	}
	return s, done
}

// wantNothingElse sees that a store has no value that f had not.
func (f *saved) wantNothingElse(t testing.TB, s *Store, stale bool) (count int) {
	t.Helper()
	for _, tr := range queryAll(t, s, Query{}) {
		if !reflect.DeepEqual(f.transitions[tr.Reason], tr) {
			t.Fatalf("another transition: %+v", tr)
		}
		count++
	}
	now := stateOf(t, s)
	for hash, held := range now.Current {
		if !stale && !reflect.DeepEqual(f.state.Current[hash], held) {
			t.Errorf("another health: %+v", held)
		}
	}
	for checker, endpoints := range now.Plan {
		if !reflect.DeepEqual(f.state.Plan[checker], endpoints) {
			t.Errorf("another plan: %v", endpoints)
		}
	}
	for checker, said := range now.Trust {
		if f.state.Trust[checker] != said {
			t.Errorf("another trust: %+v", said)
		}
	}
	for _, o := range now.Overrides {
		if !slices.Contains(f.state.Overrides, o) {
			t.Errorf("another override: %+v", o)
		}
	}
	for at, want := range f.past {
		held, err := s.AsOf(f.endpoints, at)
		if err != nil {
			t.Fatal(err)
		}
		for i := range held {
			if !stale && held[i].Status != want[i].Status && held[i].Status != health.Unknown {
				t.Errorf("endpoint %d at %v: %+v, was %+v", i, at, held[i], want[i])
			}
		}
	}
	return count
}

// TestSalvageKeepsWhatIsGood: of a damaged leaf the rest is kept, and where transitions are
// lost there is a gap.
func TestSalvageKeepsWhatIsGood(t *testing.T) {
	f := newSaved(t)
	bad := bytes.Clone(f.file)
	lost := flip(f.endpoints[0], 300).Reason
	for at := bytes.Index(bad, []byte(lost)); at >= 0; at = bytes.Index(bad, []byte(lost)) {
		bad[at]++ // in its row, and in old ones
	}
	s, done := salvaged(t, bad)
	if s == nil {
		t.Fatal("not salvaged")
	}
	if count := f.wantNothingElse(t, s, false); count != 599 || done.Transitions != 599 || !reflect.DeepEqual(done.Lost, []string{"1 row of transitions"}) {
		t.Errorf("%d transitions; %+v", count, done)
	}
	if now := stateOf(t, s); !reflect.DeepEqual(now, f.state) {
		t.Errorf("state: %+v", now)
	}
	if got := heldAt(t, s, f.endpoints[0], sec(302)); got.Status != health.Healthy && got.Status != health.Unhealthy || !strings.Contains(got.Reason, "the database was damaged") {
		t.Errorf("behind what is lost: %+v", got)
	}
	if all, err := s.Gaps(Query{}, ""); err != nil || len(all) != 1 || all[0].Start.After(sec(300)) || all[0].End.Before(sec(300)) {
		t.Errorf("%v, %v", all, err)
	}
}

// TestSalvageStaysFrozen: a freeze that is damaged holds, as it does at a start.
func TestSalvageStaysFrozen(t *testing.T) {
	f := newSaved(t)
	dir := folderWith(t, f.file)
	s := open(t, dir)
	edit(t, s, func(tx *bolt.Tx) error {
		v := bytes.Clone(tx.Bucket(freeze).Get(freezeKey))
		v[0]++
		return tx.Bucket(freeze).Put(freezeKey, v)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, done := salvaged(t, content(t, dir))
	if got := stateOf(t, s).Freeze; got == nil || !strings.Contains(got.Reason, "damaged") || !done.Frozen {
		t.Errorf("%+v, %+v", got, done)
	}
}

// TestSalvageOfACopy takes a damaged copy in place of the history in the folder.
func TestSalvageOfACopy(t *testing.T) {
	f := newSaved(t)
	bad := bytes.Clone(f.file)
	clear(bad[:2*os.Getpagesize()])
	from := filepath.Join(folderWith(t, bad), fileName)
	dir := t.TempDir()
	for range 2 {
		if _, err := Salvage(t.Context(), dir, from); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	if count := f.wantNothingElse(t, s, true); count < 500 {
		t.Errorf("%d transitions", count)
	}
	if _, err := Salvage(t.Context(), dir, ""); !errors.Is(err, ErrLocked) {
		t.Error("while hdsd runs:", err)
	}
}

// FuzzSalvage is FuzzOpen for a salvage.
func FuzzSalvage(f *testing.F) {
	was := newSaved(f)
	f.Add([]byte{}, uint32(0), false)
	for at := range 12 {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(at*4096+20)), 1), uint32(at*4096), at%2 == 0)
	}
	f.Fuzz(func(t *testing.T, edits []byte, cut uint32, signed bool) {
		bad := bytes.Clone(was.file)
		for ; len(edits) >= 5; edits = edits[5:] {
			bad[binary.BigEndian.Uint32(edits)%uint32(len(bad))] ^= edits[4]
		}
		if signed {
			signMetas(bad)
		}
		if s, _ := salvaged(t, bad[:len(bad)-int(cut)%len(bad)]); s != nil {
			was.wantNothingElse(t, s, true)
			_ = s.Close()
		}
	})
}
