package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/boltfile"
)

var native = binary.NativeEndian

// Places in a bbolt file: behind the header of a page come the rows, or in a meta
// page magic (4), version (4), page size (4), flags (4), root (16), list of free
// pages (8), number of pages (8), transaction (8) and checksum (8).
const (
	pageSize     = 4096
	header       = 16
	versionAt    = header + 4
	sizeAt       = header + 8
	rootAt       = header + 16
	freelistAt   = header + 32
	highAt       = header + 40
	sumAt        = header + 56
	branchFlag   = 1
	leafFlag     = 2
	freelistFlag = 16
)

// file returns a bbolt file with branches, free pages, large values, and buckets
// inside buckets.
func file(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		err = errors.Join(err, db.Update(func(tx *bolt.Tx) error { return fill(tx, round) }))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func fill(tx *bolt.Tx, round int) error {
	large, err := tx.CreateBucketIfNotExists([]byte("large"))
	if err != nil {
		return err
	}
	for i := range 400 {
		if err := large.Put(fmt.Appendf(nil, "key-%05d", 400*round+i), bytes.Repeat([]byte("v"), 40)); err != nil {
			return err
		}
	}
	if err := large.Put([]byte("overflow"), make([]byte, 3*pageSize+round)); err != nil {
		return err
	}
	small, err := tx.CreateBucketIfNotExists([]byte("small"))
	if err != nil {
		return err
	}
	return small.Put(fmt.Append(nil, round), []byte("inline"))
}

// pagesOf returns where the pages of a kind begin.
func pagesOf(content []byte, flags uint16) (all []int) {
	for at := 2 * pageSize; at+pageSize <= len(content); {
		if native.Uint64(content[at:]) == uint64(at/pageSize) && native.Uint16(content[at+8:]) == flags {
			all = append(all, at)
		}
		at += pageSize
	}
	return all
}

// sign gives both meta pages right checksums.
func sign(content []byte) {
	for _, at := range []int{0, pageSize} {
		sum := fnv.New64a()
		_, _ = sum.Write(content[at+header : at+sumAt])
		native.PutUint64(content[at+sumAt:], sum.Sum64())
	}
}

// inMetas sets a number in both meta pages.
func inMetas(offset int, to uint64) func([]byte) {
	return func(content []byte) {
		for _, at := range []int{0, pageSize} {
			native.PutUint64(content[at+offset:], to)
		}
		sign(content)
	}
}

func TestWholeFile(t *testing.T) {
	content := file(t)
	size := int64(len(content))
	for name, check := range map[string]func() error{
		"all pages":           func() error { return boltfile.Check(bytes.NewReader(content), size) },
		"branches":            func() error { return boltfile.CheckBranches(bytes.NewReader(content), size) },
		"unknown transaction": func() error { return boltfile.CheckTransaction(bytes.NewReader(content), size, 0) },
		"by transaction": func() error {
			return boltfile.CheckTransaction(bytes.NewReader(content), size, lastTransaction(content))
		},
	} {
		if err := check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func lastTransaction(content []byte) uint64 {
	return max(native.Uint64(content[header+48:]), native.Uint64(content[pageSize+header+48:]))
}

// TestDamage: each fault has its own words, and is found without reading leaves
// unless it is in one.
func TestDamage(t *testing.T) {
	whole := file(t)
	freelist := pagesOf(whole, freelistFlag)
	branch, leaf := pagesOf(whole, branchFlag), pagesOf(whole, leafFlag)
	for name, c := range map[string]struct {
		damage func([]byte)
		says   string
	}{
		"zeros":                   {func(b []byte) { clear(b) }, "not a bbolt database"},
		"checksum":                {func(b []byte) { b[sumAt]++; b[pageSize+sumAt]++ }, "checksums of its first pages"},
		"page size":               {inMetas(sizeAt, 4097), "page size of 4097 is impossible"},
		"more pages than bytes":   {inMetas(highAt, 1<<40), "cut off"},
		"root beyond the end":     {inMetas(rootAt, 1<<30), "beyond the end"},
		"root is a meta page":     {inMetas(rootAt, 1), "used twice"},
		"free pages are a leaf":   {inMetas(freelistAt, uint64(leaf[0]/pageSize)), "list of free pages"},
		"free pages out of order": {func(b []byte) { eachPage(b, freelist, func(p []byte) { copy(p[header:], p[header+8:header+16]) }) }, "out of order"},
		"used page is free":       {func(b []byte) { eachPage(b, freelist, func(p []byte) { native.PutUint64(p[header:], 1) }) }, "used twice"},
		"circle":                  {func(b []byte) { eachPage(b, branch, func(p []byte) { copy(p[header+8:], p[:8]) }) }, "used twice"},
		"wrong id":                {func(b []byte) { eachPage(b, branch, func(p []byte) { p[0]++ }) }, "has the id"},
		"wrong kind":              {func(b []byte) { eachPage(b, branch, func(p []byte) { p[8] = 7 }) }, "neither branch nor leaf"},
		"row out of bounds":       {func(b []byte) { eachPage(b, branch, func(p []byte) { native.PutUint32(p[header:], 1<<20) }) }, "out of bounds"},
		"too few rows":            {func(b []byte) { eachPage(b, branch, func(p []byte) { p[10]-- }) }, "more rows than"},
		"too many rows":           {func(b []byte) { eachPage(b, branch, func(p []byte) { native.PutUint16(p[10:], 0xFFFF) }) }, "do not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := bytes.Clone(whole)
			c.damage(bad)
			for _, check := range []func() error{
				func() error { return boltfile.Check(bytes.NewReader(bad), int64(len(bad))) },
				func() error { return boltfile.CheckBranches(bytes.NewReader(bad), int64(len(bad))) },
			} {
				if err := check(); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
			}
		})
	}
}

func eachPage(b []byte, pages []int, damage func(page []byte)) {
	for _, at := range pages {
		damage(b[at : at+pageSize])
	}
}

func TestDamagedLeafNeedsAllPages(t *testing.T) {
	bad := file(t)
	eachPage(bad, pagesOf(bad, leafFlag), func(p []byte) {
		if native.Uint16(p[10:]) > 10 && !bytes.Contains(p, []byte("key-00000")) { // the first leaf of a tree is always read
			native.PutUint32(p[header+4:], 1<<20)
		}
	})
	if err := boltfile.Check(bytes.NewReader(bad), int64(len(bad))); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Error("all pages:", err)
	}
	if err := boltfile.CheckBranches(bytes.NewReader(bad), int64(len(bad))); err != nil {
		t.Error("branches:", err)
	}
}

func TestOtherVersion(t *testing.T) {
	bad := file(t)
	bad[versionAt]++
	bad[pageSize+versionAt]++
	sign(bad)
	if err := boltfile.Check(bytes.NewReader(bad), int64(len(bad))); !errors.Is(err, boltfile.ErrVersion) {
		t.Error(err)
	}
}

func TestEveryTruncation(t *testing.T) {
	whole := file(t)
	used := int(max(native.Uint64(whole[highAt:]), native.Uint64(whole[pageSize+highAt:]))) * pageSize
	for size := 0; size < used; size += 509 {
		if err := boltfile.CheckBranches(bytes.NewReader(whole[:size]), int64(size)); err == nil {
			t.Errorf("%d of %d bytes pass as a whole file", size, used)
		}
	}
}

// FuzzCheck changes bytes, five bytes of edits each: where (4) and by what (1). With
// signed, the meta pages get right checksums again. Check comes to an end, and
// accepts nothing that CheckBranches refuses.
func FuzzCheck(f *testing.F) {
	whole := file(f)
	f.Add([]byte{}, false)
	for _, at := range []int{sizeAt, rootAt, freelistAt, highAt, pageSize + rootAt, 2*pageSize + 8, 3*pageSize + 10} {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(at)), 1), true)
	}
	f.Fuzz(func(t *testing.T, edits []byte, signed bool) {
		bad := bytes.Clone(whole)
		for ; len(edits) >= 5; edits = edits[5:] {
			bad[binary.BigEndian.Uint32(edits)%uint32(len(bad))] ^= edits[4]
		}
		if signed {
			sign(bad)
		}
		size := int64(len(bad))
		_ = boltfile.CheckTransaction(bytes.NewReader(bad), size, lastTransaction(bad))
		branches := boltfile.CheckBranches(bytes.NewReader(bad), size)
		if all := boltfile.Check(bytes.NewReader(bad), size); all == nil && branches != nil {
			t.Errorf("branches: %v, all pages: none", branches)
		}
	})
}
