package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"hdsd/health"
)

// bothWays returns how long an endpoint had each status by all its transitions, and by the
// sums, unless those do not tell.
func bothWays(t testing.TB, s *Store, e *health.Endpoint, start, end time.Time) (walked, summed StatusTimes, ok bool) {
	t.Helper()
	inspect(t, s, func(tx *bolt.Tx) {
		past, began := s.past(tx), s.began(tx)
		from, to := max(nanos(start), nanos(began)), nanos(end)
		if from >= to {
			return
		}
		walked = past.walk(e, from, to, began)
		summed, ok = past.difference(rowOf(e), from, to)
	})
	return walked, summed, ok
}

// wantSums sees that the sums tell, as the transitions do.
func wantSums(t testing.TB, s *Store, e *health.Endpoint, start, end time.Time) {
	t.Helper()
	walked, summed, ok := bothWays(t, s, e, start, end)
	if diff := cmp.Diff(walked, summed); !ok || diff != "" {
		t.Errorf("%v from %v to %v: sums tell: %v; %s", e, start, end, ok, diff)
	}
}

// TestAvailabilityIsADifference: without a gap and a jump of the clock, the sums tell it of
// any endpoint and period, also over restarts and behind what is deleted.
func TestAvailabilityIsADifference(t *testing.T) {
	var now wall
	now.set(day)
	dir := t.TempDir()
	s := open(t, dir, now.keep)
	all := flips(2000)
	for n := range all {
		if n%7 == 0 { // an override begins or ends
			all[n].From = all[n].To
		}
	}
	for left := all; len(left) > 0; left = left[250:] {
		now.set(left[249].Time)
		s.Append(left[:250])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, now.keep)
	}
	random := rand.New(rand.NewPCG(1, 1))
	check := func(first int) {
		t.Helper()
		for range 300 {
			// Before its first transition, only the next of all is looked for.
			start := first + random.IntN(1950-first)
			end := start + 20 + random.IntN(2000-start)
			e := all[random.IntN(len(all))].Endpoint
			wantSums(t, s, &e, sec(float64(start)), sec(float64(end)))
			wantSums(t, s, &e, sec(float64(start)-0.5), sec(float64(end)+0.5))
		}
	}
	check(0)
	now.set(day.Add(time.Hour + 1000*time.Second))
	prune(t, s)
	if kept := len(queryAll(t, s, Query{})); kept != 1000 {
		t.Fatalf("%d transitions are kept", kept)
	}
	check(1000)
}

// TestSumsSayWhatTheTransitionsSay: whenever the sums tell, they tell the same, whatever
// happens to the history.
func TestSumsSayWhatTheTransitionsSay(t *testing.T) {
	told, asked := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{t: t, dir: t.TempDir(), clocks: make(chan Clock, 1000)}
		m.start()
		defer func() { _ = m.store.Close() }()
		var all []health.Transition
		pass := func(most time.Duration) {
			by := rapid.Int64Range(0, int64(most)).Draw(rt, "passed")
			m.passed.Add(by)
			m.run.Add(by)
		}
		next := func() health.Transition {
			tr := flip(endpoint("web", "a", fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "endpoint"))), 0)
			tr.From = health.Status(rapid.IntRange(0, 5).Draw(rt, "from"))
			tr.To = health.Status(rapid.IntRange(0, 5).Draw(rt, "to"))
			back := rapid.SampledFrom([]time.Duration{0, 0, 1, 3 * time.Millisecond}).Draw(rt, "back")
			tr.Time = m.now().Add(-back)
			all = append(all, tr)
			return tr
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				for range min(len(all), 4) {
					moment := func(label string) time.Time {
						at := rapid.SampledFrom(all).Draw(rt, label).Time
						return at.Add(rapid.SampledFrom([]time.Duration{0, 0, 1, -1, time.Millisecond, -time.Hour, time.Hour}).Draw(rt, "off"))
					}
					start, end := moment("start"), moment("end")
					if start.After(end) {
						start, end = end, start
					}
					e := rapid.SampledFrom(all).Draw(rt, "of").Endpoint
					walked, summed, ok := bothWays(t, m.store, &e, start, end)
					if diff := cmp.Diff(walked, summed); ok && diff != "" {
						rt.Fatalf("%v from %v to %v: %s", e, start, end, diff)
					}
					if asked++; ok {
						told++
					}
				}
			},
			"changes": func(rt *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(rt, "changes") {
					pass(rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, time.Hour}).Draw(rt, "most"))
					m.store.Append([]health.Transition{next()})
				}
				flush(t, m.store)
			},
			"one is lost":      func(*rapid.T) { lose(m.store, next()); flush(t, m.store) },
			"the clock is set": func(rt *rapid.T) { m.wrong.Store(rapid.SampledFrom(jumps).Draw(rt, "wrong")) },
			"restarts":         func(*rapid.T) { pass(time.Hour); m.restart(0) },
			"ages":             func(*rapid.T) { pass(60 * time.Hour); prune(t, m.store) },
			"an older hdsd wrote": func(rt *rapid.T) {
				change(t, m.store, func(tx *bolt.Tx) error { return forgetSums(tx, rapid.IntRange(1, 5).Draw(rt, "every")) })
			},
			"its room is used up": func(*rapid.T) {
				m.store.SetMaxBytes(1)
				m.store.Append([]health.Transition{next()})
				flush(t, m.store)
				prune(t, m.store)
				m.store.SetMaxBytes(0)
			},
			"is salvaged": func(rt *rapid.T) {
				m.stop()
				if _, err := Salvage(t.Context(), m.dir, ""); err != nil {
					rt.Fatal(err)
				}
				m.start()
			},
		})
	})
	if told < asked/50 {
		t.Errorf("of %d questions, sums tell %d", asked, told)
	}
}

// TestSumsOfTransitionsAtOneTime: behind a gap, the time of the last transition divides the
// period. What happened at that very time, before one that is dated back, is in neither part
// twice.
func TestSumsOfTransitionsAtOneTime(t *testing.T) {
	for _, most := range []time.Duration{1, time.Millisecond} {
		var now wall
		now.set(day)
		s := open(t, t.TempDir(), now.keep)
		now.set(sec(10))
		tr := flip(endpoint("web", "a", "10.0.0.1:80"), 0)
		lose(s, tr)
		flush(t, s)
		for i, to := range []health.Status{health.Unhealthy, health.Healthy, health.Draining, health.Timeout, health.Degraded} {
			tr.From, tr.To = tr.To, to
			switch tr.Time = sec(10); i {
			case 0:
				tr.Time = sec(5)
			case 3:
				tr.Time = tr.Time.Add(-most)
			}
			s.Append([]health.Transition{tr})
		}
		flush(t, s)
		walked, summed, ok := bothWays(t, s, &tr.Endpoint, sec(9), sec(20))
		if diff := cmp.Diff(walked, summed); ok && diff != "" {
			t.Errorf("dated back by %v: %s", most, diff)
		}
	}
}

// TestSumsFromTheTimeOfAnEarlierClock: a transition that is recorded behind another, but
// happened earlier as a clock that was set back says, is the endpoint's last from then on.
func TestSumsFromTheTimeOfAnEarlierClock(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	tr := flip(endpoint("web", "a", "10.0.0.1:80"), 0)
	for n, at := range []time.Time{sec(0), sec(10), sec(9), sec(9).Add(1)} {
		tr.From, tr.To, tr.Time = tr.To, health.Status(1+n), at
		if n == 3 { // of another, recorded last
			tr.Endpoint.Address = "10.0.0.2:80"
		}
		now.set(at)
		s.Append([]health.Transition{tr})
		flush(t, s)
	}
	tr.Endpoint.Address = "10.0.0.1:80"
	for _, start := range []time.Time{sec(9).Add(-1), sec(9), sec(9).Add(1)} {
		walked, summed, ok := bothWays(t, s, &tr.Endpoint, start, sec(20))
		if diff := cmp.Diff(walked, summed); ok && diff != "" {
			t.Errorf("from %v: %s", start, diff)
		}
	}
}

var jumps = []int64{0, 0, 0, int64(time.Second), -int64(time.Second), int64(9 * time.Hour), -int64(9 * time.Hour), int64(year), -int64(year)}

// forgetSums makes each n-th row of the index one as an older hdsd wrote.
func forgetSums(tx *bolt.Tx, every int) error {
	rows, plain := tx.Bucket(byEndpoint), map[string][]byte{}
	n := 0
	_ = rows.ForEach(func(k, v []byte) error {
		if n++; n%every == 0 {
			plain[string(k)] = bytes.Clone(v[:plainRow])
		}
		return nil
	})
	for k, v := range plain {
		if err := rows.Put([]byte(k), v); err != nil {
			return err
		}
	}
	return nil
}

// TestDamagedSums: a damaged row of the index changes no answer, and is reported.
func TestDamagedSums(t *testing.T) {
	var reported errorLog
	s := open(t, t.TempDir(), func(o *Options) { o.OnError = reported.add })
	all := flips(60)
	s.Append(all)
	flush(t, s)
	e := all[0].Endpoint
	var last, good []byte
	inspect(t, s, func(tx *bolt.Tx) {
		k, v := seekBefore(tx.Bucket(byEndpoint).Cursor(), append(rowOf(&e), key(1<<63)...))
		last, good = bytes.Clone(k), bytes.Clone(v)
	})
	want, _, ok := bothWays(t, s, &e, day, sec(100))
	if !ok {
		t.Fatal("the sums tell nothing")
	}
	random := rand.New(rand.NewPCG(1, 1))
	var bad [][]byte
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= byte(1 + random.IntN(255))
		bad = append(bad, flipped, good[:i])
	}
	for i, v := range bad {
		change(t, s, func(tx *bolt.Tx) error { return tx.Bucket(byEndpoint).Put(last, v) })
		spent, err := s.TimeInStatus([]health.Endpoint{e}, day, sec(100))
		if diff := cmp.Diff([]StatusTimes{want}, spent); err != nil || diff != "" {
			t.Errorf("%x in place of %x: %v, %s", v, good, err, diff)
		}
		if err := s.Check(); (err == nil) != (len(v) == plainRow) {
			t.Errorf("%d: Check of %x: %v", i, v, err)
		}
	}
	if len(reported.all) != 1 || !reported.has(ErrSkipped) {
		t.Errorf("reported: %v", reported.all)
	}
	next := flip(e, 70)
	s.Append([]health.Transition{next}) // which cannot go on from there
	flush(t, s)
	want.Transitions++
	want.Durations[next.To], want.Durations[next.From] = want.Durations[next.To]+30*time.Second, want.Durations[next.From]-30*time.Second
	spent, err := s.TimeInStatus([]health.Endpoint{e}, day, sec(100))
	if diff := cmp.Diff([]StatusTimes{want}, spent); err != nil || diff != "" {
		t.Errorf("with one more: %v, %s", err, diff)
	}
}

// FuzzSums: no value panics, and what can be read is written again as it was.
func FuzzSums(f *testing.F) {
	at := sums{recorded: 9, ownTime: 7, latest: 8, from: 1, to: 2, durations: [6]uint64{3, 0, 5, 0, 0, 300}, changes: 4}
	f.Add(at.recorded, at.encode())
	f.Add(uint64(1), []byte{1, 2})
	f.Fuzz(func(t *testing.T, recorded uint64, row []byte) {
		s, ok := decodeSums(recorded, row)
		if !ok {
			return
		}
		again, ok := decodeSums(recorded, s.encode())
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(sums{})); !ok || diff != "" {
			t.Error(diff)
		}
	})
}
