package store

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/log"
)

// model is the history as a slice.
type model struct {
	rows    []recordedTransition
	last    uint64
	current map[health.Hash]log.Health
	plan    map[string][]health.Hash
}

type recordedTransition struct {
	recorded   uint64
	transition health.Transition
}

func (m *model) append(all []health.Transition) {
	for _, tr := range all {
		m.last = max(m.last+1, uint64(tr.Time.UnixNano()))
		m.rows = append(m.rows, recordedTransition{m.last, tr})
		m.current[tr.Endpoint.Hash()] = log.Health{Endpoint: tr.Endpoint, Status: tr.To, Since: tr.Time, Reason: tr.Reason}
	}
}

func (m *model) prune(edge time.Time) {
	old := m.old(edge)
	m.rows = slices.DeleteFunc(m.rows, func(r recordedTransition) bool { return r.recorded <= old })
}

// old returns the recorded time of the last transition to delete: all up to it are older
// than edge.
func (m *model) old(edge time.Time) (last uint64) {
	for _, r := range m.rows {
		if r.recorded == m.last || !r.transition.Time.Before(edge) {
			break
		}
		last = r.recorded
	}
	return last
}

func (m *model) query(q Query) (found []health.Transition) {
	for _, r := range m.rows {
		tr := r.transition
		if (q.Cluster == "" || q.Cluster == tr.Endpoint.Cluster) && (q.Address == "" || q.Address == tr.Endpoint.Address) &&
			(q.Start.IsZero() || !tr.Time.Before(q.Start)) && (q.End.IsZero() || tr.Time.Before(q.End)) {
			found = append(found, tr)
		}
	}
	if q.NewestFirst {
		slices.Reverse(found)
	}
	return found
}

// TestModel compares a store with a model after random steps.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		var clock wall
		clock.set(day)
		s := open(t, dir, clock.keep)
		defer func() { _ = s.Close() }()
		now := day
		m := model{current: map[health.Hash]log.Health{}, plan: map[string][]health.Hash{}}

		name := func(prefix string, most int) string {
			return prefix + string(rune('0'+rapid.IntRange(0, most).Draw(rt, prefix)))
		}
		moment := func(label string) time.Time {
			return now.Add(time.Duration(rapid.IntRange(-5000, 500).Draw(rt, label)) * time.Second)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				var all []health.Transition
				for range rapid.IntRange(1, 20).Draw(rt, "transitions") {
					tr := flip(endpoint(name("cluster-", 2), name("zone-", 1), name("address-", 3)), rapid.IntRange(0, 1000).Draw(rt, "n"))
					now = now.Add(time.Duration(rapid.IntRange(-20, 60).Draw(rt, "passed")) * time.Second)
					tr.Time = now
					all = append(all, tr)
				}
				flush(t, s)
				clock.set(now)
				s.Append(all)
				m.append(all)
			},
			"query": func(rt *rapid.T) {
				flush(t, s)
				q := Query{NewestFirst: rapid.Bool().Draw(rt, "newest"), Limit: rapid.IntRange(0, 7).Draw(rt, "limit")}
				if rapid.Bool().Draw(rt, "by cluster") {
					q.Cluster = name("cluster-", 3)
				}
				if rapid.Bool().Draw(rt, "by address") {
					q.Address = name("address-", 4)
				}
				if rapid.Bool().Draw(rt, "has start") {
					q.Start = moment("start")
				}
				if rapid.Bool().Draw(rt, "has end") {
					q.End = moment("end")
				}
				if diff := cmp.Diff(m.query(q), queryAll(t, s, q)); diff != "" {
					rt.Fatalf("%+v: %s", q, diff)
				}
			},
			"plan": func(rt *rapid.T) {
				checker := name("checker-", 2)
				endpoints := rapid.SliceOfDistinct(rapid.Map(rapid.Uint64(), func(n uint64) health.Hash { return health.Hash(n) }),
					rapid.ID[health.Hash]).Draw(rt, "endpoints")
				slices.Sort(endpoints)
				m.plan[checker] = endpoints
				if len(endpoints) == 0 {
					endpoints = nil
					delete(m.plan, checker)
				}
				s.intake.savePlan(map[string][]health.Hash{checker: endpoints})
			},
			"prune": func(*rapid.T) {
				flush(t, s)
				clock.set(now)
				prune(t, s)
				m.prune(now.Add(-time.Hour))
			},
			"reopen": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = open(t, dir, clock.keep)
				prune(t, s) // is done at every start
				m.prune(time.Unix(0, clock.nanos.Load()).Add(-time.Hour))
			},
			"last known": func(rt *rapid.T) {
				flush(t, s)
				stored := stateOf(t, s)
				if diff := cmp.Diff(m.current, stored.Current) + cmp.Diff(m.plan, stored.Plan); diff != "" {
					rt.Fatal(diff)
				}
				if err := s.Check(); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}
