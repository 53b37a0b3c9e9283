package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTrustIsKept(t *testing.T) {
	one := Trust{Level: Distrusted, Reason: "überall", Author: "ann@here", Since: day}
	other := Trust{Level: Trusted, Reason: "why", Author: "bob", Since: day.Add(time.Hour)}
	dir := t.TempDir()
	s := open(t, dir)
	for _, step := range []struct {
		name string
		do   map[string]*Trust
		want map[string]Trust
	}{
		{"nothing", nil, map[string]Trust{}},
		{"two", map[string]*Trust{"checker-1": &one, "checker-2": &other}, map[string]Trust{"checker-1": one, "checker-2": other}},
		{"one is replaced, one ends", map[string]*Trust{"checker-1": &other, "checker-2": nil, "checker-3": nil}, map[string]Trust{"checker-1": other}},
		{"all end", map[string]*Trust{"checker-1": nil}, map[string]Trust{}},
	} {
		for checker, said := range step.do {
			s.SaveTrust(checker, said)
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
