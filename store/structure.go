package store

import (
	"errors"
	"fmt"
	"io"
)

// deepest is how many pages can stand above one another: far more than in any
// file that fits on a disk.
const deepest = 64

// structure walks the pages of a bbolt file. bbolt follows the page numbers
// that it finds, however wrong: a circle of pages overflows the stack, which
// no process survives, and a wrong list of free pages lets it overwrite good
// ones. So this is done before bbolt sees a file.
type structure struct {
	file    io.ReaderAt
	meta    meta
	leaves  bool     // read leaves too
	used    []uint64 // a bit for each page
	buffers [deepest + 1][]byte
}

// checkStructure tells what is wrong with the pages of a file of this size.
// Without leaves it reads only the pages above them.
func checkStructure(file io.ReaderAt, size int64, m meta, leaves bool) error {
	if m.high < 4 || m.high > uint64(size)/uint64(m.pageSize) {
		return fmt.Errorf("it is cut off: of %d pages of %d bytes, %d are there", m.high, m.pageSize, size/int64(m.pageSize))
	}
	s := structure{file: file, meta: m, leaves: leaves, used: make([]uint64, m.high/64+1)}
	if err := s.use(0, 2); err != nil {
		return err
	}
	if _, err := s.tree(m.root, 0); err != nil {
		return err
	}
	if err := s.free(); err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	return nil
}

// use marks pages; each can be used once.
func (s *structure) use(first, count uint64) error {
	if first >= s.meta.high || count > s.meta.high-first {
		return fmt.Errorf("page %d is beyond the end", first)
	}
	for id := first; id < first+count; id++ {
		if s.used[id/64]&(1<<(id%64)) != 0 {
			return fmt.Errorf("page %d is used twice", id)
		}
		s.used[id/64] |= 1 << (id % 64)
	}
	return nil
}

// load reads a page and marks it.
func (s *structure) load(id uint64, depth int) (page, error) {
	if depth > deepest {
		return nil, fmt.Errorf("page %d is too deep down", id)
	}
	if id >= s.meta.high {
		return nil, fmt.Errorf("page %d is beyond the end", id)
	}
	p, err := s.read(id, 1, depth)
	if err != nil {
		return nil, err
	}
	if p.id() != id {
		return nil, fmt.Errorf("page %d calls itself %d", id, p.id())
	}
	if err := s.use(id, 1+p.overflow()); err != nil || p.overflow() == 0 {
		return p, err
	}
	return s.read(id, 1+p.overflow(), depth)
}

func (s *structure) read(id, pages uint64, depth int) (page, error) {
	size := int(pages) * s.meta.pageSize
	if cap(s.buffers[depth]) < size {
		s.buffers[depth] = make([]byte, size)
	}
	b := s.buffers[depth][:size]
	if _, err := s.file.ReadAt(b, int64(id)*int64(s.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return b, nil
}

// tree checks a tree and tells whether it is a lone leaf.
func (s *structure) tree(root uint64, depth int) (leaf bool, err error) {
	p, err := s.load(root, depth)
	if err != nil {
		return false, err
	}
	if err := p.check(); err != nil {
		return false, fmt.Errorf("page %d: %w", root, err)
	}
	switch {
	case p.flags() == leafPage:
		return true, s.buckets(p, depth)
	case p.flags() == branchPage && p.count() > 0:
		return false, s.children(p, depth)
	default:
		return false, fmt.Errorf("page %d is neither branch nor leaf", root)
	}
}

// children checks what is below a branch. All leaves of a tree are on one
// level, so the first child tells whether the others are leaves.
func (s *structure) children(p page, depth int) error {
	var leaf bool
	for i := range p.count() {
		r, _ := p.row(i)
		if leaf && !s.leaves {
			if err := s.use(r.child, 1); err != nil {
				return err
			}
			continue
		}
		var err error
		if leaf, err = s.tree(r.child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// buckets checks the buckets whose roots stand in a leaf.
func (s *structure) buckets(p page, depth int) error {
	for i := range p.count() {
		r, _ := p.row(i)
		if !r.bucket {
			continue
		}
		if len(r.value) < bucketHead {
			return fmt.Errorf("bucket %q is cut off", r.key)
		}
		var err error
		if root := native.Uint64(r.value); root != 0 {
			_, err = s.tree(root, depth+1)
		} else {
			err = inline(r.value[bucketHead:])
		}
		if err != nil {
			return fmt.Errorf("bucket %q: %w", r.key, err)
		}
	}
	return nil
}

// inline checks a bucket that is so small that it stands in a row.
func inline(p page) error {
	if len(p) < pageHead || p.flags() != leafPage {
		return errors.New("it is not a leaf")
	}
	if err := p.check(); err != nil {
		return err
	}
	for i := range p.count() {
		if r, _ := p.row(i); r.bucket {
			return errors.New("it has a bucket inside")
		}
	}
	return nil
}

// free checks the list of free pages.
func (s *structure) free() error {
	p, err := s.load(s.meta.freelist, 0)
	if err != nil {
		return err
	}
	if p.flags() != freelistPage {
		return fmt.Errorf("page %d is another page", s.meta.freelist)
	}
	count, ids := uint64(p.count()), p[pageHead:]
	if count == 0xFFFF { // then the first number is the count
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return errors.New("it is cut off")
	}
	var last uint64
	for ; count > 0; count, ids = count-1, ids[8:] {
		id := native.Uint64(ids)
		if id <= last {
			return errors.New("it is out of order")
		}
		if err := s.use(id, 1); err != nil {
			return err
		}
		last = id
	}
	return nil
}
