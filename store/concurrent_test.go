package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"hdsd/health"
)

// TestReadersWhileWriting: each reader sees a history that only grows at its
// end, and current health that is never older than what it saw before.
func TestReadersWhileWriting(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	const groups, size = 40, 50
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for reader := range 3 {
		wg.Go(func() {
			for seen := 0; ctx.Err() == nil; {
				seen = readHistory(t, s, Query{NewestFirst: reader == 1, Limit: 700}, seen)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = s.State()
			_ = s.Stats()
			_ = s.KnownCluster("web")
			if err := s.Check(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	e := endpoint("web", "a", "x")
	for g := range groups {
		var all []health.Transition
		for i := range size {
			all = append(all, flip(e, g*size+i))
		}
		s.Append(all)
		s.intake.savePlan(map[string][]health.Hash{"checker": make([]health.Hash, g)})
		s.rememberClusters([]string{fmt.Sprint("cluster-", g)})
		s.Forget(func(health.Hash) bool { return true })
		if g%4 == 0 {
			flush(t, s)
		}
	}
	flush(t, s)
	cancel()
	wg.Wait()
	if got := len(queryAll(t, s, Query{})); got != groups*size {
		t.Errorf("%d transitions", got)
	}
}

// readHistory reads the whole history. It fails unless that is in order, without a gap,
// and at least as long as before.
func readHistory(t *testing.T, s *Store, q Query, before int) int {
	var all []health.Transition
	for {
		page, next, err := s.Transitions(q)
		if err != nil {
			t.Error(err)
			return before
		}
		all = append(all, page...)
		if q.Token = next; next == "" {
			break
		}
	}
	for i := range all {
		n := i
		if q.NewestFirst {
			n = len(all) - 1 - i
		}
		if want := flip(all[i].Endpoint, n); all[i].Reason != want.Reason {
			t.Errorf("transition %d is %q", n, all[i].Reason)
			break
		}
	}
	if len(all) < before {
		t.Errorf("%d transitions after %d", len(all), before)
	}
	return len(all)
}

func TestFlushFromMany(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				cluster := fmt.Sprintf("cluster-%d", i)
				s.Append([]health.Transition{flip(endpoint(cluster, "a", "x"), n)})
				flush(t, s)
				if got := len(queryAll(t, s, Query{Cluster: cluster})); got != n+1 {
					t.Errorf("%s: %d transitions after flushing %d", cluster, got, n+1)
				}
			}
		})
	}
	wg.Wait()
}
