package store

import (
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Spent is how long an endpoint was in each state.
type Spent struct {
	In          [6]time.Duration // by health.Status
	Transitions int
}

// Spent tells how long endpoints were in which state from start, which is
// included, to end, which is not. Before the history began they were unknown.
func (h *history) Spent(endpoints []health.Endpoint, start, end time.Time) (all []Spent, err error) {
	all = make([]Spent, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		began := h.began(tx)
		past := h.past(tx)
		for i := range endpoints {
			all[i] = past.spent(&endpoints[i], start, end, began)
		}
		return nil
	})
	return all, err
}

func (p *past) spent(e *health.Endpoint, start, end, began time.Time) (out Spent) {
	from, to := nanos(start), nanos(end)
	if from >= to {
		return out
	}
	at, status := from, health.Unknown
	until := func(t uint64) {
		if t = min(t, to); t > at {
			if !status.Valid() {
				status = health.Unknown
			}
			out.In[status] += time.Duration(t - at)
			at = t
		}
	}
	// What was before the history began is not known.
	until(max(from, nanos(began)))
	if at == to {
		return out
	}
	status = p.asOf(e, at, began).Status
	p.steps(rowOf(e), at, to, func(s step) bool {
		until(s.at)
		status = s.to
		if s.from != s.to { // else an override began or ended over the same health
			out.Transitions++
		}
		return true
	})
	until(to)
	return out
}
