package etcd

import "sync"

// cell holds a value, and notifies its readers of changes. A late reader misses intermediate values,
// never the latest one.
type cell[T any] struct {
	mu      sync.Mutex
	value   T             // guarded by mu
	changed chan struct{} // closed by the next change; guarded by mu
}

func newCell[T any]() *cell[T] { return &cell[T]{changed: make(chan struct{})} }

// get returns the value, and a channel that the next change closes.
func (c *cell[T]) get() (T, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, c.changed
}

// update replaces the value, and notifies the readers, unless next returns isNew false.
func (c *cell[T]) update(next func(T) (value T, isNew bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, isNew := next(c.value)
	if !isNew {
		return
	}
	c.value = value
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cell[T]) set(value T) { c.update(func(T) (T, bool) { return value, true }) }
