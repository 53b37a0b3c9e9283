package store

import (
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// StatusTimes is how long an endpoint had each status.
type StatusTimes struct {
	Durations   [6]time.Duration // by health.Status
	Transitions int
}

// TimeInStatus adds up the time of endpoints in each status within [start, end), including time
// in other localities before they moved. Before the history began, endpoints were UNKNOWN.
func (h *history) TimeInStatus(endpoints []health.Endpoint, start, end time.Time) (times []StatusTimes, err error) {
	times = make([]StatusTimes, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		began := h.began(tx)
		past := h.past(tx)
		for i := range endpoints {
			times[i] = past.timeInStatus(&endpoints[i], start, end, began)
		}
		return nil
	})
	return times, err
}

func (p *past) timeInStatus(e *health.Endpoint, start, end, began time.Time) (times StatusTimes) {
	from, to := nanos(start), nanos(end)
	if from >= to {
		return times
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
		times.add(&spent)
		if unknown -= s.to - s.from; s.moved {
			times.Transitions--
		}
	}
	times.Durations[health.Unknown] += time.Duration(unknown) // before the history began, or it did
	return times
}

func (s *StatusTimes) add(other *StatusTimes) {
	for status, spent := range other.Durations {
		s.Durations[status] += spent
	}
	s.Transitions += other.Transitions
}

// walk reads every transition of an endpoint in a period that begins no earlier than the
// history. difference returns the same result faster, where it can.
func (p *past) walk(e *health.Endpoint, start, end uint64, began time.Time) (times StatusTimes) {
	status := health.Unknown
	addUntil := func(t uint64) {
		if t = min(t, end); t > start {
			if !status.Valid() {
				status = health.Unknown
			}
			times.Durations[status] += time.Duration(t - start)
			start = t
		}
	}
	row := rowOf(e)
	for _, end := range p.parts(row, start, end) {
		if start >= end {
			continue
		}
		status = p.asOf(e, start, began).Status
		p.steps(row, start, end, func(s step) bool {
			addUntil(s.time)
			if status = s.to; p.inGap(s.recorded) {
				status = health.Unknown
			}
			if s.from != s.to { // an override can begin or end without a change
				times.Transitions++
			}
			return true
		})
		addUntil(end)
	}
	return times
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
		for _, bound := range [2]uint64{nanos(p.gaps[i].Start), nanos(p.gaps[i].End) + 1} {
			if bound > start && bound < end {
				ends = append(ends, bound)
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
