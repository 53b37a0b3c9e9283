package boltfile

import (
	"errors"
	"fmt"
	"io"
)

// maxDepth is how many pages can stand above one another: far more than in any
// file that fits on a disk.
const maxDepth = 64

// Check reports the first fault in the pages of a file of this size. The error is
// ErrVersion if another version of bbolt wrote it.
func Check(file io.ReaderAt, size int64) error { return checkCurrent(file, size, true) }

// CheckBranches is Check without the content of leaves: it reads only the pages
// that lead to others, which takes a fraction of the time.
func CheckBranches(file io.ReaderAt, size int64) error { return checkCurrent(file, size, false) }

func checkCurrent(file io.ReaderAt, size int64, leaves bool) error {
	metas, err := readMetas(file)
	if err != nil {
		return err
	}
	return check(file, size, metas[0], leaves)
}

// CheckTransaction reports the first fault in the pages that a transaction sees,
// while bbolt keeps that open and may write others. It returns nil if both meta
// pages are of later transactions, so that these pages can no longer be found.
func CheckTransaction(file io.ReaderAt, size int64, transaction uint64) error {
	metas, err := readMetas(file)
	if err != nil {
		return err
	}
	for _, m := range metas {
		if m.transaction == transaction {
			return check(file, size, m, true)
		}
	}
	return nil
}

func check(file io.ReaderAt, size int64, m meta, leaves bool) error {
	if m.high < 4 || m.high > uint64(size)/uint64(m.pageSize) {
		return fmt.Errorf("it is cut off: of %d pages of %d bytes, %d are there", m.high, m.pageSize, size/int64(m.pageSize))
	}
	w := walk{file: file, meta: m, leaves: leaves, used: make([]uint64, m.high/64+1)}
	if err := w.use(0, 2); err != nil {
		return err
	}
	if _, err := w.tree(m.root, 0); err != nil {
		return err
	}
	if err := w.freelist(); err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	return nil
}

// walk visits every page that a meta page leads to.
type walk struct {
	file    io.ReaderAt
	meta    meta
	leaves  bool     // read leaves too
	used    []uint64 // a bit for each page
	buffers [maxDepth + 1][]byte
}

// use marks pages. Each can be used once.
func (w *walk) use(first, count uint64) error {
	if first >= w.meta.high || count > w.meta.high-first {
		return fmt.Errorf("page %d is beyond the end", first)
	}
	for id := first; id < first+count; id++ {
		if w.used[id/64]&(1<<(id%64)) != 0 {
			return fmt.Errorf("page %d is used twice", id)
		}
		w.used[id/64] |= 1 << (id % 64)
	}
	return nil
}

// load reads a page and marks it.
func (w *walk) load(id uint64, depth int) (page, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("page %d is nested too deep", id)
	}
	if id >= w.meta.high {
		return nil, fmt.Errorf("page %d is beyond the end", id)
	}
	p, err := w.read(id, 1, depth)
	if err != nil {
		return nil, err
	}
	if p.id() != id {
		return nil, fmt.Errorf("page %d has the id %d", id, p.id())
	}
	if err := w.use(id, 1+p.overflow()); err != nil || p.overflow() == 0 {
		return p, err
	}
	return w.read(id, 1+p.overflow(), depth)
}

func (w *walk) read(id, pages uint64, depth int) (page, error) {
	size := int(pages) * w.meta.pageSize
	if cap(w.buffers[depth]) < size {
		w.buffers[depth] = make([]byte, size)
	}
	b := w.buffers[depth][:size]
	if _, err := w.file.ReadAt(b, int64(id)*int64(w.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return b, nil
}

// tree checks a tree and reports whether its root is a leaf.
func (w *walk) tree(root uint64, depth int) (leaf bool, err error) {
	p, err := w.load(root, depth)
	if err != nil {
		return false, err
	}
	if err := p.check(); err != nil {
		return false, fmt.Errorf("page %d: %w", root, err)
	}
	switch {
	case p.flags() == leafPage:
		return true, w.buckets(p, depth)
	case p.flags() == branchPage && p.count() > 0:
		return false, w.children(p, depth)
	default:
		return false, fmt.Errorf("page %d is neither branch nor leaf", root)
	}
}

// children checks the pages below a branch. All leaves of a tree are on one level,
// so the first child tells whether the others are leaves.
func (w *walk) children(p page, depth int) error {
	var leaf bool
	for i := range p.count() {
		r, _ := p.row(i)
		if leaf && !w.leaves {
			if err := w.use(r.child, 1); err != nil {
				return err
			}
			continue
		}
		var err error
		if leaf, err = w.tree(r.child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// buckets checks the buckets whose headers are rows of a leaf.
func (w *walk) buckets(p page, depth int) error {
	for i := range p.count() {
		r, _ := p.row(i)
		if !r.bucket {
			continue
		}
		if len(r.value) < bucketHeader {
			return fmt.Errorf("bucket %q is cut off", r.key)
		}
		var err error
		if root := native.Uint64(r.value); root != 0 {
			_, err = w.tree(root, depth+1)
		} else {
			err = inline(r.value[bucketHeader:])
		}
		if err != nil {
			return fmt.Errorf("bucket %q: %w", r.key, err)
		}
	}
	return nil
}

// inline checks a bucket so small that bbolt keeps it inside a row.
func inline(p page) error {
	if len(p) < pageHeader || p.flags() != leafPage {
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

// freelist checks the list of free pages.
func (w *walk) freelist() error {
	p, err := w.load(w.meta.freelist, 0)
	if err != nil {
		return err
	}
	if p.flags() != freelistPage {
		return fmt.Errorf("page %d is another page", w.meta.freelist)
	}
	count, ids := uint64(p.count()), p[pageHeader:]
	if count == 0xFFFF { // the first number is the count
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
		if err := w.use(id, 1); err != nil {
			return err
		}
		last = id
	}
	return nil
}
