package main

import (
	"testing"

	tested "hdsd/test/fleet"
)

// TestTwoRevisionsTakeTurns: each flips endpoints of its own, and its subscribers are told.
func TestTwoRevisionsTakeTurns(t *testing.T) {
	binary := tested.Plain(t)
	for _, s := range []scenario{
		&pushes{title: "flips", subscribers: 2, clusters: 4, delta: true},
		&pushes{title: "first sync", subscribers: 2, clusters: 4, delta: true, firstSync: true},
		&echoes{entries: 20},
	} {
		t.Run(s.name(), func(t *testing.T) {
			o, err := run(&lab{dir: t.TempDir(), turns: 1}, s, binary, binary)
			if err != nil {
				t.Fatal(err)
			}
			for _, each := range []string{ours, base} {
				if values := o.values[each]; len(values) != len(s.figures()) || len(values[0]) != 1 {
					t.Errorf("%s has %v", each, values)
				}
			}
		})
	}
}
