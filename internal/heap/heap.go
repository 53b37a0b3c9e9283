package heap

// Heap has items, the least first. Set Less before the first Push.
type Heap[T any] struct {
	Less func(a, b T) bool

	// Moved, if not nil, gets the new index of each moved item, for Fix and Remove. It is -1
	// once the item has left.
	Moved func(item T, index int)

	// Items has the least item at 0, and the others in no order. Only the heap changes it.
	Items []T
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.Items = append(h.Items, item)
	h.moved(item, len(h.Items)-1)
	h.up(len(h.Items) - 1)
}

// Pop removes the least item.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove removes the item at an index.
func (h *Heap[T]) Remove(index int) T {
	var zero T
	last := len(h.Items) - 1
	item := h.Items[index]
	h.swap(index, last)
	h.Items[last] = zero
	h.Items = h.Items[:last]
	if index < last {
		h.Fix(index)
	}
	h.moved(item, -1)
	return item
}

// Fix puts the item at an index in order after it has changed.
func (h *Heap[T]) Fix(index int) {
	for smallest := index; ; index = smallest {
		for child := 2*index + 1; child <= 2*index+2 && child < len(h.Items); child++ {
			if h.Less(h.Items[child], h.Items[smallest]) {
				smallest = child
			}
		}
		if smallest == index {
			break
		}
		h.swap(index, smallest)
	}
	h.up(index)
}

func (h *Heap[T]) up(index int) {
	for parent := (index - 1) / 2; index > 0 && h.Less(h.Items[index], h.Items[parent]); parent = (index - 1) / 2 {
		h.swap(index, parent)
		index = parent
	}
}

func (h *Heap[T]) swap(i, j int) {
	h.Items[i], h.Items[j] = h.Items[j], h.Items[i]
	h.moved(h.Items[i], i)
	h.moved(h.Items[j], j)
}

func (h *Heap[T]) moved(item T, index int) {
	if h.Moved != nil {
		h.Moved(item, index)
	}
}
