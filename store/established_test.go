package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/log"
)

func TestEstablishedAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if found := stateOf(t, s).Established; len(found) > 0 {
		t.Errorf("at first: %v", found)
	}
	s.intake.saveEstablished(map[string]*log.Established{
		"a": {Identity: "spiffe://prod/a", Seen: day}, "b": {Seen: day.Add(time.Second)}, "gone": {Seen: day},
		"late": {Seen: day, Founder: true},
	})
	s.intake.saveEstablished(map[string]*log.Established{"gone": nil, "never": nil})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	want := map[string]log.Established{"a": {Identity: "spiffe://prod/a", Seen: day}, "b": {Seen: day.Add(time.Second)}, "late": {Seen: day, Founder: true}}
	if diff := cmp.Diff(want, stateOf(t, s).Established); diff != "" {
		t.Error(diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
