package store

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// TestDurableDoesNotWaitForAFailingDisk: while the disk fails, Durable returns at once
// with its error, and OnDisk hears when that begins and when it ends.
func TestDurableDoesNotWaitForAFailingDisk(t *testing.T) {
	var mu sync.Mutex
	var heard []bool
	s := open(t, t.TempDir(), func(o *Options) {
		o.maxSize = 256 << 10
		o.OnError = func(error) {}
		o.OnDisk = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, err != nil)
		}
	})
	s.intake.saveFreeze(&log.Freeze{Reason: "fits"})
	if err := s.Durable(t.Context()); err != nil {
		t.Fatal("while the disk is well:", err)
	}
	s.intake.savePlan(map[string][]health.Hash{"big": make([]health.Hash, 100_000)})
	for range 3 { // the back-off is never waited for: the third would be at least 0.7 s later
		s.intake.saveFreeze(&log.Freeze{Reason: "why"})
		if err := s.Durable(t.Context()); err == nil {
			t.Fatal("durable on a full disk")
		}
	}
	if s.Stats().LastError == nil {
		t.Error("no error in the figures")
	}
	edit(t, s, func(tx *bolt.Tx) error { tx.DB().MaxSize = 0; return nil })
	for err := s.Durable(t.Context()); err != nil; err = s.Durable(t.Context()) { // an attempt from before may still fail
		if t.Context().Err() != nil {
			t.Fatal("when there is room again:", err)
		}
	}
	if got := stateOf(t, s).Freeze; got == nil || got.Reason != "why" {
		t.Errorf("%+v is stored", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(heard) != 2 || !heard[0] || heard[1] {
		t.Errorf("heard of failing: %v", heard)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Durable(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
		t.Error("after the end:", err)
	}
}

func TestFoldersAreMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := open(t, dir).Close(); err != nil {
			t.Error(err)
		}
	}
}
