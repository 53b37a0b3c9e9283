package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"hdsd/test/fleet"
)

// soakTime is how long TestSoak lasts without SOAK.
const soakTime = 40 * time.Second

// steadyWithin is how soon after the last fault every verdict has to be right.
const steadyWithin = 30 * time.Second

// soakPeak bounds the memory of hdsd, without the race detector.
const soakPeak = 400 << 20

// soak is an hdsd under faults.
type soak struct {
	*simulation
	t      *testing.T
	seed   uint64
	judge  *judge
	counts map[string]int
	mu     sync.Mutex    // guards counts
	down   time.Duration // how long hdsd was down, stopped or starting, in all
}

// TestSoak has everything happen at once that a seed draws: endpoints fail, checkers lie,
// restart and flood, callers never read, hdsd is killed, stopped and told to reload. All
// the time, no endpoint goes down that is up, none stays up that is down, and the history
// of each is one chain. SOAK=1h runs for an hour, SOAK_SEED=N repeats a run.
func TestSoak(t *testing.T) {
	t.Parallel()
	length, seed := soakTime, uint64(time.Now().UnixNano())
	for name, read := range map[string]func(string) error{
		"SOAK":      func(text string) (err error) { length, err = time.ParseDuration(text); return err },
		"SOAK_SEED": func(text string) (err error) { seed, err = strconv.ParseUint(text, 10, 64); return err },
	} {
		if text := os.Getenv(name); text != "" {
			if err := read(text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("SOAK_SEED=%d", seed)
	s := newSoak(t, seed)
	s.run(length)
	began := time.Now()
	s.judge.settle(steadyWithin)
	steady := time.Since(began)
	s.checkHistory()
	peak := usageOf(t, s.PID()).peak
	t.Logf("%v: %d changes of health, %v", length, s.judge.flips(), s.judge)
	t.Logf("steady %v after the last fault; hdsd was down for %v; peak RSS %d MiB, load %.1f", steady.Round(100*time.Millisecond), s.down.Round(time.Second), peak>>20, load(t))
	for _, lane := range lanes {
		for _, f := range lane {
			t.Logf("%5d x %s", s.counts[f.name], f.name)
		}
	}
	if peak > soakPeak {
		t.Errorf("peak RSS is %d MiB, more than %d", peak>>20, soakPeak>>20)
	}
}

// newSoak starts an hdsd with 600 endpoints in ten clusters and six checkers in three
// zones, and waits until all is well.
func newSoak(t *testing.T, seed uint64) *soak {
	w := newWorld(10, 60)
	w.check = "{timeout: 0.5s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /healthz}}"
	s := &soak{simulation: simulate(t, w, 6, 3, time.Second, ""), t: t, seed: seed, counts: map[string]int{}}
	s.Binary = fleet.Plain(t)
	s.Start()
	s.connect()
	s.until("every endpoint to be healthy", s.allHealthy)
	// Strangers that come with the first checkers would be as good as these: whoever of them leaves, leaves seats.
	s.until("all checkers to be established", s.allEstablished)
	s.judge = newJudge(t, s.simulation)
	return s
}

// run has faults of all lanes happen at once, and endpoints fail and recover all along.
func (s *soak) run(length time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), length)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.flipping(ctx) })
	for i := range lanes[1:] {
		running.Go(func() { s.lane(ctx, i+1) })
	}
	s.lane(ctx, 0) // here, since it may end the test
	running.Wait()
}

// lane draws one fault of a lane after the other.
func (s *soak) lane(ctx context.Context, i int) {
	random := rand.New(rand.NewPCG(s.seed, uint64(i)))
	for ctx.Err() == nil && !s.t.Failed() {
		f := lanes[i][random.IntN(len(lanes[i]))]
		s.mu.Lock()
		s.counts[f.name]++
		s.mu.Unlock()
		f.happens(s, random)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(500+random.IntN(2000)) * time.Millisecond):
		}
	}
}

// flipping has an endpoint fail or recover five times a second.
func (s *soak) flipping(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.seed, uint64(len(lanes))))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.judge.flip(random.IntN(len(s.world.addresses)))
		}
	}
}

// interrupted runs what keeps hdsd from working for a while.
func (s *soak) interrupted(happens func()) {
	began := time.Now()
	s.judge.interrupt()
	happens()
	s.judge.resume()
	s.down += time.Since(began)
}

// checkHistory holds the recorded transitions of each endpoint to be one chain, which ends
// with its health once the disk has the last one.
func (s *soak) checkHistory() {
	s.t.Helper()
	transitions := 0
	for i := range s.world.clusters {
		name := fmt.Sprintf("cluster-%04d", i)
		s.until("the history of "+name+" to end with the present health", func() bool {
			last := s.chains(name)
			for address, e := range s.Endpoints(name) {
				if e.Health != last[address] {
					return false
				}
			}
			return true
		})
		transitions += len(s.Transitions(name))
	}
	s.t.Logf("%d transitions are recorded", transitions)
}

// chains returns the health to which the history of each endpoint of a cluster has come.
func (s *soak) chains(cluster string) map[string]string {
	s.t.Helper()
	last := map[string]string{}
	for _, tr := range s.Transitions(cluster) {
		if before, ok := last[tr.Address]; ok && before != tr.From {
			s.t.Errorf("%s %s went from %s at %s, but had come to %s", cluster, tr.Address, tr.From, tr.Time, before)
		}
		last[tr.Address] = tr.To
	}
	return last
}
