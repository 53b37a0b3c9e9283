package boltfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Salvage reads what is left of a damaged file.
type Salvage struct {
	// Row gets a row of a bucket, in order. Without a bucket it is of a page that nothing
	// leads to any more, in no order, and may be out of date. Its slices are valid only
	// during the call.
	Row func(bucket, key, value []byte)

	// Lost says that rows of a bucket are missing between the row before and the next
	// one; without a bucket, some buckets, all of them, or the last transaction.
	Lost func(bucket []byte, reason error)

	// Strays reports, once all buckets are read, whether to look for pages that nothing
	// leads to.
	Strays func() bool
}

// Read reads a file of this size. The error is ErrVersion if another version of bbolt
// wrote it, or that of a file that cannot be read at all.
func (s *Salvage) Read(file io.ReaderAt, size int64) error {
	metas, err := readMetas(file)
	if errors.Is(err, ErrVersion) {
		return err
	}
	var w *walk
	for i, m := range metas {
		w = newSalvageWalk(file, size, m)
		root, err := w.loadTree(m.root, 0)
		if err == nil {
			if i > 0 {
				s.Lost(nil, errors.New("the last transaction"))
			}
			s.buckets(w, root, 0)
			break
		}
		if i == len(metas)-1 {
			s.Lost(nil, fmt.Errorf("the list of buckets: %w", err))
		}
	}
	if len(metas) == 0 {
		s.Lost(nil, err)
		w = newSalvageWalk(file, size, meta{pageSize: os.Getpagesize(), high: uint64(size)})
	}
	if s.Strays() {
		s.strays(w)
	}
	return nil
}

func newSalvageWalk(file io.ReaderAt, size int64, m meta) *walk {
	m.high = min(m.high, uint64(size)/uint64(m.pageSize))
	return &walk{file: file, meta: m, leaves: true, used: make([]uint64, m.high/64+1)}
}

// loadTree reads a branch or a leaf.
func (w *walk) loadTree(id uint64, depth int) (page, error) {
	p, err := w.load(id, depth)
	if err == nil {
		err = p.check()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("page %d: %w", id, err)
	case p.flags() == leafPage, p.flags() == branchPage && p.count() > 0:
		return p, nil
	}
	return nil, fmt.Errorf("page %d is neither branch nor leaf", id)
}

// buckets reads all buckets of the list of buckets, or of a part of it.
func (s *Salvage) buckets(w *walk, list page, depth int) {
	for i := range list.count() {
		r, _ := list.row(i)
		switch {
		case list.flags() == branchPage:
			if part, err := w.loadTree(r.child, depth+1); err != nil {
				s.Lost(nil, fmt.Errorf("a part of the list of buckets: %w", err))
			} else {
				s.buckets(w, part, depth+1)
			}
		case !r.bucket:
			s.Lost(nil, fmt.Errorf("a part of the list of buckets: page %d has another row", list.id()))
		case len(r.value) < bucketHeader:
			s.Lost(r.key, errors.New("it is cut off"))
		case native.Uint64(r.value) != 0:
			s.tree(w, r.key, native.Uint64(r.value), depth+1)
		default:
			if p := page(r.value[bucketHeader:]); inline(p) == nil {
				s.rows(r.key, p)
			} else {
				s.Lost(r.key, inline(p))
			}
		}
	}
}

func (s *Salvage) tree(w *walk, bucket []byte, id uint64, depth int) {
	p, err := w.loadTree(id, depth)
	switch {
	case err != nil:
		s.Lost(bucket, err)
	case p.flags() == leafPage:
		s.rows(bucket, p)
	default:
		for i := range p.count() {
			r, _ := p.row(i)
			s.tree(w, bucket, r.child, depth+1)
		}
	}
}

// rows gives the rows of a page, also one that says it is a bucket: hdsd has no buckets inside
// of buckets.
func (s *Salvage) rows(bucket []byte, p page) {
	for i := range p.count() {
		r, _ := p.row(i)
		s.Row(bucket, r.key, r.value)
	}
}

// strays reads the leaves that nothing leads to, but for free pages.
func (s *Salvage) strays(w *walk) {
	if w.meta.freelist != 0 {
		_ = w.freelist() // if it is damaged, some free pages are taken for strays
	}
	for id := uint64(2); id < w.meta.high; id++ {
		if w.used[id/64]&(1<<(id%64)) != 0 {
			continue
		}
		head, err := w.read(id, 1, 0)
		if err != nil || head.id() != id || head.flags() != leafPage {
			continue
		}
		if p, err := w.loadTree(id, 0); err == nil {
			s.rows(nil, p)
		}
	}
}
