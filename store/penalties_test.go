package store

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

// TestPenaltiesAreKept over a kill: what is in the file while the store is open is found.
func TestPenaltiesAreKept(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	s := open(t, dir)
	if found := stateOf(t, s).Penalties; len(found) > 0 {
		t.Errorf("at first: %v", found)
	}
	s.intake.savePenalties(map[health.Hash]*log.Penalty{1: {Value: 1000, At: day}, 1 << 63: {Value: 2500.5, At: day, Suppressed: true}, 3: {Value: 1, At: day}})
	s.intake.savePenalties(map[health.Hash]*log.Penalty{3: nil, 4: nil})
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, fileName))
	if err == nil {
		err = os.WriteFile(filepath.Join(killed, fileName), file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, killed)
	want := map[health.Hash]log.Penalty{1: {Value: 1000, At: day}, 1 << 63: {Value: 2500.5, At: day, Suppressed: true}}
	if diff := cmp.Diff(want, stateOf(t, s).Penalties); diff != "" {
		t.Error(diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestImpossiblePenalties would hold an endpoint for ever.
func TestImpossiblePenalties(t *testing.T) {
	for _, value := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if p, ok := decodePenalty(marshal(&storev1.Penalty{Value: value, At: timestamp(day)})); ok {
			t.Errorf("%v is read as %v", value, p)
		}
	}
}
