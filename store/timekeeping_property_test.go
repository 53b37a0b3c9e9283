package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/health"
)

// TestNoClockDeletesHistory: whatever the clock does, and however often hdsd starts,
//
//   - only transitions older than the retention are deleted, the oldest first;
//   - queries find each one that is kept by its date;
//   - none is kept while hdsd runs for three times the retention.
func TestNoClockDeletesHistory(t *testing.T) {
	const retention = 100 * time.Hour
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{t: t, dir: t.TempDir(), clocks: make(chan Clock, 1000)}
		m.start()
		defer func() { _ = m.store.Close() }()
		var happened, ran []time.Duration // when each change was
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				look(t, m.store)
				prune(t, m.store)
				all := queryAll(t, m.store, Query{})
				first := m.count - len(all)
				for i, tr := range all {
					if want := fmt.Sprint(first + i); tr.Reason != want {
						rt.Fatalf("change %s where %s is next", tr.Reason, want)
					}
				}
				for _, tr := range all {
					found := queryAll(t, m.store, Query{Start: tr.Time, End: tr.Time.Add(1)})
					if !slices.ContainsFunc(found, func(f health.Transition) bool { return f.Reason == tr.Reason }) {
						rt.Fatalf("change %s of %v is not found by its time: %v", tr.Reason, tr.Time, found)
					}
				}
				if first > 0 {
					if age := time.Duration(m.passed.Load()) - happened[first-1]; age < retention {
						rt.Fatalf("change %d is deleted after %v", first-1, age)
					}
				}
				if first < m.count-1 {
					if age := time.Duration(m.run.Load()) - ran[first]; age > 3*retention {
						rt.Fatalf("change %d is kept while hdsd ran for %v", first, age)
					}
				}
				if last := len(all) - 1; last >= 0 && m.wrong.Load() == 0 && !m.store.Clock().Doubted {
					if got := heldAt(t, m.store, endpoint("web", "a", "x"), m.now()); got.Reason != all[last].Reason {
						rt.Fatalf("at present it is as after change %q, want %s", got.Reason, all[last].Reason)
					}
				}
			},
			"runs": func(rt *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(rt, "times") {
					passed := int64(time.Duration(rapid.IntRange(1, 60).Draw(rt, "hours")) * time.Hour)
					m.passed.Add(passed)
					m.run.Add(passed)
					happened, ran = append(happened, time.Duration(m.passed.Load())), append(ran, time.Duration(m.run.Load()))
					m.flip()
				}
			},
			"the clock is set": func(rt *rapid.T) {
				m.wrong.Store(int64(rapid.SampledFrom([]time.Duration{0, 0, 0, year, -year, 50 * year, -50 * year}).Draw(rt, "wrong")))
			},
			"restarts": func(rt *rapid.T) {
				m.restart(rapid.SampledFrom([]time.Duration{0, time.Minute, 9 * time.Hour, 30 * time.Hour, 1000 * time.Hour}).Draw(rt, "off"))
			},
		})
	})
}
