package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/store"
)

// restorerVariable has the child restore copies, one after the other.
const restorerVariable = "HDSD_CRASH_RESTORER"

// Two histories that take each other's place, by how many transitions they have.
var histories = map[string]int{"a.db": 200, "b.db": 300}

// restorer puts copies in place without end; it prints each that is.
func restorer(dir string) error {
	out := json.NewEncoder(os.Stdout)
	for {
		for _, name := range []string{"a.db", "b.db"} {
			done, err := store.Restore(context.Background(), filepath.Join(dir, "data"), filepath.Join(dir, name), store.RestoreOptions{})
			if err != nil {
				return err
			}
			if err := out.Encode(done.Transitions); err != nil {
				return err
			}
		}
	}
}

// TestKill9WhileRestoring kills a restore at random moments. There is always a
// history, whole, and it is the last that was said to be restored or the next;
// so are those that were kept.
func TestKill9WhileRestoring(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for name, count := range histories {
		writeCopy(t, filepath.Join(dir, name), count)
	}
	data := filepath.Join(dir, "data")
	if _, err := store.Restore(t.Context(), data, filepath.Join(dir, "b.db"), store.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	between := 0
	for round := range 12 {
		last := killCounting(t, restorerVariable, dir, 0, 1+random.IntN(3), time.Duration(random.IntN(25_000))*time.Microsecond)
		s, err := store.Open(t.Context(), data, store.Options{OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		there := len(all(t, s))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		other := histories["a.db"] + histories["b.db"] - last
		if there != last && there != other {
			t.Fatalf("round %d, seed %d: %d were restored, %d are there", round, seed, last, there)
		}
		if there == other {
			between++
		}
		wantKept(t, data)
	}
	t.Logf("killed %d times after the next was in place and before that was said", between)
}

// wantKept wants each history that was kept to be whole, and clears them away.
func wantKept(t *testing.T, data string) {
	t.Helper()
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(data, e.Name())
		if !strings.HasPrefix(e.Name(), "hdsd.db.2") {
			continue // the history itself, and one that was not finished
		}
		about, err := store.Examine(t.Context(), path)
		if err != nil || about.Rows != nil || about.Transitions != 200 && about.Transitions != 300 {
			t.Errorf("kept: %+v, %v", about, err)
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func writeCopy(t *testing.T, path string, count int) {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range count {
		s.Append([]health.Transition{transition(n)})
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	if err := s.Backup(&copied); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, s *store.Store) []health.Transition {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	found, _, err := s.Transitions(store.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
