package store

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// reopened closes a store, and returns the next one and its freeze.
func reopened(t *testing.T, dir string, s *Store) (*Store, *log.Freeze) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	return s, stateOf(t, s).Freeze
}

func TestFreezeIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	steps := map[string]*log.Freeze{
		"sources":      {Reason: "why", Author: "alice", Since: day},
		"held":         {Reason: "überall", Author: "bob", Since: day.Add(1), Held: map[health.Hash]health.Status{1: health.Healthy, 1 << 63: health.Timeout}},
		"held nothing": {Reason: "why", Since: day, Held: map[health.Hash]health.Status{}},
		"none":         nil,
	}
	for _, name := range []string{"none", "sources", "held", "held", "held nothing", "sources", "none"} {
		s.intake.saveFreeze(steps[name])
		var found *log.Freeze
		s, found = reopened(t, dir, s)
		if diff := cmp.Diff(steps[name], found); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestFreezeInAnOlderFile: the bucket is there only while there is a freeze.
func TestFreezeInAnOlderFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	has := func() (there bool) {
		inspect(t, s, func(tx *bolt.Tx) { there = tx.Bucket(freeze) != nil })
		return there
	}
	before := has()
	s.intake.saveFreeze(&log.Freeze{Reason: "why"})
	s.intake.saveFreeze(nil) // in one group
	flush(t, s)
	same := has()
	s.intake.saveFreeze(&log.Freeze{Reason: "why"})
	flush(t, s)
	if frozen := has(); before || same || !frozen {
		t.Errorf("the bucket is there: before %t, after a group that ends it %t, while frozen %t", before, same, frozen)
	}
}

// TestDamagedFreezeStaysOne: a freeze that cannot be read must not let verdicts out.
func TestDamagedFreezeStaysOne(t *testing.T) {
	for name, bad := range map[string][]byte{"freeze": freezeKey, "held": heldKey} {
		dir := t.TempDir()
		s := open(t, dir)
		s.intake.saveFreeze(&log.Freeze{Reason: "why", Author: "alice", Since: day.Add(-time.Hour), Held: map[health.Hash]health.Status{1: health.Healthy}})
		flush(t, s)
		edit(t, s, func(tx *bolt.Tx) error {
			v := bytes.Clone(tx.Bucket(freeze).Get(bad))
			v[len(v)/2]++
			return tx.Bucket(freeze).Put(bad, v)
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var reported errorLog
		s = open(t, dir, func(o *Options) { o.OnError = reported.add })
		found := stateOf(t, s).Freeze
		if found == nil || found.Held != nil || found.Reason == "" || !reported.has(ErrSkipped) {
			t.Errorf("%s: %+v; reported: %v", name, found, reported.all)
		}
		if err := s.Check(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Check: %v", name, err)
		}
	}
}

// TestFreezeUnderADamagedKeyCanBeEnded: it stays a freeze until then, and leaves nothing
// behind that would be one at the next start.
func TestFreezeUnderADamagedKeyCanBeEnded(t *testing.T) {
	var reported errorLog
	dir := t.TempDir()
	s := open(t, dir, func(o *Options) { o.OnError = reported.add })
	putRawRow(s, freeze, []byte("greeze"), encodeFreeze(&log.Freeze{}))
	flush(t, s)
	if found := stateOf(t, s).Freeze; found == nil || !reported.has(ErrSkipped) {
		t.Errorf("%v; reported: %v", found, reported.all)
	}
	s.intake.saveFreeze(nil)
	if _, found := reopened(t, dir, s); found != nil {
		t.Errorf("still there: %+v", found)
	}
}
