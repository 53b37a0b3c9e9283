package store

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"hdsd/health"
	"hdsd/log"
)

// quotaLog collects what OnQuota gets.
type quotaLog struct {
	mu  sync.Mutex
	all []Quota
}

func (q *quotaLog) add(now Quota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, now)
}

func (q *quotaLog) said() []Quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.all)
}

// TestTheHistoryKeepsToItsQuota: when the room is nearly used up, there is an alarm; then
// the oldest transitions go, and nothing else. Past health from before is not known, rather
// than wrong.
func TestTheHistoryKeepsToItsQuota(t *testing.T) {
	const room = 2 << 20 // several times what one step of pruning frees
	var said quotaLog
	dir := t.TempDir()
	limited := func(o *Options) { o.MaxBytes, o.OnQuota = room, said.add }
	s := open(t, dir, limited)
	still := endpoint("still", "a", "10.0.0.9:80")
	s.Append([]health.Transition{flip(still, 0)})
	s.intake.saveFreeze(&log.Freeze{Reason: "why"})
	s.intake.savePlan(map[string][]health.Hash{"checker-1": {1, 2, 3}})
	flush(t, s)
	const groups, size = 120, 200
	for n := range groups {
		var some []health.Transition
		for i := range size {
			some = append(some, flip(endpoint("web", "a", fmt.Sprintf("10.0.0.%d:80", i%3)), 1+n*size+i))
		}
		s.Append(some)
		flush(t, s)
	}
	prune(t, s) // the writer is at rest then
	for range 2 {
		stats := s.Stats()
		if stats.Quota.Used > room || stats.Quota.Used < room/2 || stats.Quota.Max != room {
			t.Errorf("%+v of a room of %d", stats.Quota, room)
		}
		if stats.Bytes > 2*room {
			t.Errorf("the file has %d bytes, with a room of %d", stats.Bytes, room)
		}
		now := stateOf(t, s)
		if len(now.Current) != 4 || now.Freeze == nil || len(now.Plan["checker-1"]) != 3 {
			t.Errorf("%d endpoints, freeze %v, plan %v", len(now.Current), now.Freeze, now.Plan)
		}
		wantNewest(t, s, groups*size)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, limited)
	}
	alarms := said.said()
	if len(alarms) < 2 || !alarms[0].Near || alarms[0].Pruned != 0 || alarms[1].Pruned == 0 || alarms[1].Oldest.IsZero() {
		t.Errorf("%v", alarms)
	}
}

// wantNewest sees that the newest transitions are there without a gap, and that nothing is
// said of the time before.
func wantNewest(t *testing.T, s *Store, last int) {
	t.Helper()
	all := queryAll(t, s, Query{Cluster: "web"})
	first := last + 1 - len(all)
	if first < 2 || len(all) == 0 || all[0].Time != flip(health.Endpoint{}, first).Time {
		t.Fatalf("%d transitions of %d, from %v", len(all), last, all[0].Time)
	}
	began, err := s.Began()
	if err != nil || began.Before(flip(health.Endpoint{}, first-1).Time) || began.After(all[0].Time) {
		t.Errorf("it begins at %v, the first is of %v: %v", began, all[0].Time, err)
	}
	for _, n := range []int{first - 1, first - 4} {
		at := flip(health.Endpoint{}, n).Time
		if got := heldAt(t, s, all[0].Endpoint, at); got.Status != health.Unknown || !strings.Contains(got.Reason, "began later") {
			t.Errorf("at %d, before what is kept: %+v", n, got)
		}
	}
	if got := heldAt(t, s, all[3].Endpoint, all[3].Time); got.Status != all[3].To {
		t.Errorf("at the fourth that is kept: %+v", got)
	}
}

// TestEarlyPruningTakesShortSteps: a group waits for one, so that it is as small as what is
// written allows.
func TestEarlyPruningTakesShortSteps(t *testing.T) {
	s := open(t, t.TempDir())
	s.Append(flips(60_000))
	flush(t, s)
	err := s.writer.call(t.Context(), func() {
		s.quota.max.Store(s.db.used.Load() / 4)
		for written, want := range map[int]int{0: pruneSize, 1: pruneSize, groupSize: 2 * groupSize, 4 * groupSize: 2 * groupSize} {
			before := s.quota.pruned.Load()
			s.writer.pruner.step(written)
			if n := int(s.quota.pruned.Load() - before); n != want {
				t.Errorf("after %d were written, a step deletes %d, want %d", written, n, want)
			}
		}
		s.quota.max.Store(0)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheQuotaAlarm begins and ends without pruning, and a quota too small for what is not
// a transition ends nothing.
func TestTheQuotaAlarm(t *testing.T) {
	var said quotaLog
	s := open(t, t.TempDir(), func(o *Options) { o.OnQuota = said.add })
	s.Append(flips(100))
	flush(t, s)
	used := s.Stats().Quota.Used
	step := func(most int64) {
		s.SetMaxBytes(most)
		s.rememberClusters([]string{fmt.Sprint(most)})
		flush(t, s)
		prune(t, s)
	}
	step(used * 2)
	step(used * 115 / 100)
	step(used * 115 / 100)
	if all := said.said(); len(all) != 1 || !all[0].Near || all[0].Pruned != 0 {
		t.Errorf("near: %v", all)
	}
	step(used * 2)
	if all := said.said(); len(all) != 2 || all[1].Near {
		t.Errorf("no longer: %v", all)
	}
	step(1)
	step(1)
	if all := said.said(); s.Stats().Quota.Pruned != 99 || len(all) < 3 {
		t.Errorf("%+v; %v", s.Stats().Quota, all)
	}
	if now := stateOf(t, s); len(now.Current) != 15 {
		t.Errorf("%d endpoints are left", len(now.Current))
	}
	step(0)
	if s.Stats().Quota.Near {
		t.Error("near without a quota")
	}
	if text := (&Quota{Used: 9, Max: 10, Oldest: day}).String(); text != "the history uses 9 of 10 bytes and is pruned to fit: it reaches back to 2026-03-01T12:00:00Z" {
		t.Error(text)
	}
}
