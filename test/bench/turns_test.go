package main

import (
	"testing"
	"time"

	tested "hdsd/test/fleet"
)

// TestReplicasBesideOne covers works of replicas, of the smallest sizes: all contenders have values.
func TestReplicasBesideOne(t *testing.T) {
	binary := tested.Plain(t)
	for _, s := range []scenario{
		&sharedPushes{endpoints: 30, trips: 3},
		&sharedFleet{endpoints: 60, clusters: 6, checkers: 6, rest: time.Second / 10},
	} {
		t.Run(s.name(), func(t *testing.T) {
			o, err := run(&lab{dir: t.TempDir(), turns: 1, lives: 1, binary: binary}, s, binary, "")
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range s.figures() {
				if len(o.values[ours][i]) != 1 || f.floor != "" && len(o.values[f.floor][i]) != 1 {
					t.Errorf("%s: %v of hdsd, %v of %s", f.name, o.values[ours][i], o.values[f.floor], f.floor)
				}
			}
		})
	}
}

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
