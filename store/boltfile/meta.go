package boltfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

const (
	magic   = 0xED0CDAED
	version = 2

	metaSize    = 64
	metaSummed  = 56 // bytes under the checksum
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// ErrVersion says that another version of bbolt wrote the file.
var ErrVersion = errors.New("it is of another version of bbolt")

var (
	errNotBolt     = errors.New("it is not a bbolt database")
	errMetaInvalid = errors.New("the checksums of its first pages are wrong")
)

// meta is the content of a meta page: the state that one transaction left.
type meta struct {
	pageSize             int
	root, freelist, high uint64 // all pages are below high
	transaction          uint64
}

// parseMeta reads the meta page at the beginning of b.
func parseMeta(b []byte) (meta, error) {
	b = b[pageHeader : pageHeader+metaSize]
	switch {
	case native.Uint32(b) != magic:
		return meta{}, errNotBolt
	case native.Uint64(b[metaSummed:]) != metaSum(b):
		return meta{}, errMetaInvalid
	case native.Uint32(b[4:]) != version:
		return meta{}, ErrVersion
	}
	m := meta{
		pageSize: int(native.Uint32(b[8:])), root: native.Uint64(b[16:]), freelist: native.Uint64(b[32:]),
		high: native.Uint64(b[40:]), transaction: native.Uint64(b[48:]),
	}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return meta{}, fmt.Errorf("its page size of %d is impossible", m.pageSize)
	}
	return m, nil
}

func metaSum(b []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSummed])
	return sum.Sum64()
}

// readMetas returns the valid meta pages, the current one first.
func readMetas(file io.ReaderAt) ([]meta, error) {
	var found []meta
	failure := errNotBolt
	buffer := make([]byte, pageHeader+metaSize)
	// The second meta page is one page behind the first, whatever the page size.
	for offset := int64(0); offset <= maxPageSize; offset = max(minPageSize, 2*offset) {
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
