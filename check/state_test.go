package check

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"hdsd/health"
)

const (
	up      = health.Healthy
	down    = health.Unhealthy
	timeout = health.Timeout
)

// step is a probe's outcome, and what is so after it.
type step struct {
	outcome Outcome
	status  health.Status
	pending bool
}

var stateTable = []struct {
	name               string
	unhealthy, healthy uint32
	before             health.Status // of the host; UNHEALTHY where it is new
	steps              []step
}{
	{"the first pass counts at once", 3, 3, down, []step{{Passed, up, false}}},
	{"the first failure of a new endpoint changes nothing", 3, 3, down, []step{{Failed, down, false}}},
	{"the first timeout of a new endpoint shows at once", 3, 3, down, []step{{TimedOut, timeout, false}}},
	{"the first network failure of a new endpoint", 3, 3, down, []step{{NetworkFailure, down, false}}},
	{"an unexpected status counts at once", 3, 3, down, []step{{Passed, up, false}, {Failed, down, false}}},
	{"a retriable status is counted", 3, 3, down, []step{
		{Passed, up, false}, {Retriable, up, true}, {Retriable, up, true}, {Retriable, down, false},
	}},
	{"timeouts and network failures are counted together; the one that crosses names it", 3, 1, down, []step{
		{Passed, up, false}, {TimedOut, up, true}, {NetworkFailure, up, true}, {TimedOut, timeout, false},
	}},
	{"network failure crosses", 2, 1, down, []step{
		{Passed, up, false}, {TimedOut, up, true}, {NetworkFailure, down, false},
	}},
	{"a pass starts the count anew", 2, 1, down, []step{
		{Passed, up, false}, {TimedOut, up, true}, {Passed, up, false}, {TimedOut, up, true}, {TimedOut, timeout, false},
	}},
	{"while down, each failure names itself", 1, 2, down, []step{
		{Passed, up, false},
		{TimedOut, timeout, false},
		{Failed, down, false},
		{TimedOut, timeout, false},
		{NetworkFailure, down, false},
		{Retriable, down, false},
	}},
	{"coming back takes the healthy threshold", 1, 3, down, []step{
		{Failed, down, false}, {Passed, down, true}, {Passed, down, true}, {Passed, up, false},
	}},
	{"a failure on the way back starts the count anew", 1, 2, down, []step{
		{Failed, down, false}, {Passed, down, true}, {NetworkFailure, down, false}, {Passed, down, true}, {Passed, up, false},
	}},
	{"a timeout stays named on the way back", 1, 2, down, []step{
		{TimedOut, timeout, false}, {Passed, timeout, true}, {Passed, up, false},
	}},
	{"going down and up twice", 2, 2, down, []step{
		{Passed, up, false}, {TimedOut, up, true}, {TimedOut, timeout, false},
		{Passed, timeout, true}, {Passed, up, false},
		{NetworkFailure, up, true}, {NetworkFailure, down, false},
		{Passed, down, true}, {Passed, up, false},
	}},
	{"degraded is reported as unhealthy", 3, 1, down, []step{
		{Degraded, down, false}, {Passed, up, false}, {Degraded, down, false}, {TimedOut, down, true}, {Passed, up, false},
	}},
	{"a new check on a healthy host starts healthy", 2, 2, up, []step{{TimedOut, up, true}, {TimedOut, timeout, false}}},
	{"a new check on a host that timed out", 2, 2, timeout, []step{{Passed, up, false}}},
}

func TestState(t *testing.T) {
	for _, test := range stateTable {
		t.Run(test.name, func(t *testing.T) {
			p := &Policy{UnhealthyThreshold: test.unhealthy, HealthyThreshold: test.healthy}
			s := NewState(test.before)
			if s.Status() != test.before {
				t.Errorf("starts %s, want %s", s.Status(), test.before)
			}
			for i, step := range test.steps {
				var pending bool
				s, pending = s.Apply(p, step.outcome)
				if s.Status() != step.status || pending != step.pending {
					t.Fatalf("step %d: %s, pending %t; want %s, %t", i, s.Status(), pending, step.status, step.pending)
				}
			}
		})
	}
}

// Whatever happened before, thresholds bound how long a change may take.
func TestStateFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Policy{
			UnhealthyThreshold: rapid.Uint32Range(1, 5).Draw(t, "unhealthy"),
			HealthyThreshold:   rapid.Uint32Range(1, 5).Draw(t, "healthy"),
		}
		s := NewState(health.Unhealthy)
		for _, o := range rapid.SliceOfN(rapid.Uint8Range(0, uint8(TimedOut)), 0, 50).Draw(t, "outcomes") {
			s, _ = s.Apply(p, Outcome(o))
		}
		passed, failed := s, s
		for range p.HealthyThreshold {
			passed, _ = passed.Apply(p, Passed)
		}
		for range p.UnhealthyThreshold {
			failed, _ = failed.Apply(p, TimedOut)
		}
		if passed.Status() != health.Healthy || failed.Status() != health.Timeout {
			t.Fatalf("after enough passes %s, after enough timeouts %s", passed.Status(), failed.Status())
		}
	})
}

func half(n int64) int64 { return n / 2 }

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		policy  Policy
		outcome Outcome
		pending bool
		want    time.Duration
	}{
		"healthy":                  {Policy{Interval: time.Minute, HealthyInterval: time.Second}, Passed, false, time.Second},
		"degraded":                 {Policy{Interval: time.Minute, HealthyInterval: time.Second}, Degraded, false, time.Second},
		"on the way up":            {Policy{HealthyEdge: time.Minute, HealthyInterval: time.Second}, Passed, true, time.Minute},
		"on the way down":          {Policy{EdgeInterval: time.Minute, Interval: time.Second}, TimedOut, true, time.Minute},
		"down":                     {Policy{Interval: time.Minute, HealthyInterval: time.Second}, Failed, false, time.Minute},
		"jitter":                   {Policy{HealthyInterval: time.Second, Jitter: time.Second}, Passed, false, 1500 * time.Millisecond},
		"jitter by percent":        {Policy{HealthyInterval: time.Second, JitterPercent: 20}, Passed, false, 1100 * time.Millisecond},
		"both jitters":             {Policy{HealthyInterval: time.Second, JitterPercent: 20, Jitter: time.Second}, Passed, false, 1600 * time.Millisecond},
		"never without a pause":    {Policy{}, Passed, false, time.Millisecond},
		"too large for the clocks": {Policy{Interval: longest, JitterPercent: 1 << 31, Jitter: longest}, Failed, false, longest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.policy.Next(test.outcome, test.pending, half); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	for jitter, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second / 2} {
		if got := (&Policy{InitialJitter: jitter}).First(half); got != want {
			t.Errorf("initial jitter %s: got %s, want %s", jitter, got, want)
		}
	}
}

func TestPolicyDefaults(t *testing.T) {
	seconds := func(n int64) *durationpb.Duration { return &durationpb.Duration{Seconds: n} }
	for name, test := range map[string]struct {
		traffic bool
		edit    func(*corev3.HealthCheck)
		want    [4]time.Duration // healthy, healthy with a change pending, unhealthy, unhealthy with a change pending; in seconds
	}{
		"interval alone":              {false, func(*corev3.HealthCheck) {}, [4]time.Duration{60, 60, 60, 60}},
		"no_traffic_interval":         {false, func(c *corev3.HealthCheck) { c.NoTrafficInterval = seconds(3) }, [4]time.Duration{3, 3, 3, 3}},
		"no_traffic_healthy_interval": {false, func(c *corev3.HealthCheck) { c.NoTrafficInterval, c.NoTrafficHealthyInterval = seconds(3), seconds(4) }, [4]time.Duration{4, 3, 3, 3}},
		"traffic":                     {true, func(c *corev3.HealthCheck) { c.NoTrafficInterval = seconds(3) }, [4]time.Duration{2, 2, 2, 2}},
		"unhealthy_interval":          {true, func(c *corev3.HealthCheck) { c.UnhealthyInterval = seconds(5) }, [4]time.Duration{2, 2, 5, 5}},
		"unhealthy_edge_interval":     {true, func(c *corev3.HealthCheck) { c.UnhealthyInterval, c.UnhealthyEdgeInterval = seconds(5), seconds(6) }, [4]time.Duration{2, 2, 5, 6}},
		"healthy_edge_interval":       {true, func(c *corev3.HealthCheck) { c.HealthyEdgeInterval = seconds(7) }, [4]time.Duration{2, 7, 2, 2}},
	} {
		c := &corev3.HealthCheck{
			Timeout: seconds(1), Interval: seconds(2), UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		}
		test.edit(c)
		p, err := newPolicy(c, test.traffic)
		got := [4]time.Duration{p.HealthyInterval / time.Second, p.HealthyEdge / time.Second, p.Interval / time.Second, p.EdgeInterval / time.Second}
		if err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
		c.IntervalJitter = durationpb.New(-1)
		if _, err := newPolicy(c, test.traffic); err == nil {
			t.Errorf("%s: a negative jitter passes", name)
		}
	}
}
