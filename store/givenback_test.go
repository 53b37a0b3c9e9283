package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGivenBackClustersAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if found := stateOf(t, s).GivenBack; len(found) > 0 {
		t.Errorf("at first: %v", found)
	}
	s.intake.saveGivenBack(map[string]bool{"a": true, "b": true, "never": false})
	s.intake.saveGivenBack(map[string]bool{"b": false, "c": true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if diff := cmp.Diff(map[string]bool{"a": true, "c": true}, stateOf(t, s).GivenBack); diff != "" {
		t.Error(diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
