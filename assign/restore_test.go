package assign

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"hdsd/health"
)

// storedPlan is a plan of three checkers for each endpoint, and slots for its checkers.
func storedPlan(endpoints, checkers int, hash func() uint64) (plan map[string][]health.Hash, hashes []uint64, slot func(string) int32) {
	plan, hashes = map[string][]health.Hash{}, make([]uint64, endpoints)
	for i := range hashes {
		hashes[i] = hash()
		for j := range 3 {
			id := strconv.Itoa((7*i + j) % checkers)
			plan[id] = append(plan[id], health.Hash(hashes[i]))
		}
	}
	return plan, hashes, func(id string) int32 {
		n, _ := strconv.Atoi(id)
		return int32(n)
	}
}

// TestRestoredSeatsAreClaimedOnce also has hashes that come twice, and that begin alike.
func TestRestoredSeatsAreClaimedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, hash := range map[string]func() uint64{
		"random": random.Uint64,
		"few":    func() uint64 { return random.Uint64N(500) << 40 },
		"alike":  func() uint64 { return 1<<63 | random.Uint64N(1<<20) },
	} {
		for _, size := range []int{0, 1, 10, 20_000} {
			plan, hashes, slot := storedPlan(size, 50, hash)
			want := map[uint64][]int32{}
			for id, all := range plan {
				for _, hash := range all {
					if !slices.Contains(want[uint64(hash)], slot(id)) {
						want[uint64(hash)] = append(want[uint64(hash)], slot(id))
					}
				}
			}
			var r restored
			r.fill(plan, slot)
			for _, hash := range hashes {
				counts := func(slot int32) bool { return slot%5 > 0 }
				slots := slices.DeleteFunc(want[hash], func(slot int32) bool { return !counts(slot) })
				slices.Sort(slots)
				slots = slots[:min(len(slots), maxRedundancy)]
				if got := r.claim(hash, counts); !slices.Equal(got, slots) {
					t.Fatalf("%s, %d: claimed %v at %x, want %v", name, size, got, hash, slots)
				}
				delete(want, hash)
				if random.IntN(size) < 10 {
					r.compact()
				}
			}
			if r.compact(); !r.empty() {
				t.Errorf("%s, %d: seats are left", name, size)
			}
		}
	}
}

// BenchmarkRestored stores the plan of a million endpoints, which then claim their seats.
func BenchmarkRestored(b *testing.B) {
	plan, hashes, slot := storedPlan(1_000_000, 1000, rand.New(rand.NewPCG(1, 2)).Uint64)
	for _, all := range plan {
		slices.Sort(all)
	}
	b.ReportAllocs()
	for b.Loop() {
		var r restored
		r.fill(plan, slot)
		for _, hash := range hashes {
			r.claim(hash, func(int32) bool { return true })
		}
	}
}
