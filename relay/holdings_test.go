package relay

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

func sentOf(name string, change uint64) *delivery {
	return &delivery{&item{body: &body{name: name, hash: maphash.String(seed, name)}}, change}
}

// TestHoldingsAreAMap, whatever comes and goes.
func TestHoldingsAreAMap(t *testing.T) {
	t.Parallel()
	for _, names := range []int{1, 3, 40, 3000} {
		random := rand.New(rand.NewPCG(uint64(names), 1))
		var h holdings
		model := map[string]*delivery{}
		for step := range 20 * names {
			name := fmt.Sprintf("cluster-%d", random.IntN(names))
			grows := step/names%4 != 3 // most of it goes from time to time
			switch {
			case random.IntN(3) == 0 == grows:
				if previous := h.remove(name); previous != model[name] {
					t.Fatalf("removing %s gives %v, want %v", name, previous, model[name])
				}
				delete(model, name)
			default:
				s := sentOf(name, uint64(step))
				if previous := h.put(s); previous != model[name] {
					t.Fatalf("putting %s gives %v, want %v", name, previous, model[name])
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
