package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The form of a bbolt file: two meta pages, of which the valid one with the
// higher transaction counts, trees of branch and leaf pages, and one list of
// free pages, in the machine's byte order.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHead   = 16 // id 8, flags 2, count 2, overflow 4
	rowHead    = 16 // branch: pos 4, ksize 4, pgid 8; leaf: flags 4, pos 4, ksize 4, vsize 4
	bucketHead = 16 // root 8, sequence 8
	metaSize   = 64
	metaSummed = 56
	smallest   = 1 << 10 // page
	largest    = 1 << 24

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01
)

var native = binary.NativeEndian

// meta is what a meta page says.
type meta struct {
	pageSize             int
	root, freelist, high uint64 // all pages are below high
	transaction          uint64
}

var (
	errNotBolt     = errors.New("it is not a bbolt database")
	errMetaSum     = errors.New("the checksums of its first pages are wrong")
	errBoltVersion = errors.New("it is of another version of bbolt")
)

// parseMeta reads the meta page at the beginning of b.
func parseMeta(b []byte) (meta, error) {
	b = b[pageHead : pageHead+metaSize]
	switch {
	case native.Uint32(b) != boltMagic:
		return meta{}, errNotBolt
	case native.Uint64(b[metaSummed:]) != metaSum(b):
		return meta{}, errMetaSum
	case native.Uint32(b[4:]) != boltVersion:
		return meta{}, errBoltVersion
	}
	m := meta{
		pageSize: int(native.Uint32(b[8:])), root: native.Uint64(b[16:]), freelist: native.Uint64(b[32:]),
		high: native.Uint64(b[40:]), transaction: native.Uint64(b[48:]),
	}
	if m.pageSize < smallest || m.pageSize > largest || m.pageSize&(m.pageSize-1) != 0 {
		return meta{}, fmt.Errorf("its page size of %d is impossible", m.pageSize)
	}
	return m, nil
}

func metaSum(b []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSummed])
	return sum.Sum64()
}

// readMetas gives the valid meta pages, the one that counts first.
func readMetas(file io.ReaderAt) ([]meta, error) {
	var found []meta
	failure := errNotBolt
	buffer := make([]byte, pageHead+metaSize)
	for offset := int64(0); offset <= largest; offset = max(smallest, 2*offset) {
		if n, _ := file.ReadAt(buffer, offset); n < len(buffer) {
			break
		}
		m, err := parseMeta(buffer)
		switch {
		case err == nil && (offset == 0 || offset == int64(m.pageSize)):
			found = append(found, m)
		case err != nil && !errors.Is(err, errNotBolt):
			failure = err
		}
	}
	if len(found) == 0 {
		return nil, failure
	}
	if len(found) > 1 && found[1].transaction > found[0].transaction {
		found[0], found[1] = found[1], found[0]
	}
	return found, nil
}

// page is a page with all that overflows from it.
type page []byte

func (p page) id() uint64       { return native.Uint64(p) }
func (p page) flags() uint16    { return native.Uint16(p[8:]) }
func (p page) count() int       { return int(native.Uint16(p[10:])) }
func (p page) overflow() uint64 { return uint64(native.Uint32(p[12:])) }

// row is one row of a branch or leaf page.
type row struct {
	key, value []byte
	child      uint64 // branches only
	bucket     bool   // leaves only
}

// row gives row i; false where it is out of bounds.
func (p page) row(i int) (row, bool) {
	at := uint64(pageHead + i*rowHead)
	head := p[at : at+rowHead]
	var r row
	var pos, ksize, vsize uint64
	if p.flags() == leafPage {
		r.bucket = native.Uint32(head)&bucketFlag != 0
		pos, ksize, vsize = uint64(native.Uint32(head[4:])), uint64(native.Uint32(head[8:])), uint64(native.Uint32(head[12:]))
	} else {
		pos, ksize, r.child = uint64(native.Uint32(head)), uint64(native.Uint32(head[4:])), native.Uint64(head[8:])
	}
	from := at + pos
	if ksize == 0 || from < uint64(pageHead+p.count()*rowHead) || from+ksize+vsize > uint64(len(p)) {
		return row{}, false
	}
	r.key, r.value = p[from:from+ksize], p[from+ksize:from+ksize+vsize]
	return r, true
}

// check tells whether all rows are in order and in bounds.
func (p page) check() error {
	if len(p) < pageHead || pageHead+p.count()*rowHead > len(p) {
		return errors.New("its rows do not fit")
	}
	var last []byte
	for i := range p.count() {
		r, ok := p.row(i)
		if !ok {
			return fmt.Errorf("row %d is out of bounds", i)
		}
		if i > 0 && bytes.Compare(last, r.key) >= 0 {
			return fmt.Errorf("row %d is out of order", i)
		}
		last = r.key
	}
	return nil
}
