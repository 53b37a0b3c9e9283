package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A bbolt file begins with two meta pages. The valid one with the higher
// transaction counts. Behind them are trees of branch and leaf pages, and one list
// of free pages. Numbers are in the machine's byte order.
const (
	pageHeader   = 16 // id 8, flags 2, count 2, overflow 4
	rowHeader    = 16 // branch: pos 4, ksize 4, pgid 8; leaf: flags 4, pos 4, ksize 4, vsize 4
	bucketHeader = 16 // root 8, sequence 8

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01
)

var native = binary.NativeEndian

// page is a page together with its overflow pages.
type page []byte

func (p page) id() uint64       { return native.Uint64(p) }
func (p page) flags() uint16    { return native.Uint16(p[8:]) }
func (p page) count() int       { return int(native.Uint16(p[10:])) }
func (p page) overflow() uint64 { return uint64(native.Uint32(p[12:])) }

// row is one row of a branch or leaf page.
type row struct {
	offset     int // where the key begins
	key, value []byte
	child      uint64 // branches only
	bucket     bool   // leaves only
}

// row returns row i, or false if it is out of bounds.
func (p page) row(i int) (row, bool) {
	rowStart := uint64(pageHeader + i*rowHeader)
	head := p[rowStart : rowStart+rowHeader]
	var r row
	var pos, ksize, vsize uint64
	if p.flags() == leafPage {
		r.bucket = native.Uint32(head)&bucketFlag != 0
		pos, ksize, vsize = uint64(native.Uint32(head[4:])), uint64(native.Uint32(head[8:])), uint64(native.Uint32(head[12:]))
	} else {
		pos, ksize, r.child = uint64(native.Uint32(head)), uint64(native.Uint32(head[4:])), native.Uint64(head[8:])
	}
	keyStart := rowStart + pos
	if ksize == 0 || keyStart < uint64(pageHeader+p.count()*rowHeader) || keyStart+ksize+vsize > uint64(len(p)) {
		return row{}, false
	}
	r.offset, r.key, r.value = int(keyStart), p[keyStart:keyStart+ksize], p[keyStart+ksize:keyStart+ksize+vsize]
	return r, true
}

// check verifies that all rows are there, in order and in bounds. bbolt writes the first key
// right behind the heads of all rows, and zeros into what is left of a page.
func (p page) check() error {
	if len(p) < pageHeader || pageHeader+p.count()*rowHeader > len(p) {
		return errors.New("its rows do not fit")
	}
	var last []byte
	for i := range p.count() {
		r, ok := p.row(i)
		if !ok {
			return fmt.Errorf("row %d is out of bounds", i)
		}
		if i == 0 && r.offset != pageHeader+p.count()*rowHeader {
			return p.miscounts()
		}
		if i > 0 && bytes.Compare(last, r.key) >= 0 {
			return fmt.Errorf("row %d is out of order", i)
		}
		last = r.key
	}
	if p.count() == 0 && len(bytes.Trim(p[pageHeader:min(len(p), pageHeader+rowHeader)], "\x00")) > 0 {
		return p.miscounts()
	}
	return nil
}

func (p page) miscounts() error {
	return fmt.Errorf("it has more rows than the %d that it counts", p.count())
}
