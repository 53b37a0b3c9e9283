//go:build !race || soak

package store

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSalvageOfAnything: whatever is cut off or changed, a salvage makes a good history
// without a wrong value, or refuses and leaves everything as it is.
func TestSalvageOfAnything(t *testing.T) {
	f := newSaved(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	used := len(bytes.TrimRight(f.file, "\x00"))
	made, kept := 0, 0
	for round := range 60 {
		bad := bytes.Clone(f.file)
		switch round % 3 {
		case 0:
			bad = bad[:random.IntN(used)]
		case 1:
			for range 1 + random.IntN(4) {
				bad[random.IntN(used)] ^= byte(1 + random.IntN(255))
			}
		case 2: // pages
			for range 1 + random.IntN(3) {
				at := random.IntN(used/os.Getpagesize()) * os.Getpagesize()
				clear(bad[at:min(at+os.Getpagesize(), used)])
			}
		}
		if s, done := salvaged(t, bad); s != nil {
			stale := strings.Contains(strings.Join(done.Lost, " "), "the last transaction")
			made, kept = made+1, kept+f.wantNothingElse(t, s, stale)
		}
		if t.Failed() {
			t.Fatalf("round %d, seed %d", round, seed)
		}
	}
	t.Logf("seed %d: of 60 files, %d were salvaged with %d of 600 transitions each", seed, made, kept/max(made, 1))
	if made < 40 || kept < 100*made {
		t.Errorf("of 60 files, only %d were salvaged with %d transitions", made, kept)
	}
}
