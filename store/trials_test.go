package store

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/log"
)

var someTrials = map[string]*log.Trials{
	"proven":     {Proven: []log.Proof{{Build: 1, Shape: 1 << 63}, {Build: 2, Shape: 3}}},
	"suspect":    {Proven: []log.Proof{{Build: 1, Shape: 1}}, Blamed: []uint64{7}, Losses: []log.Loss{{Checker: "checker-1", Time: day}}},
	"quarantine": {Blamed: []uint64{7, 8}, Losses: []log.Loss{{Checker: "checker-1", Identity: "spiffe://prod/1", Time: day}, {Checker: "prüfer", Time: day.Add(time.Second)}}, Retries: 3},
}

func trialsOf(t *testing.T, s *Store) map[string]*log.Trials {
	t.Helper()
	return stateOf(t, s).Trials
}

func TestTrialsAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.intake.saveTrials(someTrials)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if diff := cmp.Diff(someTrials, trialsOf(t, s)); diff != "" {
		t.Error(diff)
	}
	s.intake.saveTrials(map[string]*log.Trials{"proven": nil, "never": nil, "suspect": someTrials["proven"]})
	flush(t, s)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	want := map[string]*log.Trials{"suspect": someTrials["proven"], "quarantine": someTrials["quarantine"]}
	if diff := cmp.Diff(want, trialsOf(t, s)); diff != "" {
		t.Error("after changes:", diff)
	}
}

// TestTrialsInAnOlderFile: a file from before there were trials opens, and has none.
func TestTrialsInAnOlderFile(t *testing.T) {
	s := open(t, t.TempDir())
	inspect(t, s, func(tx *bolt.Tx) {
		if tx.Bucket(trials) != nil {
			t.Error("the bucket is there before its first row: is an older file without it still opened?")
		}
	})
	if found := trialsOf(t, s); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestDamagedTrialsAreSkipped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.intake.saveTrials(someTrials)
	flush(t, s)
	k := key(uint64(hashOf("suspect")))
	edit(t, s, func(tx *bolt.Tx) error {
		row := bytes.Clone(tx.Bucket(trials).Get(k))
		row[3] ^= 1
		return tx.Bucket(trials).Put(k, row)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var reported errorLog
	s = open(t, dir, func(o *Options) { o.OnError = reported.add })
	found := trialsOf(t, s)
	if found["suspect"] != nil || len(found) != 2 || !reported.has(ErrSkipped) {
		t.Errorf("found %v, reported %v; want the other two", found, reported.all)
	}
	if err := s.Check(); !errors.Is(err, ErrDamaged) {
		t.Errorf("Check: %v", err)
	}
}
