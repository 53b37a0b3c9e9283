package rendezvous_test

import (
	"fmt"
	"math"
	"testing"

	"hdsd/assign/internal/rendezvous"
)

// TestHash pins hashes that stored plans rely on.
func TestHash(t *testing.T) {
	if got, want := rendezvous.Hash("a", "bc"), uint64(0xea1cc672b17a5c99); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
	if rendezvous.Hash("a", "bc") == rendezvous.Hash("ab", "c") {
		t.Error("names run into each other")
	}
}

// TestCompare lets weights of 1 to 4 win about in proportion.
func TestCompare(t *testing.T) {
	const rounds = 20_000
	hashes, wins := make([]uint64, 4), make([]int, 4)
	for i := range hashes {
		hashes[i] = rendezvous.Hash(fmt.Sprint(i))
	}
	for n := range rounds {
		round, best := rendezvous.Hash("round", fmt.Sprint(n)), 0
		for i := range hashes {
			x, y := rendezvous.Score(round, hashes[i]), rendezvous.Score(round, hashes[best])
			if c := rendezvous.Compare(x, y, int64(i+1), int64(best+1)); c != -rendezvous.Compare(y, x, int64(best+1), int64(i+1)) {
				t.Fatalf("comparing %d and %d depends on their order", i, best)
			} else if c > 0 {
				best = i
			}
		}
		wins[best]++
	}
	for i, n := range wins {
		if want := float64(i+1) / 10; math.Abs(float64(n)/rounds-want) > 0.02 {
			t.Errorf("weight %d wins %d of %d times, want %.0f%%", i+1, n, rounds, want*100)
		}
	}
}
