package hds_test

import (
	"slices"
	"testing"
	"time"

	"hdsd/hds"
)

// TestAPlannedEndIsNoLoss: a checker whose connection hdsd ended by plan counts as
// connected until it had time to come back. Nothing that it tried is to blame.
func TestAPlannedEndIsNoLoss(t *testing.T) {
	bubble(t, hds.Options{Planned: func(address string) bool { return address == "10.1.0.1:40000" }}, func(f *fixture) {
		planned := f.connect("a", "10.1.0.1", "z1")
		same(t, "at first", f.sink.take(), "connected a")
		other := f.connect("b", "10.1.0.2", "z1")
		same(t, "then", f.sink.take(), "connected b")
		planned.cancel()
		other.cancel()
		calls := f.sink.take()
		slices.Sort(calls)
		same(t, "at the end", calls, "disconnected b", "ended a")
		time.Sleep(2 * time.Second)
		again := f.connect("a", "10.1.0.1", "z1")
		same(t, "when it is back", f.sink.take(), "connected a")
		again.cancel()
		time.Sleep(4 * time.Second)
		same(t, "while it may still come", f.sink.take(), "ended a")
		time.Sleep(2 * time.Second)
		same(t, "when it does not come", f.sink.take(), "disconnected a")
		f.connect("a", "10.1.0.1", "z1")
		same(t, "when it comes late", f.sink.take(), "connected a")
	})
}
