package store

import (
	"slices"
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
// end, with the time in other localities before they moved. Before the history began they were UNKNOWN.
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
	unknown := to - from
	stays := p.stays(e, min(max(from, nanos(began)), to), to)
	p.readCourses(stays)
	for _, s := range stays {
		if s.from == s.to {
			continue
		}
		var spent StatusTimes
		ok := false
		if p.courses == nil {
			spent, ok = p.difference(rowOf(&s.endpoint), s.from, s.to)
		}
		if !ok {
			spent = p.walk(&s.endpoint, s.from, s.to, began)
		}
		out.add(&spent)
		if unknown -= s.to - s.from; s.moved {
			out.Transitions--
		}
	}
	out.In[health.Unknown] += time.Duration(unknown) // before the history began, or it did
	return out
}

func (s *StatusTimes) add(more *StatusTimes) {
	for status, spent := range more.In {
		s.In[status] += spent
	}
	s.Transitions += more.Transitions
}

// walk reads every transition of an endpoint in a period that begins no earlier than the
// history. difference gives the same faster, where it can.
func (p *past) walk(e *health.Endpoint, at, to uint64, began time.Time) (out StatusTimes) {
	status := health.Unknown
	until := func(t uint64) {
		if t = min(t, to); t > at {
			if !status.Valid() {
				status = health.Unknown
			}
			out.In[status] += time.Duration(t - at)
			at = t
		}
	}
	row := rowOf(e)
	for _, end := range p.parts(row, at, to) {
		if at >= end {
			continue
		}
		status = p.asOf(e, at, began).Status
		p.steps(row, at, end, func(s step) bool {
			until(s.at)
			if status = s.to; p.inGap(s.recorded) {
				status = health.Unknown
			}
			if s.from != s.to { // an override can begin or end without a change
				out.Transitions++
			}
			return true
		})
		until(end)
	}
	return out
}

// parts returns the ends of the parts that gaps divide a period into. The last transition
// of an endpoint is known even if it is in a gap.
func (p *past) parts(row []byte, start, end uint64) (ends []uint64) {
	if len(p.gaps) == 0 {
		return []uint64{end}
	}
	if last, ok := p.latest(row); ok && nanos(last.Time) > start && nanos(last.Time) < end {
		ends = append(ends, nanos(last.Time))
	}
	for i := range p.gaps {
		for _, at := range [2]uint64{nanos(p.gaps[i].Start), nanos(p.gaps[i].End) + 1} {
			if at > start && at < end {
				ends = append(ends, at)
			}
		}
	}
	slices.Sort(ends)
	return append(ends, end)
}

// inGap reports whether something was recorded between two gaps that became one.
func (p *past) inGap(recorded uint64) bool {
	return slices.ContainsFunc(p.gaps, func(g gap) bool { return g.from < recorded && recorded < g.to })
}
