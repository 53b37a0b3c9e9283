package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/log"
)

func TestTrustIsKept(t *testing.T) {
	trust := log.Trust{Level: log.Distrusted, Reason: "überall", Author: "ann@here", Since: day}
	other := log.Trust{Level: log.Trusted, Reason: "why", Author: "bob", Since: day.Add(time.Hour)}
	dir := t.TempDir()
	s := open(t, dir)
	for _, step := range []struct {
		name string
		do   map[string]*log.Trust
		want map[string]log.Trust
	}{
		{"nothing", nil, map[string]log.Trust{}},
		{"two", map[string]*log.Trust{"checker-1": &trust, "checker-2": &other}, map[string]log.Trust{"checker-1": trust, "checker-2": other}},
		{"one is replaced, one ends", map[string]*log.Trust{"checker-1": &other, "checker-2": nil, "checker-3": nil}, map[string]log.Trust{"checker-1": other}},
		{"all end", map[string]*log.Trust{"checker-1": nil}, map[string]log.Trust{}},
	} {
		for checker, said := range step.do {
			s.intake.saveTrust(checker, said)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		if diff := cmp.Diff(step.want, stateOf(t, s).Trust); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
