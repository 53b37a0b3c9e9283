package crash

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"hdsd/log"
	"hdsd/store"
)

// upgraderVariable tells the child to upgrade databases of schema 2.
const upgraderVariable = "HDSD_CRASH_UPGRADER"

// upgrader puts an old database in place and opens it, without end. It prints how
// often it did.
func upgrader(dir string) error {
	old, err := os.ReadFile(filepath.Join(dir, "old.db"))
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for n := 1; ; n++ {
		file := filepath.Join(dir, "data", "hdsd.db")
		if err := errors.Join(os.WriteFile(file+".old", old, 0o600), os.Rename(file+".old", file)); err != nil {
			return err
		}
		if err := out.Encode(n); err != nil {
			return err
		}
		s, err := store.Open(context.Background(), filepath.Join(dir, "data"), store.Options{})
		if err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}

// TestKill9WhileUpgrading kills an upgrade at random moments. The next start finds
// everything that the old database had.
func TestKill9WhileUpgrading(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	old := unpacked(t, filepath.Join("..", "..", "store", "testdata", "schema2.db.gz"))
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(dir, "old.db"), old, 0o600),
		os.WriteFile(filepath.Join(data, "hdsd.db"), old, 0o600)); err != nil {
		t.Fatal(err)
	}
	want := stateIn(t, data)
	if want.Freeze == nil || len(want.Overrides) != 2 || len(want.Trust) != 2 || len(want.Trials) != 2 || len(want.Voted) != 2 {
		t.Fatalf("the old database has %+v", want)
	}
	for round := range 20 {
		killCounting(t, upgraderVariable, dir, 0, 1+random.IntN(3), time.Duration(random.IntN(8_000))*time.Microsecond)
		if diff := gocmp.Diff(want, stateIn(t, data)); diff != "" {
			t.Fatalf("round %d, seed %d: %s", round, seed, diff)
		}
	}
}

func stateIn(t *testing.T, data string) log.State {
	t.Helper()
	s, err := store.Open(t.Context(), data, store.Options{OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.State()
	if err := errors.Join(err, s.Check(), s.Close()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found.Overrides, func(a, b log.Override) int { return cmp.Compare(a.Scope.Cluster, b.Scope.Cluster) })
	return found
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
