package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// audience is many followers of what few checkers see.
type audience struct {
	*simulation
	followers   []*follower
	transitions int
}

// TestEveryFollowerSeesEveryTransitionOnce has followers watch, over HTTP, what
// simulated checkers see of endpoints that fail and recover; half of them
// connect again in between. What each saw has to be the history, to the letter.
func TestEveryFollowerSeesEveryTransitionOnce(t *testing.T) {
	watch(t, 100, 50, 1000)
}

// BenchmarkWatch is the same with 1,000 followers and 10,000 transitions.
func BenchmarkWatch(b *testing.B) {
	for b.Loop() {
		w, took := watch(b, 1000, 1000, 10_000)
		bytes := int64(0)
		for _, f := range w.followers {
			bytes += f.bytes
		}
		u := usageOf(b, w.PID())
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(bytes)/mega/took.Seconds(), "MB/s")
		b.ReportMetric(float64(len(w.followers)*w.transitions)/took.Seconds(), "events/s")
		b.ReportMetric(float64(u.peak)/mega, "peak-RSS-MB")
		b.ReportMetric(load(b), "load")
	}
}

// watch tells how long it took from the first flip until everyone had seen all.
func watch(t testing.TB, endpoints, followers, transitions int) (*audience, time.Duration) {
	w := &audience{simulation: simulate(t, newWorld(10, endpoints/10), 3, 3, 250*time.Millisecond, "assignment: {settle: 0.5s}"), transitions: transitions}
	w.Start()
	w.connect()
	w.until("every first verdict to be recorded", func() bool { return len(w.history()) == endpoints })
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	var ready, running sync.WaitGroup
	random := rand.New(rand.NewPCG(3, 4))
	for i := range followers {
		ready.Add(1)
		synced := sync.OnceFunc(ready.Done)
		f := &follower{url: "http://" + w.HTTP + "/v1/watch", total: transitions, synced: synced}
		if i%2 == 1 {
			f.leaveAt = transitions/4 + random.IntN(transitions/2)
		}
		w.followers = append(w.followers, f)
		running.Go(func() {
			defer synced() // nobody waits for one that failed
			if err := f.follow(ctx); err != nil {
				t.Errorf("follower %d, after %d transitions: %v", i, len(f.seen), err)
			}
		})
	}
	ready.Wait()
	began := time.Now()
	for done := endpoints; done <= transitions; done += endpoints {
		for i := range endpoints {
			w.world.flip(i)
		}
		w.until("a follower to see everything flip", func() bool { return w.followers[0].count.Load() >= int64(done) })
	}
	running.Wait()
	took := time.Since(began)
	w.compare()
	return w, took
}

// compare holds what followers saw against the history.
func (w *audience) compare() {
	w.t.Helper()
	history := w.history()
	known := len(w.world.addresses) // first verdicts, from before anyone watched
	if len(history) != known+w.transitions {
		w.t.Fatalf("the history has %d transitions, want %d", len(history), known+w.transitions)
	}
	for i, f := range w.followers {
		if !slices.Equal(f.seen, history[known:]) {
			w.t.Errorf("follower %d saw %d transitions, which are not the %d of the history", i, len(f.seen), w.transitions)
		}
	}
}

// history gives digests of all recorded transitions, in order.
func (w *audience) history() (all []uint64) {
	for token := ""; ; {
		var answer struct {
			Transitions   []json.RawMessage
			NextPageToken string
		}
		if err := w.Get("/v1/transitions?pageSize=10000&pageToken="+url.QueryEscape(token), &answer); err != nil {
			w.t.Fatal(err)
		}
		for _, raw := range answer.Transitions {
			var line bytes.Buffer
			if err := json.Compact(&line, raw); err != nil {
				w.t.Fatal(err)
			}
			all = append(all, maphash.Bytes(seed, line.Bytes()))
		}
		if token = answer.NextPageToken; token == "" {
			return all
		}
	}
}
