package store

import (
	"testing"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// What tests do inside an open store stands here, so that the others use its API.

// edit changes the file past the writer.
func edit(t testing.TB, s *Store, f func(tx *bolt.Tx) error) {
	t.Helper()
	if err := s.db.bolt.Update(f); err != nil {
		t.Fatal(err)
	}
}

// inspect reads the file as queries do.
func inspect(t testing.TB, s *Store, f func(tx *bolt.Tx)) {
	t.Helper()
	if err := s.db.view(func(tx *bolt.Tx) error { f(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

// putRawRow has the writer store a row.
func putRawRow(s *Store, bucket, k, row []byte) {
	s.intake.put(bucket, map[string][]byte{string(k): row})
}

// firstPrune waits for the pass that every start asks for.
func firstPrune(t testing.TB, s *Store) {
	t.Helper()
	if err := s.intake.wait(t.Context(), func() bool { return s.intake.prunes.finished > 0 }); err != nil {
		t.Fatal(err)
	}
}

// prune waits for a whole pass.
func prune(t testing.TB, s *Store) {
	t.Helper()
	s.intake.askPrune()
	pass := s.intake.pruneAsked()
	if err := s.intake.wait(t.Context(), func() bool { return s.intake.prunes.finished >= pass }); err != nil {
		t.Fatal(err)
	}
}

// look reads the wall clock.
func look(t testing.TB, s *Store) {
	t.Helper()
	if err := s.writer.call(t.Context(), s.time.look); err != nil {
		t.Fatal(err)
	}
}

// lose has a transition missing, as if the queue had been full.
func lose(s *Store, tr health.Transition) {
	s.intake.work(func() {
		s.intake.overflow = map[health.Hash]health.Transition{tr.Endpoint.Hash(): tr}
		s.intake.missing.add(tr.Time)
		s.intake.submitted.transitions++
	})
}

// change changes the file as the writer does.
func change(t testing.TB, s *Store, f func(tx *bolt.Tx) error) {
	t.Helper()
	var err error
	if asked := s.writer.call(t.Context(), func() { err = s.db.update(f) }); asked != nil || err != nil {
		t.Fatal(asked, err)
	}
}
