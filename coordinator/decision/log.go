package decision

import (
	"errors"
	"slices"
	"sync"
)

// ErrBehind says that a cursor fell too far behind and lost decisions. Its follower has to
// start over from the present state.
var ErrBehind = errors.New("decisions lost: the follower is too far behind")

// Log is a sequence of decisions.
type Log interface {
	// Append adds a decision at the end. It does not wait for followers.
	Append(*Decision)
	// Follow returns a cursor at the end.
	Follow() Cursor
}

// Cursor is a place in a Log. It belongs to one follower.
type Cursor interface {
	// Next returns the next decision and moves past it. It returns nil at the end, and
	// ErrBehind once after decisions were lost.
	Next() (*Decision, error)
}

// Memory is a Log in memory.
type Memory struct {
	limit int

	mu      sync.Mutex
	entries []*Decision // in order
	first   uint64      // position of entries[0]
	cursors []*cursor
}

// NewMemory makes a Log that keeps up to limit decisions for slow followers.
func NewMemory(limit int) *Memory { return &Memory{limit: limit} }

// Append implements Log.
func (m *Memory) Append(d *Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cursors) == 0 {
		m.first++
		return
	}
	m.entries = append(m.entries, d)
	if over := len(m.entries) - m.limit; over > 0 {
		m.drop(over)
	}
}

// Follow implements Log.
func (m *Memory) Follow() Cursor {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &cursor{log: m, next: m.first + uint64(len(m.entries))}
	m.cursors = append(m.cursors, c)
	return c
}

// drop removes the oldest decisions.
func (m *Memory) drop(count int) {
	m.first += uint64(count)
	m.entries = slices.Delete(m.entries, 0, count)
}

// trim removes the decisions that all cursors have passed.
func (m *Memory) trim() {
	slowest := m.first + uint64(len(m.entries))
	for _, c := range m.cursors {
		slowest = min(slowest, max(c.next, m.first))
	}
	if slowest > m.first {
		m.drop(int(slowest - m.first))
	}
}

// cursor is a Cursor in a Memory. The lock of the Memory guards it.
type cursor struct {
	log  *Memory
	next uint64 // position of the next decision
}

// Next implements Cursor.
func (c *cursor) Next() (*Decision, error) {
	m := c.log
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.next < m.first:
		c.next = m.first
		return nil, ErrBehind
	case c.next == m.first+uint64(len(m.entries)):
		return nil, nil
	}
	d := m.entries[c.next-m.first]
	c.next++
	m.trim()
	return d, nil
}
