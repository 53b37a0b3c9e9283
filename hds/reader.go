package hds

import (
	"slices"

	"hdsd/health"
)

// reading is the result of reading one report.
type reading struct {
	votes   []health.Vote // changed votes; the receiver may keep them
	kind    reportKind
	strange uint64 // entries about endpoints that were never assigned, or without a valid status
	matched uint64 // seq of the newest specifier that the checker is known to follow
	follows bool   // a report has listed all of a non-empty specifier
}

// reader turns the reports of one session into votes. It belongs to the goroutine
// that receives.
type reader struct {
	plans     plans
	plan      *plan      // the current one
	last      []observed // by entry of plan: the latest report, also on earlier plans
	scratch   []observed
	stretches []stretch // the clusters of the latest report, if last has all of its content; else empty
	reading
}

// repeats reports whether a message equals the one before, and that one was as expected.
func (r *reader) repeats(m *message) bool {
	return m.same && m.plans.current() == r.plan && r.strange == 0
}

// read returns the content of a report. An error means that the bytes are no report, or one far
// beyond its assignment. Its status is INVALID_ARGUMENT unless it has another.
func (r *reader) read(m *message, stopped func() bool) (reading, error) {
	r.votes = nil
	if m.same && m.plans.current() == r.plan {
		r.kind = unchangedReport
		return r.reading, nil
	}
	r.adopt(m.plans)
	r.strange = 0
	for _, p := range slices.Backward(r.plans) {
		if r.walk(m, p) {
			return r.reading, nil
		}
	}
	m.readFrom(0)
	return r.general(m.bytes, stopped)
}

// walk reads a report that follows p in the order and form of Envoy's reports.
func (r *reader) walk(m *message, p *plan) bool {
	w := walker{plan: p, entries: r.buffer(p), now: r.stretches[:0], sums: &m.sums}
	if p == r.plan && p.seq == r.matched {
		w.last, w.before = r.last, r.stretches
	}
	r.stretches = r.stretches[:0]
	if !w.walk(m.bytes) {
		return false
	}
	m.readFrom(w.nested)
	r.kind = changedReport
	if len(m.bytes) == 0 {
		r.kind = heartbeat
	}
	r.apply(p, w.entries)
	if p == r.plan && r.strange == 0 {
		r.stretches = w.now
	}
	return true
}

// general reads a report that matches no plan.
func (r *reader) general(message []byte, stopped func() bool) (reading, error) {
	r.stretches = r.stretches[:0]
	if err := r.plans.checkEntries(message); err != nil {
		return reading{}, err
	}
	d, err := decode(message, stopped)
	if err != nil {
		return reading{}, err
	}
	r.kind = unexpectedReport
	if d.request {
		return r.reading, nil
	}
	for _, p := range slices.Backward(r.plans) {
		if d.follows(p) {
			entries := r.buffer(p)
			for i := range d.entries {
				entries[i] = d.entries[i].observed
			}
			r.apply(p, entries)
			return r.reading, nil
		}
	}
	if d.empty {
		r.kind = heartbeat
		return r.reading, nil
	}
	for i := range d.entries {
		r.place(&d, &d.entries[i])
	}
	return r.reading, nil
}

// place votes by one entry of a report that follows no plan.
func (r *reader) place(d *decoded, e *entry) {
	if r.plan != nil {
		if index, known := d.find(e, r.plan); index >= 0 {
			r.vote(index, e.observed)
			return
		} else if known {
			return
		}
	}
	for _, p := range r.plans {
		if _, known := d.find(e, p); known {
			return
		}
	}
	r.strange++
}

// apply votes by a report that follows p. The first report on the current plan yields all votes;
// later ones, and those on earlier plans, yield changes. An id in an old plan may stand for
// another endpoint by now, so the address must match.
func (r *reader) apply(p *plan, entries []observed) {
	if p == r.plan {
		if r.matched != p.seq {
			clear(r.last)
			r.votes = make([]health.Vote, 0, len(entries))
		}
		for i := range entries {
			if entries[i] != r.last[i] {
				r.vote(i, entries[i])
			}
		}
		p.dropIndexes()
		if len(r.plans) > 1 {
			r.plans = plans{p}
		}
	} else {
		index := r.plan.ids()
		for i, id := range p.order {
			if j, ok := index[id]; ok && p.addresses[i] == r.plan.addresses[j] {
				r.vote(j, entries[i])
			}
		}
	}
	if len(r.votes) == 0 {
		r.votes = nil // tells the sink that nothing changed
	}
	r.matched = max(r.matched, p.seq)
	r.follows = r.follows || len(p.order) > 0
}

func (r *reader) vote(index int, o observed) {
	if o.status == strangeStatus {
		r.strange++
		return
	}
	if r.last[index] != o {
		r.last[index] = o
		r.votes = append(r.votes, health.Vote{Endpoint: r.plan.order[index], Status: o.status, HTTPStatusCode: o.code})
	}
}

// adopt puts plans in force, except those older than the one that the checker is known to
// follow. It keeps the state of endpoints that stay.
func (r *reader) adopt(candidates plans) {
	for len(candidates) > 0 && candidates[0].seq < r.matched {
		candidates = candidates[1:]
	}
	r.plans = candidates
	current := candidates.current()
	if current == r.plan {
		return
	}
	last := make([]observed, len(current.order))
	if r.plan != nil {
		index := current.ids()
		for i, id := range r.plan.order {
			if j, ok := index[id]; ok && r.plan.addresses[i] == current.addresses[j] {
				last[j] = r.last[i]
			}
		}
	}
	r.plan, r.last, r.stretches = current, last, nil
}

// buffer returns space for the entries of p, valid until the next call.
func (r *reader) buffer(p *plan) []observed {
	if cap(r.scratch) < len(p.order) {
		r.scratch = make([]observed, len(p.order))
	}
	return r.scratch[:len(p.order)]
}
