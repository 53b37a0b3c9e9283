package aggregate_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// bench is one cluster in which every endpoint begins up.
type bench struct {
	*aggregate.Aggregator
	now time.Duration
}

func newBench(endpoints int, zoned bool, rule aggregate.Rule, checkers ...string) *bench {
	b := &bench{Aggregator: aggregate.New(aggregate.Options{})}
	b.Tick(epoch)
	for _, c := range checkers {
		k := health.Checker{ID: c}
		if zoned {
			k.Locality.Zone = c
		}
		b.Connected(epoch, k)
	}
	for id := range health.EndpointID(endpoints) {
		b.Set(aggregate.Endpoint{ID: id, Timing: usual, Rule: rule, Cluster: "web"}, health.Verdict{Status: health.Healthy, Since: epoch})
		for _, c := range checkers {
			b.Assign(epoch, id, c)
		}
	}
	for _, c := range checkers {
		for id := range health.EndpointID(endpoints) {
			b.vote(c, id, health.Healthy)
		}
	}
	return b
}

func (b *bench) vote(checker string, id health.EndpointID, s health.Status) aggregate.Effects {
	return b.Report(epoch.Add(b.now), checker, []health.Vote{{Endpoint: id, Status: s}})
}

// wait lets time pass with its deadlines, and every checker heard.
func (b *bench) wait(d time.Duration, checkers ...string) {
	for end := b.now + d; b.now < end; {
		b.now = min(b.now+time.Second, end)
		b.Tick(epoch.Add(b.now))
		for _, c := range checkers {
			b.Report(epoch.Add(b.now), c, nil)
		}
	}
}

// TestDampingIsAsDefined compares one endpoint with the definition.
func TestDampingIsAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := aggregate.Damping{
			Suppress: rapid.SampledFrom([]float64{1000, 2000, 3500}).Draw(t, "suppress"), Reuse: 750, HalfLife: rapid.IntRange(1, 30).Draw(t, "half-life"),
		}
		b := newBench(3, false, aggregate.Rule{Damping: d}, "a")
		penalty, suppressed, up := 0.0, false, true
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pause := time.Duration(rapid.IntRange(1, 20_000).Draw(t, "ms")) * time.Millisecond
			b.wait(pause, "a")
			penalty *= math.Exp2(-pause.Seconds() / float64(d.HalfLife))
			if math.Abs(penalty-d.Reuse) < 0.01*d.Reuse || math.Abs(penalty-d.Reuse/2) < 0.01*d.Reuse {
				t.Skip("too close to call")
			}
			suppressed = suppressed && penalty >= d.Reuse
			if penalty < d.Reuse/2 {
				penalty = 0
			}
			now := rapid.Bool().Draw(t, "up")
			b.vote("a", 0, map[bool]health.Status{true: health.Healthy, false: health.Unhealthy}[now])
			if up && !now {
				penalty = min(penalty+1000, 16*d.Reuse)
				suppressed = suppressed || penalty >= d.Suppress
			}
			up = now
			want, held := up && !suppressed, 0
			if up && suppressed {
				held = 1
			}
			if got := b.Verdict(0); got.Status.Up() != want || b.Damped() != held {
				t.Fatalf("at %s it is %s (%s), %d held; the penalty is %.0f, suppressed %t, up %t", b.now, got.Status, got.Reason, b.Damped(), penalty, suppressed, up)
			}
		}
		b.vote("a", 0, health.Healthy)
		b.wait(time.Duration(4*d.HalfLife+2)*time.Second, "a")
		if got := b.Verdict(0); !got.Status.Up() {
			t.Fatalf("held for ever: %s", got.Reason)
		}
		b.wait(time.Duration(2*d.HalfLife)*time.Second, "a")
		b.Remove(0)
	})
}

// TestDampingNeverHoldsMostOfACluster: an endpoint that its votes see up is only
// down while at most half of the cluster is, and damping takes nothing down.
func TestDampingNeverHoldsMostOfACluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		b := newBench(size, false, aggregate.Rule{Damping: aggregate.Damping{Suppress: 1000, Reuse: 750, HalfLife: 5}}, "a")
		ups := map[health.EndpointID]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			b.wait(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms"))*time.Millisecond, "a")
			id := health.EndpointID(rapid.IntRange(0, size-1).Draw(t, "endpoint"))
			ups[id] = rapid.Bool().Draw(t, "up")
			b.vote("a", id, map[bool]health.Status{true: health.Healthy, false: health.Unhealthy}[ups[id]])
			down, held := 0, 0
			for id := range health.EndpointID(size) {
				up, known := ups[id]
				status := b.Verdict(id).Status
				if status.Down() {
					down++
				}
				if status.Down() && (up || !known) {
					held++
				}
				if status.Up() && known && !up {
					t.Fatalf("%d is %s although its vote says down", id, status)
				}
			}
			if held > 0 && 2*down > size {
				t.Fatalf("%d of %d are down, %d of them held", down, size, held)
			}
			if held != b.Damped() {
				t.Fatalf("%d held, but %d are said to be", held, b.Damped())
			}
		}
	})
}

// TestRestartsAreNoFlaps: an endpoint that flapped is up again when its penalty is low
// enough, though a checker restarts over and over meanwhile.
func TestRestartsAreNoFlaps(t *testing.T) {
	rule := aggregate.Rule{Damping: aggregate.Damping{Suppress: 2000, Reuse: 750, HalfLife: 3}}
	b := newBench(4, false, rule, "a", "b")
	for range 4 {
		for _, s := range []health.Status{health.Unhealthy, health.Healthy} {
			b.vote("a", 0, s)
			b.vote("b", 0, s)
			b.wait(time.Second, "a", "b")
		}
	}
	if b.Damped() != 1 {
		t.Fatalf("it does not flap: %s", b.Verdict(0).Reason)
	}
	for range 8 { // four half-lives are 12 seconds
		b.Lost("b")
		b.wait(time.Second/2, "a")
		b.Connected(epoch.Add(b.now), health.Checker{ID: "b"})
		b.wait(time.Second/2, "a")
		for id := range health.EndpointID(4) {
			b.vote("b", id, health.Healthy)
		}
		b.wait(time.Second/2, "a", "b")
	}
	if v := b.Verdict(0); v.Status != health.Healthy {
		t.Errorf("%s after four half-lives: %s", v.Status, v.Reason)
	}
}
