package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"hdsd/health"
)

// moving returns the two transitions of an endpoint that moves.
func moving(from, to health.Endpoint, status health.Status, at time.Time) []health.Transition {
	return []health.Transition{
		{Time: at, Endpoint: from, From: status, To: health.Unknown, Reason: "moved to " + to.Locality.Zone, Moved: &to.Locality},
		{Time: at, Endpoint: to, From: health.Unknown, To: status, Reason: "moved from " + from.Locality.Zone, Moved: &from.Locality},
	}
}

// TestAMoveIsOneTransition: queries show it as one from the health that the endpoint has to the
// same. Who reads on, and the file, have both parts, marked.
func TestAMoveIsOneTransition(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	a, b := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "b", "10.0.0.1:80")
	first, last := flip(a, 1), flip(b, 4)
	pair := moving(a, b, first.To, day.Add(3*time.Second))
	s.Append([]health.Transition{first})
	s.Append(pair)
	s.Append([]health.Transition{last})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	shown := pair[1]
	shown.From = shown.To
	want := []health.Transition{first, shown, last}
	for _, q := range []Query{{}, {Cluster: "web"}, {Cluster: "web", Address: a.Address}, {Address: a.Address, Limit: 1}} {
		if diff := cmp.Diff(want, queryAll(t, s, q)); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
	var read []health.Transition
	behind, err := s.Kept(0, 9)
	if err != nil {
		t.Fatal(err)
	}
	for i := range behind {
		read = append(read, behind[i].Transition)
	}
	if diff := cmp.Diff([]health.Transition{first, pair[0], pair[1], last}, read); diff != "" {
		t.Error("who reads on:", diff)
	}
	if now, err := s.Endpoints([]string{"web"}, "", false, nil, 9); err != nil || len(now) != 1 || now[0] != b {
		t.Error("now there are", now, err)
	}
	if ever, err := s.Endpoints([]string{"web"}, "", true, nil, 9); err != nil || len(ever) != 2 {
		t.Error("there were", ever, err)
	}
	if held, err := s.AsOf([]health.Endpoint{a, b}, day.Add(2*time.Second)); err != nil || held[0].Status != first.To || held[1].Status != health.Unknown || held[1].Reason != "it was in another locality" {
		t.Error("before the move:", held, err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	kept, result := salvaged(t, file)
	if diff := cmp.Diff(want, queryAll(t, kept, Query{})); diff != "" || len(result.Lost) > 0 {
		t.Errorf("salvaged: %s, lost %q", diff, result.Lost)
	}
}

// TestAvailabilityOfAnEndpointThatMoves is that of one that stays, in any period, while
// transitions are recorded and deleted, and over restarts.
func TestAvailabilityOfAnEndpointThatMoves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var clock wall
		clock.set(day)
		dir, other := t.TempDir(), t.TempDir()
		moved, stayed := open(t, dir, clock.keep), open(t, other, clock.keep)
		defer func() { _, _ = moved.Close(), stayed.Close() }()
		now, status, zone := day, health.Unknown, "a"
		in := func(zone string) health.Endpoint { return endpoint("web", zone, "10.0.0.1:80") }
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				flush(t, moved)
				flush(t, stayed)
				moment := func(label string) time.Time {
					return now.Add(time.Duration(rapid.IntRange(-9000, 500).Draw(rt, label)) * time.Second)
				}
				start, end := moment("start"), moment("end")
				want, err := stayed.TimeInStatus([]health.Endpoint{in("all")}, start, end)
				if err != nil {
					rt.Fatal(err)
				}
				got, err := moved.TimeInStatus([]health.Endpoint{in(zone)}, start, end)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					rt.Fatalf("from %v to %v: %s %v", start, end, diff, err)
				}
			},
			"changes": func(rt *rapid.T) {
				var there, all []health.Transition
				for range rapid.IntRange(1, 5).Draw(rt, "changes") {
					now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "passed")) * time.Second)
					to := rapid.SampledFrom([]health.Status{health.Healthy, health.Unhealthy, health.Degraded}).Draw(rt, "to")
					if status != to {
						tr := health.Transition{Time: now, From: status, To: to, Reason: "votes"}
						tr.Endpoint = in(zone)
						there = append(there, tr)
						tr.Endpoint = in("all")
						all = append(all, tr)
						status = to
					}
				}
				clock.set(now)
				moved.Append(there)
				stayed.Append(all)
			},
			"moves": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 600).Draw(rt, "passed")) * time.Second)
				clock.set(now)
				to := string(rune('a' + rapid.IntRange(0, 2).Draw(rt, "zone")))
				if status == health.Unknown || to == zone {
					return
				}
				moved.Append(moving(in(zone), in(to), status, now))
				// The other one has as many transitions, so that both keep the same.
				none := health.Transition{Time: now, Endpoint: in("all"), From: status, To: status}
				stayed.Append([]health.Transition{none, none})
				zone = to
			},
			"restart": func(*rapid.T) {
				if err := moved.Close(); err != nil {
					rt.Fatal(err)
				}
				if err := stayed.Close(); err != nil {
					rt.Fatal(err)
				}
				moved, stayed = open(t, dir, clock.keep), open(t, other, clock.keep)
				prune(t, moved) // is done at every start
				prune(t, stayed)
			},
			"prune": func(*rapid.T) {
				prune(t, moved)
				prune(t, stayed)
			},
		})
	})
}

// TestAnotherEndpointWhereOneWas begins anew: what moved away is not counted twice.
func TestAnotherEndpointWhereOneWas(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "b", "10.0.0.1:80")
	second := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
	s.Append([]health.Transition{{Time: day, Endpoint: a, To: health.Healthy}})
	s.Append(moving(a, b, health.Healthy, second(10)))
	s.Append([]health.Transition{{Time: second(30), Endpoint: a, To: health.Unhealthy}})
	flush(t, s)
	got, err := s.TimeInStatus([]health.Endpoint{a, b}, day, second(100))
	want := []StatusTimes{{Transitions: 1}, {Transitions: 1}}
	want[0].Durations[health.Unknown], want[0].Durations[health.Unhealthy] = 30*time.Second, 70*time.Second
	want[1].Durations[health.Healthy] = 100 * time.Second
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if now, err := s.Endpoints([]string{"web"}, "", false, nil, 9); err != nil || len(now) != 2 {
		t.Error("now there are", now, err)
	}
}

// TestMovesAreForgottenWithTheirTransitions, and a file without moves has no place for them.
func TestMovesAreForgottenWithTheirTransitions(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	count := func() (n int) {
		inspect(t, s, func(tx *bolt.Tx) {
			if rows := tx.Bucket(moves); rows != nil {
				n = rows.Stats().KeyN
			}
		})
		return n
	}
	s.Append([]health.Transition{flip(endpoint("web", "a", "10.0.0.1:80"), 0)})
	flush(t, s)
	inspect(t, s, func(tx *bolt.Tx) {
		if tx.Bucket(moves) != nil {
			t.Error("there is a bucket before the first move")
		}
	})
	for n := range 4 {
		zones := fmt.Sprintf("%c%c", 'a'+n, 'b'+n)
		s.Append(moving(endpoint("web", zones[:1], "10.0.0.1:80"), endpoint("web", zones[1:], "10.0.0.1:80"), health.Healthy, day.Add(time.Duration(n)*time.Minute)))
	}
	flush(t, s)
	if n := count(); n != 8 {
		t.Errorf("%d rows of 4 moves", n)
	}
	now.set(day.Add(time.Hour + 90*time.Second))
	prune(t, s)
	if n := count(); n != 4 {
		t.Errorf("%d rows of the 2 moves that are left", n)
	}
}
