package heap_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hdsd/internal/heap"
)

type item struct{ value, index int }

// TestHeapAgainstAModel does many random things: the least item is first, and each knows its index.
func TestHeapAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := heap.Heap[*item]{Less: func(a, b *item) bool { return a.value < b.value }, Moved: func(x *item, index int) { x.index = index }}
	model := map[*item]bool{}
	for range 20_000 {
		switch kind := random.IntN(8); {
		case kind < 4 || len(model) == 0:
			x := &item{value: random.IntN(100)}
			model[x] = true
			h.Push(x)
		case kind < 5:
			x := h.Items[random.IntN(len(h.Items))]
			x.value = random.IntN(100)
			h.Fix(x.index)
		case kind < 6:
			x := h.Items[random.IntN(len(h.Items))]
			if got := h.Remove(x.index); got != x || x.index != -1 {
				t.Fatalf("%+v left instead of %+v", got, x)
			}
			delete(model, x)
		default:
			x := h.Pop()
			for other := range model {
				if other.value < x.value {
					t.Fatalf("%d came before %d", x.value, other.value)
				}
			}
			delete(model, x)
		}
		if len(h.Items) != len(model) {
			t.Fatalf("%d items, want %d", len(h.Items), len(model))
		}
		for i, x := range h.Items {
			if x.index != i || !model[x] {
				t.Fatalf("%+v is at %d", x, i)
			}
		}
	}
	var order []int
	for len(h.Items) > 0 {
		order = append(order, h.Pop().value)
	}
	if !slices.IsSorted(order) {
		t.Errorf("the order is %v", order)
	}
}

// BenchmarkHeap is what a Push and a Pop cost among a thousand items.
func BenchmarkHeap(b *testing.B) {
	h := heap.Heap[int]{Less: func(a, b int) bool { return a < b }}
	for i := range 1000 {
		h.Push(i * 7 % 1000)
	}
	for b.Loop() {
		h.Push(h.Pop() + 500)
	}
}
