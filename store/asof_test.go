package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hdsd/health"
)

func heldAt(t *testing.T, s *Store, e health.Endpoint, at time.Time) health.Verdict {
	t.Helper()
	held, err := s.AsOf([]health.Endpoint{e}, at)
	if err != nil {
		t.Fatal(err)
	}
	return held[0]
}

func TestAsOf(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	e, never := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "a", "10.0.0.2:80")
	first := flip(e, 0)
	first.From = health.Unknown
	all := []health.Transition{first, flip(e, 10), flip(e, 20)}
	s.Append(all)
	flush(t, s)
	at := func(n float64) time.Time { return day.Add(time.Duration(n * float64(time.Second))) }
	for n, want := range map[float64]health.Transition{0: all[0], 9.999: all[0], 10: all[1], 19: all[1], 20: all[2], 1e6: all[2]} {
		if diff := cmp.Diff(verdict(&want), heldAt(t, s, e, at(n))); diff != "" {
			t.Errorf("at %v: %s", n, diff)
		}
	}
	if got := heldAt(t, s, e, at(-1)); got.Status != health.Unknown || !strings.Contains(got.Reason, "the history began later") {
		t.Errorf("before the history: %+v", got)
	}
	if got := heldAt(t, s, never, at(5)); got.Status != health.Unknown || got.Reason != "there was no verdict yet" {
		t.Errorf("never judged: %+v", got)
	}
}

// TestAsOfAtTheEdge: the first transition kept still tells the verdict before it.
func TestAsOfAtTheEdge(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	flapping, steady, fresh := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "a", "10.0.0.2:80"), endpoint("web", "a", "10.0.0.3:80")
	born := flip(fresh, 3000)
	born.From = health.Unknown
	now.set(day.Add(3000 * time.Second))
	s.Append([]health.Transition{flip(flapping, 0), flip(steady, 1), flip(flapping, 10), flip(flapping, 2001), born})
	flush(t, s)
	now.set(day.Add(time.Hour + 1000*time.Second))
	prune(t, s)
	at := day.Add(1500 * time.Second)
	if got := heldAt(t, s, flapping, at); got.Status != health.Healthy || !got.Since.IsZero() || !strings.Contains(got.Reason, "older than") {
		t.Errorf("between what is kept and what is not: %+v", got)
	}
	last := flip(steady, 1)
	if diff := cmp.Diff(verdict(&last), heldAt(t, s, steady, at)); diff != "" {
		t.Error("the current health is from before the edge:", diff)
	}
	if got := heldAt(t, s, fresh, at); got.Status != health.Unknown || got.Reason != "there was no verdict yet" {
		t.Errorf("before the first verdict: %+v", got)
	}
	if got := heldAt(t, s, steady, day.Add(500*time.Second)); !strings.Contains(got.Reason, "the history began later") {
		t.Errorf("before the edge: %+v", got)
	}
	spent, err := s.TimeInStatus([]health.Endpoint{flapping, fresh}, day, day.Add(3100*time.Second))
	want := []StatusTimes{{Transitions: 1}, {Transitions: 1}}
	// day + 1000 s is the edge.
	want[0].Durations[health.Unknown], want[0].Durations[health.Healthy], want[0].Durations[health.Unhealthy] = 1000*time.Second, 1001*time.Second, 1099*time.Second
	want[1].Durations[health.Unknown], want[1].Durations[health.Healthy] = 3000*time.Second, 100*time.Second
	if diff := cmp.Diff(want, spent); err != nil || diff != "" {
		t.Error(diff, err)
	}
}

func TestEndpointsAreListedInOrder(t *testing.T) {
	s := open(t, t.TempDir())
	var all []health.Endpoint
	for _, cluster := range []string{"web", "api", "db"} {
		for _, zone := range []string{"b", "a"} {
			for _, address := range []string{"10.0.0.9:80", "10.0.0.1:80"} {
				all = append(all, endpoint(cluster, zone, address))
			}
		}
	}
	for i, e := range all {
		s.Append([]health.Transition{flip(e, i)})
	}
	s.rememberClusters([]string{"empty"})
	flush(t, s)
	slices.SortFunc(all, health.Endpoint.Compare)
	for _, cluster := range []string{"", "web", "empty", "none"} {
		for _, address := range []string{"", "10.0.0.1:80", "10.0.0.2:80"} {
			want := slices.DeleteFunc(slices.Clone(all), func(e health.Endpoint) bool {
				return cluster != "" && e.Cluster != cluster || address != "" && e.Address != address
			})
			clusters := []string{cluster}
			if cluster == "" {
				clusters = nil
			}
			for limit := 1; limit < 6; limit++ {
				got := []health.Endpoint{}
				for after := (*health.Endpoint)(nil); ; after = &got[len(got)-1] {
					page, err := s.Endpoints(clusters, address, false, after, limit)
					if err != nil || len(page) > limit {
						t.Fatal(page, err)
					}
					if got = append(got, page...); len(page) == 0 || len(got) > len(all) {
						break
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q %q, %d a page: %s", cluster, address, limit, diff)
				}
			}
		}
	}
}

// TestPastModel compares with a model that looks at every second.
func TestPastModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, t.TempDir())
		defer func() { _ = s.Close() }()
		endpoints := []health.Endpoint{endpoint("web", "a", "x"), endpoint("web", "b", "x"), endpoint("api", "a", "x")}
		jumpy := rapid.Bool().Draw(rt, "the clock jumps")
		var all []health.Transition
		second := 0
		for i := range rapid.IntRange(0, 30).Draw(rt, "transitions") {
			least := 0
			if jumpy {
				least = -15
			}
			second = max(0, second+rapid.IntRange(least, 12).Draw(rt, "passed"))
			tr := flip(rapid.SampledFrom(endpoints).Draw(rt, "endpoint"), i)
			tr.Time = day.Add(time.Duration(second) * time.Second)
			tr.From, tr.To = health.Unknown, health.Status(rapid.IntRange(0, 5).Draw(rt, "to"))
			for _, before := range slices.Backward(all) {
				if before.Endpoint == tr.Endpoint {
					tr.From = before.To
					break
				}
			}
			all = append(all, tr)
		}
		s.Append(all)
		flush(t, s)
		naive := func(e health.Endpoint, at time.Time) (held health.Verdict) {
			for i := range all {
				if all[i].Endpoint == e && !all[i].Time.After(at) {
					held = verdict(&all[i])
				}
			}
			return held
		}
		at := day.Add(time.Duration(rapid.IntRange(0, 400).Draw(rt, "at")) * time.Second)
		held, err := s.AsOf(endpoints, at)
		for i, e := range endpoints {
			want := naive(e, at)
			if want.Since.IsZero() {
				held[i].Reason = ""
			}
			if diff := cmp.Diff(want, held[i]); err != nil || diff != "" {
				rt.Fatalf("%v at %v: %s, %v", e, at, diff, err)
			}
		}
		if jumpy {
			return // then time is not a line
		}
		start := day.Add(time.Duration(rapid.IntRange(-10, 400).Draw(rt, "start")) * time.Second)
		end := start.Add(time.Duration(rapid.IntRange(-5, 400).Draw(rt, "length")) * time.Second)
		spent, err := s.TimeInStatus(endpoints, start, end)
		if err != nil {
			rt.Fatal(err)
		}
		for i, e := range endpoints {
			var want StatusTimes
			for now := start; now.Before(end); now = now.Add(time.Second) {
				want.Durations[naive(e, now).Status] += time.Second
			}
			for _, tr := range all {
				if tr.Endpoint == e && tr.From != tr.To && !tr.Time.Before(start) && tr.Time.Before(end) {
					want.Transitions++
				}
			}
			if spent[i] != want {
				rt.Fatalf("%v from %v to %v: %+v, want %+v", e, start, end, spent[i], want)
			}
		}
	})
}
