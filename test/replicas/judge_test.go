package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/test/scale"
)

// The world has clusters of endpoints of three kinds.
const (
	clusters     = 8
	clusterSize  = 12
	steady       = clusterSize     // endpoints below this one never change; every sixth of them is down
	operated     = 2 * clusterSize // from steady to this one, endpoints are healthy, and operators override them
	changeable   = 2               // of the rest, every second one fails and recovers
	dwell        = time.Second     // the least time from a decision to the next change: all checkers have reported then
	noticeWindow = 3 * time.Second // the longest time from a change to what all replicas publish, without faults
)

func isSteadilyDown(endpoint int) bool { return endpoint < steady && endpoint%6 == 1 }
func isOperated(endpoint int) bool     { return endpoint >= steady && endpoint < operated }
func changes(endpoint int) bool        { return endpoint >= operated && endpoint%changeable == 0 }

// judge knows how the endpoints are and were, and looks at what replicas publish.
type judge struct {
	t     testing.TB
	world *scale.World

	mu       sync.Mutex
	truths   []truth       // by endpoint; guarded by mu
	settled  bool          // all endpoints had their first health; guarded by mu
	fault    time.Time     // the beginning of a fault; zero: none; guarded by mu
	longest  time.Duration // from a change to its publication, since the fault began; guarded by mu
	changed  int           // changes of all endpoints; guarded by mu
	received int           // of all data planes; guarded by mu
}

// truth is how an endpoint is.
type truth struct {
	down    bool
	times   []time.Time // of its changes
	decided time.Time   // when a replica published the latest change; zero: none has
}

func newJudge(t testing.TB, w *scale.World) *judge {
	j := &judge{t: t, world: w, truths: make([]truth, w.Size())}
	for i := range j.truths {
		j.truths[i].down, j.truths[i].decided = isSteadilyDown(i), time.Now()
		w.Set(i, isSteadilyDown(i))
	}
	return j
}

// isTrue reports whether an endpoint has had a health since a time.
func (k *truth) isTrue(down bool, since time.Time) bool {
	state := k.down
	for _, changed := range slices.Backward(k.times) {
		if state == down {
			return true
		}
		if changed.Before(since) {
			return false
		}
		state = !state
	}
	return state == down
}

// take judges a health that a data plane gets.
func (j *judge) take(now time.Time, replica string, endpoint int, status corev3.HealthStatus, behind bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.received++
	k := &j.truths[endpoint]
	if !j.settled || isOperated(endpoint) {
		return
	}
	since := now
	if !j.fault.IsZero() {
		since = j.fault
	}
	down := status == corev3.HealthStatus_UNHEALTHY
	if !down && status != corev3.HealthStatus_HEALTHY || !k.isTrue(down, since.Add(-noticeWindow)) {
		j.t.Errorf("%s: %s publishes that %s is %v, and it has not been since %s (changes: %v)", clock(now), replica, j.world.Address(endpoint), status,
			clock(since.Add(-noticeWindow)), k.times[max(0, len(k.times)-4):])
	}
	if k.decided.IsZero() && !behind && down == k.down {
		k.decided = now
		j.longest = max(j.longest, now.Sub(k.times[len(k.times)-1]))
	}
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// change lets an endpoint fail or recover whose latest change was decided a while ago. It returns false without one.
func (j *judge) change(random *rand.Rand) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	var candidates []int
	for i := range j.truths {
		if k := &j.truths[i]; changes(i) && !k.decided.IsZero() && time.Since(k.decided) > dwell {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return false
	}
	endpoint := candidates[random.IntN(len(candidates))]
	k := &j.truths[endpoint]
	k.down, k.decided, k.times = !k.down, time.Time{}, append(k.times, time.Now())
	j.changed++
	j.world.Set(endpoint, k.down)
	return true
}

// begin notes the beginning of a fault.
func (j *judge) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault, j.longest = time.Now(), 0
}

// end notes that all replicas publish the truth, and returns the longest wait for a decision.
func (j *judge) end() (longest time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for i := range j.truths {
		if k := &j.truths[i]; k.decided.IsZero() { // by a replica that was behind
			k.decided, j.longest = now, max(j.longest, now.Sub(k.times[len(k.times)-1]))
		}
	}
	j.settled, j.fault = true, time.Time{}
	return j.longest
}

// wrong returns an endpoint of which a plane does not have the truth; empty without one.
func (j *judge) wrong(p *plane) string {
	j.mu.Lock()
	var down []bool
	for i := range j.truths {
		down = append(down, j.truths[i].down)
	}
	j.mu.Unlock()
	for i := range down {
		if isOperated(i) {
			continue
		}
		want := corev3.HealthStatus_HEALTHY
		if down[i] {
			want = corev3.HealthStatus_UNHEALTHY
		}
		if got, connected := p.has(i); got != want || !connected {
			return fmt.Sprintf("%s says that %s is %v, and it is %v (connected: %v)", p.replica, j.world.Address(i), got, want, connected)
		}
	}
	return ""
}

// check compares a history with the changes.
func (j *judge) check(history []transition) {
	j.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := map[string][]*transition{}
	for i := range history {
		entries[history[i].Address] = append(entries[history[i].Address], &history[i])
	}
	for i := range j.truths {
		if address := j.world.Address(i); !isOperated(i) {
			j.checkEndpoint(address, &j.truths[i], entries[address])
		}
	}
}

// checkEndpoint compares the history of an endpoint with its changes.
func (j *judge) checkEndpoint(address string, k *truth, history []*transition) {
	j.t.Helper()
	for i, h := range history {
		if i > 0 && (h.To == h.From || h.From != history[i-1].To) {
			j.t.Errorf("the history of %s has %s -> %s after %s, at %s: %s", address, h.From, h.To, history[i-1].To, h.Time, h.Reason)
		}
	}
	if len(history) == 1+len(k.times) {
		return
	}
	var changes, found strings.Builder
	for _, changed := range k.times {
		fmt.Fprintf(&changes, " %s", clock(changed.UTC()))
	}
	for _, h := range history {
		fmt.Fprintf(&found, "\n\t%s %s -> %s: %s", h.Time, h.From, h.To, h.Reason)
	}
	j.t.Errorf("the history of %s has %d transitions, want %d; its changes are at%s; the history:%s", address, len(history), 1+len(k.times), changes.String(), found.String())
}

// drive changes endpoints, one in each interval, until ctx ends. It tells the checkers.
func (j *judge) drive(ctx context.Context, gate *sync.RWMutex, interval time.Duration, seed uint64, tell func()) {
	random, tick := rand.New(rand.NewPCG(seed, 1)), time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		gate.RLock()
		if j.change(random) {
			tell()
		}
		gate.RUnlock()
	}
}
