package store

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/timeline"
)

// span walks the keys of one index with a given prefix, in some ranges of recorded time.
type span struct {
	rows   *bolt.Cursor
	prefix []byte
	ranges []timeline.Range // remaining ranges, in the order of the walk
	newest bool
	inside bool // the cursor is in ranges[0]
}

func newSpan(rows *bolt.Cursor, prefix []byte, ranges []timeline.Range, newest bool) *span {
	ranges = slices.Clone(ranges)
	if newest {
		slices.Reverse(ranges)
	}
	return &span{rows: rows, prefix: prefix, ranges: ranges, newest: newest}
}

// next returns the next recorded time, or false at the end.
func (s *span) next() (uint64, bool) {
	for len(s.ranges) > 0 {
		k := s.step()
		recorded, ok := s.read(k)
		if ok && recorded >= s.ranges[0].From && recorded < s.ranges[0].To {
			return recorded, true
		}
		s.ranges, s.inside = s.ranges[1:], false
	}
	return 0, false
}

// read returns the recorded time of a key of this span.
func (s *span) read(k []byte) (uint64, bool) {
	if len(k) != len(s.prefix)+8 || !bytes.HasPrefix(k, s.prefix) {
		return 0, false
	}
	return number(k[len(s.prefix):]), true
}

// step moves the cursor to its next key.
func (s *span) step() (k []byte) {
	switch {
	case s.inside && s.newest:
		k, _ = s.rows.Prev()
	case s.inside:
		k, _ = s.rows.Next()
	case s.newest:
		k, _ = seekBefore(s.rows, s.key(s.ranges[0].To))
	default:
		k, _ = s.rows.Seek(s.key(s.ranges[0].From))
	}
	s.inside = true
	return k
}

func (s *span) key(recorded uint64) []byte {
	return append(slices.Clone(s.prefix), key(recorded)...)
}

// seekBefore moves a cursor to the last row before a key.
func seekBefore(rows *bolt.Cursor, before []byte) (k, v []byte) {
	if k, _ := rows.Seek(before); k == nil {
		return rows.Last()
	}
	return rows.Prev()
}

// merge joins spans in order of recorded time.
type merge struct {
	spans  []*span
	heads  []uint64 // next recorded time of each span, once started
	newest bool
}

// next returns the next recorded time, or false at the end.
func (m *merge) next() (uint64, bool) {
	if m.heads == nil {
		m.start()
	}
	if len(m.heads) == 0 {
		return 0, false
	}
	first := 0
	for i, head := range m.heads {
		if (head < m.heads[first]) != m.newest && head != m.heads[first] {
			first = i
		}
	}
	recorded := m.heads[first]
	m.advance(first)
	return recorded, true
}

func (m *merge) start() {
	m.heads = make([]uint64, len(m.spans))
	for i := range slices.Backward(m.spans) {
		m.advance(i)
	}
}

// advance reads the next time of a span, or removes an ended span.
func (m *merge) advance(i int) {
	var ok bool
	if m.heads[i], ok = m.spans[i].next(); !ok {
		m.heads = slices.Delete(m.heads, i, i+1)
		m.spans = slices.Delete(m.spans, i, i+1)
	}
}
