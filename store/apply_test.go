package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hdsd/log"
	"hdsd/log/sample"
)

// TestTheStateIsWhatTheEntriesComeTo: the stored state after a restart is that of log.State.Apply, if the events of
// the entries are stored, too. Events of one time get times of their own, some nanoseconds later.
func TestTheStateIsWhatTheEntriesComeTo(t *testing.T) {
	for seed := range uint64(20) {
		var clock wall
		clock.set(sample.Start)
		dir := t.TempDir()
		s := open(t, dir, clock.keep)
		var want log.State
		for _, e := range sample.Entries(rand.New(rand.NewPCG(seed, 1)), 30) {
			s.Apply(e)
			s.AppendEvents(EventsOf(e))
			want.Apply(e)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, clock.keep)
		got := stateOf(t, s)
		options := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Microsecond), cmpopts.SortSlices(func(a, b log.Override) bool { return a.Scope.Compare(b.Scope) < 0 })}
		if diff := cmp.Diff(want, got, options); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
