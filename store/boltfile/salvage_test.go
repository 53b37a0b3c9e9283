package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/boltfile"
)

// found is what a salvage finds, by bucket: key to value.
type found struct {
	rows map[string]map[string]string
	lost []string
}

func salvage(t testing.TB, content []byte, strays bool) found {
	t.Helper()
	f := found{rows: map[string]map[string]string{}}
	s := boltfile.Salvage{
		Row: func(bucket, k, v []byte) {
			if f.rows[string(bucket)] == nil {
				f.rows[string(bucket)] = map[string]string{}
			}
			f.rows[string(bucket)][string(k)] = string(v)
		},
		Lost:   func(bucket []byte, why error) { f.lost = append(f.lost, fmt.Sprintf("%s: %v", bucket, why)) },
		Strays: func() bool { return strays },
	}
	if err := s.Read(bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSalvageOfAWholeFileHasEverything(t *testing.T) {
	f := salvage(t, file(t), true)
	if len(f.lost) > 0 || len(f.rows["large"]) != 1201 || len(f.rows["small"]) != 3 || len(f.rows[""]) != 0 {
		t.Errorf("%d and %d rows, %d strays, lost: %v", len(f.rows["large"]), len(f.rows["small"]), len(f.rows[""]), f.lost)
	}
}

// TestSalvageLosesOnlyWhatIsDamaged: a leaf costs its rows, a branch none if strays are
// looked for.
func TestSalvageLosesOnlyWhatIsDamaged(t *testing.T) {
	whole := file(t)
	for _, kind := range []uint16{leafFlag, branchFlag} {
		for _, at := range pagesOf(whole, kind) {
			bad := bytes.Clone(whole)
			native.PutUint32(bad[at+header:], 1<<20)
			f := salvage(t, bad, true)
			rows := len(f.rows["large"]) + len(f.rows[""])
			switch {
			case len(f.lost) == 0 && rows == 1201: // a free page
			case kind == leafFlag && rows > 1100 || kind == branchFlag && rows == 1201:
			case len(f.rows["large"]) == 0 && len(f.lost) == 1 && rows > 300: // the list of buckets
			default:
				t.Errorf("page %d of kind %d: %d rows of large, %d strays, lost: %v", at/pageSize, kind, len(f.rows["large"]), len(f.rows[""]), f.lost)
			}
		}
	}
	meta := bytes.Clone(whole)
	clear(meta[:2*pageSize])
	if f := salvage(t, meta, true); len(f.rows[""]) < 1200 || len(f.lost) != 1 {
		t.Errorf("without first pages: %d rows, lost: %v", len(f.rows[""]), f.lost)
	}
}

// TestSalvageLosesNothingSilently: a row that says it is a bucket is there, and a page that
// counts fewer rows than it has is lost.
func TestSalvageLosesNothingSilently(t *testing.T) {
	whole := file(t)
	for _, at := range pagesOf(whole, leafFlag) {
		if !bytes.Contains(whole[at:at+pageSize], []byte("key-")) {
			continue // the list of buckets, or a large value
		}
		bad := bytes.Clone(whole)
		native.PutUint32(bad[at+header:], 1) // a bucket
		if f := salvage(t, bad, false); len(f.rows["large"]) != 1201 || len(f.lost) > 0 {
			t.Errorf("page %d with a bucket: %d rows, lost: %v", at/pageSize, len(f.rows["large"]), f.lost)
		}
		count := native.Uint16(whole[at+10:])
		for _, fewer := range []uint16{count - 1, 0} {
			bad = bytes.Clone(whole)
			native.PutUint16(bad[at+10:], fewer)
			f := salvage(t, bad, false)
			rows := len(f.rows["large"])
			if free := rows == 1201 && len(f.lost) == 0; !free && (rows == 1201 || len(f.lost) != 1) {
				t.Errorf("page %d with %d rows: %d rows, lost: %v", at/pageSize, fewer, rows, f.lost)
			}
		}
	}
}

// TestSalvageOfAListOfBucketsInSeveralPages: many small buckets do not fit into one page.
// What is damaged of the list costs its own buckets only.
func TestSalvageOfAListOfBucketsInSeveralPages(t *testing.T) {
	const buckets = 40
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for i := range buckets {
			b, err := tx.CreateBucket(fmt.Appendf(nil, "bucket-%02d", i))
			if err == nil {
				err = b.Put([]byte("key"), bytes.Repeat([]byte("v"), 400))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if f := salvage(t, whole, true); len(f.rows) != buckets || len(f.lost) > 0 {
		t.Errorf("%d buckets, lost: %v", len(f.rows), f.lost)
	}
	leaves := pagesOf(whole, leafFlag)[1:] // but for the one with which bbolt begins a file
	if len(leaves) < 3 {
		t.Fatalf("the list has %d leaves, and the test needs more", len(leaves))
	}
	for _, at := range leaves {
		for what, damage := range map[string]func(page []byte){
			"a page":         func(page []byte) { clear(page[:pageSize]) },
			"a row's length": func(page []byte) { native.PutUint32(page[header+4:], 1<<20) },
			"a row's kind":   func(page []byte) { native.PutUint32(page[header:], 0) },
		} {
			bad := bytes.Clone(whole)
			damage(bad[at:])
			f := salvage(t, bad, false)
			if len(f.lost) != 1 || !strings.HasPrefix(f.lost[0], ": a part of the list of buckets: page ") || len(f.rows) < buckets/2 {
				t.Errorf("%s, page %d: %d buckets, lost: %v", what, at/pageSize, len(f.rows), f.lost)
			}
		}
	}
}

// FuzzSalvage changes bytes as FuzzCheck does. What is found in a bucket was there.
func FuzzSalvage(f *testing.F) {
	if os.Getpagesize() != pageSize {
		f.Skip("the pages of this machine have another size")
	}
	whole := file(f)
	f.Add([]byte{}, uint32(0))
	for _, at := range []int{rootAt, freelistAt, highAt, 2*pageSize + 8, 3*pageSize + 10, 5*pageSize + header} {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(at)), 1), uint32(at))
	}
	f.Fuzz(func(t *testing.T, edits []byte, cut uint32) {
		bad := bytes.Clone(whole)
		for ; len(edits) >= 5; edits = edits[5:] {
			bad[binary.BigEndian.Uint32(edits)%uint32(len(bad))] ^= edits[4]
		}
		sign(bad)
		salvage(t, bad[:len(bad)-int(cut)%len(bad)], true)
	})
}
