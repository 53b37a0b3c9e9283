package relay

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

func sentOf(name string, change uint64) *sent {
	return &sent{&item{body: &body{name: name, hash: maphash.String(seed, name)}}, change}
}

// TestHoldingsAreAMap, whatever comes and goes.
func TestHoldingsAreAMap(t *testing.T) {
	t.Parallel()
	for _, names := range []int{1, 3, 40, 3000} {
		random := rand.New(rand.NewPCG(uint64(names), 1))
		var h holdings
		model := map[string]*sent{}
		for step := range 20 * names {
			name := fmt.Sprintf("cluster-%d", random.IntN(names))
			grows := step/names%4 != 3 // most of it goes from time to time
			switch {
			case random.IntN(3) == 0 == grows:
				if before := h.remove(name); before != model[name] {
					t.Fatalf("removing %s gives %v, want %v", name, before, model[name])
				}
				delete(model, name)
			default:
				s := sentOf(name, uint64(step))
				if before := h.put(s); before != model[name] {
					t.Fatalf("putting %s gives %v, want %v", name, before, model[name])
				}
				model[name] = s
			}
			if got := h.get(name); got != model[name] {
				t.Fatalf("%s is %v, want %v", name, got, model[name])
			}
			if h.count != len(model) {
				t.Fatalf("%d of %d are counted", h.count, len(model))
			}
		}
		for s := range h.all() {
			if model[s.name()] != s {
				t.Errorf("%s is there", s.name())
			}
			delete(model, s.name())
		}
		if len(model) > 0 {
			t.Errorf("%v are missing", model)
		}
	}
}

// TestHoldingsTakeLittle room: a third more slots than names when they come at once, and when
// most have gone again, eight times as many at most.
func TestHoldingsTakeLittle(t *testing.T) {
	t.Parallel()
	var h holdings
	h.reserve(1000)
	room := len(h.slots)
	for i := range 1000 {
		h.put(sentOf(fmt.Sprint(i), 0))
	}
	if len(h.slots) != room || room > 1340 {
		t.Errorf("1,000 names have %d slots, %d were reserved", len(h.slots), room)
	}
	for i := range 990 {
		h.remove(fmt.Sprint(i))
	}
	if len(h.slots) > 80 {
		t.Errorf("10 names have %d slots", len(h.slots))
	}
}

// TestHoldingsTakeThoseOfOthersAtOnce makes room for all of them before the first one: they come
// in the order of their hashes, and in a table that grows, each would pass all before it.
func TestHoldingsTakeThoseOfOthersAtOnce(t *testing.T) {
	t.Parallel()
	for _, names := range []int{10, 100, 1000, 10_000} {
		var few, many holdings
		both, old := sentOf("both", 1), sentOf("old", 1)
		few.put(both)
		few.put(old)
		many.put(sentOf("both", 2))
		for i := range names {
			many.put(sentOf(fmt.Sprint(i), 2))
		}
		if before := few.take(&many); len(before) != 1 || before[0] != both {
			t.Errorf("%v were held under its names, want %v", before, both)
		}
		if few.count != names+2 || few.get("old") != old {
			t.Errorf("%d of %d are held, and old is %v", few.count, names+2, few.get("old"))
		}
		for s := range many.all() {
			if few.get(s.name()) != s {
				t.Errorf("%s is not taken", s.name())
			}
		}
		var room holdings
		room.reserve(names + 2)
		if len(few.slots) != len(room.slots) {
			t.Errorf("%d names have %d slots, want %d", few.count, len(few.slots), len(room.slots))
		}
	}
}

func BenchmarkHoldingsTake(b *testing.B) {
	var many holdings
	for i := range 10_000 {
		many.put(sentOf(fmt.Sprint(i), 0))
	}
	for b.Loop() {
		var few holdings
		few.put(sentOf("old", 0))
		few.take(&many)
	}
}
