package store

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// overridden returns the stored overrides, by scope, and the verdicts of the votes.
func overridden(t *testing.T, s *Store) (map[health.Endpoint]log.Override, map[health.Hash]health.Verdict) {
	t.Helper()
	stored := stateOf(t, s)
	found := map[health.Endpoint]log.Override{}
	for _, o := range stored.Overrides {
		found[o.Scope] = o
	}
	return found, stored.Voted
}

func TestOverridesAreKept(t *testing.T) {
	web, zone := health.Endpoint{Cluster: "web"}, health.Endpoint{Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "rack-1"}}
	override := log.Override{Scope: endpoint("web", "a", "10.0.0.1:80"), Status: health.Draining, Reason: "überall", Author: "ann@here", Since: day, Until: day.Add(time.Hour)}
	another := override
	another.Status, another.Until = health.Healthy, time.Time{}
	all := log.Override{Scope: web, Status: health.Unhealthy, Reason: "why", Since: day}
	drained := log.Override{Scope: zone, Status: health.Draining, Since: day}
	type overrides = map[health.Endpoint]*log.Override
	type voted = map[health.Hash]*health.Verdict
	up, none := health.Verdict{Status: health.Healthy, Since: day}, health.Verdict{}
	steps := []struct {
		name      string
		overrides overrides
		voted     voted
		want      map[health.Endpoint]log.Override
		below     map[health.Hash]health.Verdict
	}{
		{"nothing", nil, nil, map[health.Endpoint]log.Override{}, map[health.Hash]health.Verdict{}},
		{"three", overrides{override.Scope: &override, web: &all, zone: &drained}, voted{1: &up, 1 << 63: &none},
			map[health.Endpoint]log.Override{override.Scope: override, web: all, zone: drained}, map[health.Hash]health.Verdict{1: up, 1 << 63: none}},
		{"one is replaced, one ends", overrides{override.Scope: &another, web: nil}, voted{1: &none, 1 << 63: nil, 7: nil},
			map[health.Endpoint]log.Override{override.Scope: another, zone: drained}, map[health.Hash]health.Verdict{1: none}},
		{"all end", overrides{override.Scope: nil, zone: nil}, voted{1: nil}, map[health.Endpoint]log.Override{}, map[health.Hash]health.Verdict{}},
	}
	dir := t.TempDir()
	s := open(t, dir)
	for _, step := range steps {
		s.intake.saveOverrides(step.overrides)
		s.intake.saveVoted(step.voted)
		s, _ = reopened(t, dir, s)
		found, below := overridden(t, s)
		if diff := cmp.Diff(step.want, found) + cmp.Diff(step.below, below); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestVotedIsDeletedLast: while the history may end with an override, the verdict of the
// votes is on disk.
func TestVotedIsDeletedLast(t *testing.T) {
	in := newIntake(1 << 20)
	in.append(flips(groupSize+1), time.Now)
	in.put(voted, map[string][]byte{"1": {}, "2": nil})
	first, second := in.nextGroup(math.MaxInt), in.nextGroup(math.MaxInt)
	if diff := cmp.Diff(changes{"voted": {"1": {}}}, first.rows); diff != "" {
		t.Error("with the first group goes:", diff)
	}
	if diff := cmp.Diff(changes{"voted": {"2": nil}}, second.rows); diff != "" {
		t.Error("with the last group goes:", diff)
	}
}

func TestDamagedOverridesAreSkipped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	kept, lost := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "a", "10.0.0.2:80")
	s.intake.saveOverrides(map[health.Endpoint]*log.Override{kept: {Scope: kept, Since: day}, lost: {Scope: lost, Since: day}})
	s.intake.saveVoted(map[health.Hash]*health.Verdict{1: {}, 2: {}})
	flush(t, s)
	edit(t, s, func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(overrides).Put(key(uint64(lost.Hash())), []byte("nonsense")), tx.Bucket(voted).Put(key(2), nil))
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var reported errorLog
	s = open(t, dir, func(o *Options) { o.OnError = reported.add })
	found, below := overridden(t, s)
	if len(found) != 1 || found[kept].Scope != kept || len(below) != 1 || !reported.has(ErrSkipped) {
		t.Errorf("%v, %v; reported: %v", found, below, reported.all)
	}
	if err := s.Check(); !errors.Is(err, ErrDamaged) {
		t.Errorf("Check: %v", err)
	}
}

// TestAnOverrideOverTheSameHealthIsNoChange: availability does not count it.
func TestAnOverrideOverTheSameHealthIsNoChange(t *testing.T) {
	s := open(t, t.TempDir())
	e := endpoint("web", "a", "10.0.0.1:80")
	s.Append([]health.Transition{
		{Time: day, Endpoint: e, To: health.Healthy},
		{Time: day.Add(time.Minute), Endpoint: e, From: health.Healthy, To: health.Healthy, Reason: "forced healthy"},
	})
	flush(t, s)
	spent, err := s.TimeInStatus([]health.Endpoint{e}, day, day.Add(time.Hour))
	if err != nil || spent[0].Transitions != 1 || spent[0].Durations[health.Healthy] != time.Hour {
		t.Errorf("%+v, %v", spent, err)
	}
}

// BenchmarkSaveVoted stores the verdicts of the votes on 10,000 endpoints.
func BenchmarkSaveVoted(b *testing.B) {
	s := open(b, b.TempDir())
	all := map[health.Hash]*health.Verdict{}
	for i := range 10_000 {
		all[endpoint("web", "a", fmt.Sprintf("10.0.0.1:%d", i)).Hash()] = &health.Verdict{Status: health.Healthy, Since: day}
	}
	ended := maps.Clone(all)
	for hash := range ended {
		ended[hash] = nil
	}
	for b.Loop() {
		s.intake.saveVoted(all)
		flush(b, s)
		s.intake.saveVoted(ended)
		flush(b, s)
	}
}
