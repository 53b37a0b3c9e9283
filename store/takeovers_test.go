package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/log"
)

func TestTakeoversAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if found := stateOf(t, s); found.GivenBack != nil || found.TakenOver != nil {
		t.Errorf("at first: %v, %v", found.GivenBack, found.TakenOver)
	}
	s.Apply(&log.Entry{TakenOver: []string{"a", "b", "c", "gone"}})
	s.Apply(&log.Entry{GivenBack: []string{"b", "c"}, Removed: []string{"gone", "never"}})
	s.Apply(&log.Entry{TakenOver: []string{"c"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	found := stateOf(t, s)
	if diff := cmp.Diff(map[string]bool{"b": true}, found.GivenBack) + cmp.Diff(map[string]bool{"a": true, "c": true}, found.TakenOver); diff != "" {
		t.Error(diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
