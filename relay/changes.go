package relay

import "sync"

// maxChanges is how many changes are kept for streams that have not looked yet. A stream that
// is further behind looks at all that its client has.
const maxChanges = 1 << 16

// changes are the resources whose health may have changed, in order. The core notes each
// once, however many streams there are, and waits for none of them.
type changes struct {
	mu    sync.Mutex
	first uint64 // the number of the first one in all
	all   []subject
}

// add notes resources; nil: all that there are.
func (c *changes) add(changed []subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil { // everybody is behind
		c.first, c.all = c.first+uint64(len(c.all))+1, nil
		return
	}
	if len(c.all)+len(changed) > maxChanges { // readers may have the old array
		drop := min(len(c.all), max(maxChanges/2, len(changed)))
		c.first, c.all = c.first+uint64(drop), append([]subject(nil), c.all[drop:]...)
	}
	c.all = append(c.all, changed...)
}

// since returns what was noted after a number, or that it may be anything, and the number to
// ask with next.
func (c *changes) since(number uint64) (some []subject, anything bool, next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = c.first + uint64(len(c.all))
	if number < c.first {
		return nil, true, next
	}
	return c.all[number-c.first : len(c.all) : len(c.all)], false, next
}
