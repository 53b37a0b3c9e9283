package store

import (
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// StatusTimes is how long an endpoint had each status.
type StatusTimes struct {
	In          [6]time.Duration // by health.Status
	Transitions int
}

// TimeInStatus adds up how long endpoints had each status from start on and before
// end. Before the history began they were UNKNOWN.
func (h *history) TimeInStatus(endpoints []health.Endpoint, start, end time.Time) (all []StatusTimes, err error) {
	all = make([]StatusTimes, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		began := h.began(tx)
		past := h.past(tx)
		for i := range endpoints {
			all[i] = past.timeInStatus(&endpoints[i], start, end, began)
		}
		return nil
	})
	return all, err
}

func (p *past) timeInStatus(e *health.Endpoint, start, end, began time.Time) (out StatusTimes) {
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
	until(max(from, nanos(began))) // UNKNOWN before the history began
	if at == to {
		return out
	}
	status = p.asOf(e, at, began).Status
	p.steps(rowOf(e), at, to, func(s step) bool {
		until(s.at)
		status = s.to
		if s.from != s.to { // an override can begin or end without a change
			out.Transitions++
		}
		return true
	})
	until(to)
	return out
}
