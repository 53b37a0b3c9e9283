package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
)

// TestCopyWhileWritten: each copy is the history at one moment.
func TestCopyWhileWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	all := flips(3000)
	var writing sync.WaitGroup
	writing.Go(func() {
		for some := range slices.Chunk(all, 10) {
			s.Append(some)
			flush(t, s)
		}
	})
	last := -1
	for last < len(all) {
		count := checkCopy(t, s, all)
		if t.Failed() || count < last {
			t.Fatalf("%d transitions after %d", count, last)
		}
		if last = count; last > len(all)/2 {
			writing.Wait()
		}
	}
	if got := in(t, dir); !slices.Equal(got, []string{fileName}) {
		t.Error("left behind:", got)
	}
}

// checkCopy makes a copy, checks it and counts its transitions.
func checkCopy(t *testing.T, s *Store, all []health.Transition) int {
	t.Helper()
	file, err := s.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	path := filepath.Join(t.TempDir(), fileName)
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, file)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	about, err := Examine(t.Context(), path)
	if err != nil || about.Rows != nil {
		t.Fatal(err, about.Rows)
	}
	copied := open(t, filepath.Dir(path))
	defer copied.Close()
	found := queryAll(t, copied, Query{})
	if len(found) != about.Transitions || len(found) > len(all) {
		t.Fatalf("%d transitions, said to be %d", len(found), about.Transitions)
	}
	if diff := cmp.Diff(all[:len(found)], found); len(found) > 0 && diff != "" {
		t.Error(diff)
	}
	return len(found)
}

func TestCopyFails(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Copy(ctx); err == nil {
		t.Error("copied for nobody")
	}
	if got := in(t, dir); !slices.Equal(got, []string{fileName}) {
		t.Error("left behind:", got)
	}
	if free, known := freeBytes(dir); known && free == 0 {
		t.Error("no room at all")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Copy(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error("when closed:", err)
	}
}
