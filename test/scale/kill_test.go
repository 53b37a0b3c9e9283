package scale

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"hdsd/test/fleet"
)

// reader queries the newest transitions without end, and keeps what it was shown.
type reader struct {
	s *simulation

	mu    sync.Mutex
	shown []string // of the latest answer
}

func (r *reader) read(ctx context.Context) {
	for ctx.Err() == nil {
		if page, err := newest(r.s, "100"); err == nil { // hdsd may be down
			r.mu.Lock()
			r.shown = page
			r.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *reader) latest() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// newest returns so many transitions, as they are shown.
func newest(s *simulation, count string) (all []string, err error) {
	var answer struct{ Transitions []json.RawMessage }
	err = s.Get("/v1/transitions?newestFirst=true&pageSize="+count, &answer)
	for _, t := range answer.Transitions {
		all = append(all, string(t))
	}
	return all, err
}

// TestKill9OfACoordinator kills hdsd again and again while endpoints fail and recover.
// Nothing goes down that is up, no health is forgotten, and what a query has shown is
// there. The burst of the first start may wait for the disk for seconds; the first kill comes
// after that: what was published and still waits for the disk is unknown after a kill.
// HDSD_SCALE=full has 100,000 endpoints and 200 checkers, for a minute and a half;
// HDSD_SCALE=kills has 200 kills.
func TestKill9OfACoordinator(t *testing.T) {
	beside(t)
	w, size, rounds, length, every := newWorld(10, 60), 6, 2, time.Minute, 100*time.Millisecond
	if full() {
		w, size, rounds, length, every = newWorld(clusters, endpoints/clusters), checkers, 1000, 90*time.Second, 20*time.Millisecond
	}
	if os.Getenv("HDSD_SCALE") == "kills" {
		rounds, length = 200, time.Hour
	}
	w.check = "{timeout: 0.5s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}"
	s := simulate(t, w, size, 3, time.Second, "")
	s.Binary = fleet.Plain(t)
	s.Start()
	s.connect()
	s.until("every endpoint to be healthy", s.allHealthy)
	j, r := newJudge(t, s), &reader{s: s}
	j.settle(patience)
	s.until("what the start has decided to be on disk", func() bool { return s.Metric("hdsd_history_pending") == 0 })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { r.read(ctx) })
	running.Go(func() { flipping(ctx, j, every) })

	seed := uint64(time.Now().UnixNano())
	random, began := rand.New(rand.NewPCG(seed, 0)), time.Now()
	var starts []time.Duration
	for n := 0; n < rounds && time.Since(began) < length && !t.Failed(); n++ {
		flipped, before := j.flips(), r.latest()
		s.until("the history to show something new", func() bool { return j.flips() > flipped && !slices.Equal(r.latest(), before) })
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) // the moment of the kill
		j.interrupt()
		s.Kill()
		shown, killed := r.latest(), time.Now()
		s.Start()
		starts = append(starts, time.Since(killed))
		j.resume()
		there, err := newest(s, "10000")
		if err != nil {
			t.Fatal(err)
		}
		for _, transition := range shown {
			if !slices.Contains(there, transition) {
				t.Errorf("round %d, seed %d: lost: %s", n, seed, transition)
			}
		}
	}
	cancel()
	running.Wait()
	j.settle(patience)
	if len(r.latest()) == 0 {
		t.Error("no transition was shown")
	}
	slices.Sort(starts)
	t.Logf("%d endpoints, killed %d times in %v; ready after %v (median), %v at most; %d changes of health, %v; load %.1f", len(w.addresses),
		len(starts), time.Since(began).Round(time.Second), starts[len(starts)/2].Round(10*time.Millisecond), starts[len(starts)-1].Round(10*time.Millisecond), j.flips(), j, load(t))
}

// flipping has an endpoint fail or recover every so often.
func flipping(ctx context.Context, j *judge, every time.Duration) {
	random, tick := rand.New(rand.NewPCG(1, 2)), time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.flip(random.IntN(len(j.world.addresses)))
		}
	}
}
