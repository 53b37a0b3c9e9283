package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"hdsd/health"
)

// TestCoursesTellWhatTheHistoryTells, whatever times wrong clocks gave.
func TestCoursesTellWhatTheHistoryTells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		zones := []string{"a", "b", "c"}
		in := func(i int) health.Endpoint { return endpoint("web", zones[i], "10.0.0.1:80") }
		moment := func(label string) time.Time {
			return day.Add(time.Duration(rapid.IntRange(-3000, 3000).Draw(rt, label)) * time.Second)
		}
		status, zone, now := health.Unknown, 0, day
		for range rapid.IntRange(fewStays+1, 40).Draw(rt, "transitions") {
			if now = now.Add(time.Second); rapid.IntRange(0, 3).Draw(rt, "clock") == 0 {
				now = moment("set")
			}
			to, next := rapid.SampledFrom([]health.Status{health.Healthy, health.Unhealthy}).Draw(rt, "to"), rapid.IntRange(0, 2).Draw(rt, "zone")
			switch {
			case next != zone && status != health.Unknown:
				s.Append(moving(in(zone), in(next), status, now))
				zone = next
			case status != to:
				s.Append([]health.Transition{{Time: now, Endpoint: in(zone), From: status, To: to}})
				status = to
			}
		}
		flush(t, s)
		start, end := moment("start"), moment("end")
		err := s.db.view(func(tx *bolt.Tx) error {
			began, read, scanned := s.began(tx), s.past(tx), s.past(tx)
			stays := make([]stay, fewStays+1)
			for i := range stays {
				stays[i].endpoint = in(i % 3)
			}
			if read.readCourses(stays); !read.dates.disordered() {
				return nil
			}
			for i := range zones {
				e := in(i)
				want := scanned.asOf(&e, nanos(start), began)
				if diff := cmp.Diff(want, read.asOf(&e, nanos(start), began)); diff != "" {
					rt.Errorf("%s at %v: %s", zones[i], start, diff)
				}
				if !start.Before(end) || start.Before(began) {
					continue
				}
				spent := scanned.walk(&e, nanos(start), nanos(end), began)
				if diff := cmp.Diff(spent, read.walk(&e, nanos(start), nanos(end), began)); diff != "" {
					rt.Errorf("%s from %v to %v: %s", zones[i], start, end, diff)
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestManyMovesBehindAClockThatWentBack: twice the moves cost twice as much, not four times.
func TestManyMovesBehindAClockThatWentBack(t *testing.T) {
	count := func(moves int) float64 {
		s, end := movedSinceTheClockWentBack(t, moves)
		return testing.AllocsPerRun(1, func() {
			all, err := s.TimeInStatus([]health.Endpoint{endpoint("web", "a", "10.0.0.1:80")}, day.Add(-time.Hour), end)
			if err != nil || all[0].Transitions != 1 {
				t.Fatalf("%d moves are %+v, %v, want one transition", moves, all, err)
			}
		})
	}
	if some, double := count(400), count(800); double > 2.5*some {
		t.Errorf("400 moves take %v allocations, 800 take %v", some, double)
	}
}

// BenchmarkMovesBehindAClockThatWentBack asks for the availability of an endpoint.
func BenchmarkMovesBehindAClockThatWentBack(b *testing.B) {
	for _, count := range []int{2000, 20_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s, end := movedSinceTheClockWentBack(b, count)
			for b.Loop() {
				if _, err := s.TimeInStatus([]health.Endpoint{endpoint("web", "a", "10.0.0.1:80")}, day.Add(-time.Hour), end); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// movedSinceTheClockWentBack returns the history of an endpoint that has moved to and fro since
// the wall clock went back by ten hours, and when it ends.
func movedSinceTheClockWentBack(t testing.TB, count int) (s *Store, end time.Time) {
	s = open(t, t.TempDir())
	places := [2]health.Endpoint{endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "b", "10.0.0.1:80")}
	s.Append([]health.Transition{{Time: day.Add(10 * time.Hour), Endpoint: endpoint("db", "a", "10.0.0.2:80"), To: health.Healthy}})
	flush(t, s)
	s.Append([]health.Transition{{Time: day, Endpoint: places[0], To: health.Healthy}})
	for i := range count {
		end = day.Add(time.Duration(i+1) * time.Second)
		s.Append(moving(places[i%2], places[(i+1)%2], health.Healthy, end))
		if i%1000 == 0 {
			flush(t, s)
		}
	}
	flush(t, s)
	return s, end.Add(time.Second)
}
