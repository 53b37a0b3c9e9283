package store

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// mapped returns how much of a file is in this process's memory.
func mapped(t *testing.T, path string) (kilobytes int) {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	here := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case !strings.HasSuffix(fields[0], ":"):
			here = strings.HasSuffix(lines.Text(), path)
		case here && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		}
	}
	return kilobytes
}

func TestUnload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, boltOptions(file, &Options{}))
	if err != nil {
		t.Fatal(err)
	}
	d := &database{path: path, file: file, bolt: db}
	defer d.close()
	const keys = 5000
	value := strings.Repeat("x", 1000)
	if err := db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := 0; i < keys && err == nil; i++ {
			err = b.Put(strconv.AppendInt(nil, int64(i), 10), []byte(value))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		found := 0
		if err := db.View(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("b")).ForEach(func(_, v []byte) error {
				if string(v) == value {
					found++
				}
				return nil
			})
		}); err != nil || found != keys {
			t.Errorf("read %d values, want %d (%v)", found, keys, err)
		}
	}
	read()
	before := mapped(t, path)
	d.unload()
	if after := mapped(t, path); before < keys || after > before/10 {
		t.Errorf("%d kB are in memory after unload, %d before", after, before)
	}
	read()
}

// TestStateUnloadsWhatItRead: a start keeps none of the pages that it read for it.
func TestStateUnloadsWhatItRead(t *testing.T) {
	const endpoints, least, most = 20_000, 2000, 500 // kB that State reads, and that may be left
	dir := t.TempDir()
	s := open(t, dir)
	all := make([]health.Transition, endpoints)
	for i := range all {
		all[i] = flip(endpoint("web", "a", strconv.Itoa(i)), i)
	}
	s.Append(all)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	found := stateOf(t, s)
	if after := mapped(t, filepath.Join(dir, fileName)); len(found.Current) != endpoints || after > most {
		t.Errorf("%d kB are in memory after %d endpoints were read", after, len(found.Current))
	}
	if err := s.db.view(func(tx *bolt.Tx) error {
		return tx.Bucket(current).ForEach(func(_, _ []byte) error { return nil })
	}); err != nil {
		t.Error(err)
	}
	if read := mapped(t, filepath.Join(dir, fileName)); read < least {
		t.Errorf("to read them takes no more than %d kB", read)
	}
}
