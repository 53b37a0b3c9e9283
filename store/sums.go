package store

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// sums is a row of the index by endpoint. It says how long the endpoint had each status up
// to this transition, so that availability is the difference of two rows.
//
// The rows of an endpoint that count from the same one on are a chain. A chain ends at a
// row without sums, as an older hdsd wrote, and at a damaged one.
type sums struct {
	recorded uint64
	own      uint64    // the transition's own time
	at       uint64    // no earlier than that of any before
	from, to byte      // statuses
	in       [6]uint64 // nanoseconds in each status since the chain begins
	changes  uint64    // since then, without transitions that change no status
}

// begin returns the row of a transition that begins a chain.
func begin(recorded uint64, t *health.Transition) sums {
	own := nanos(t.Time)
	s := sums{recorded: recorded, own: own, at: own, from: byte(t.From), to: byte(t.To)}
	if s.from != s.to {
		s.changes = 1
	}
	return s
}

// follow returns a row as it is behind s, in the same chain.
func (s *sums) follow(next sums) sums {
	next.at = max(next.own, s.at)
	next.changes += s.changes
	next.in = s.in
	next.in[valid(s.to)] += next.at - s.at
	return next
}

// valid returns a status that there is: others count as UNKNOWN.
func valid(status byte) byte {
	if !health.Status(status).Valid() {
		return byte(health.Unknown)
	}
	return status
}

// begun returns when the chain begins, which tells chains of one endpoint apart.
func (s *sums) begun() uint64 {
	at := s.at
	for _, spent := range s.in {
		at -= spent
	}
	return at
}

// encode writes a value without its checksum. Most times are 0, and take no byte.
func (s *sums) encode() []byte {
	b := make([]byte, 2, 48)
	b[0], b[1] = s.from, s.to
	b = binary.AppendUvarint(b, s.recorded-s.own)
	b = binary.AppendUvarint(b, s.at-s.own)
	b = binary.AppendUvarint(b, s.changes)
	spent := byte(0)
	for status, t := range s.in {
		if t > 0 {
			spent |= 1 << status
		}
	}
	b = append(b, spent)
	for _, t := range s.in {
		if t > 0 {
			b = binary.AppendUvarint(b, t)
		}
	}
	return b
}

// decodeSums reads a value of the index by endpoint whose key ends with a recorded time.
func decodeSums(recorded uint64, row []byte) (s sums, ok bool) {
	r := reader{rest: row}
	s.from, s.to = r.byte(), r.byte()
	s.recorded, s.own = recorded, recorded-r.uvarint()
	s.at = s.own + r.uvarint()
	s.changes = r.uvarint()
	spent := r.byte()
	for status := range s.in {
		if spent&(1<<status) != 0 {
			s.in[status] = r.uvarint()
		}
	}
	return s, !r.bad && len(r.rest) == 0 && s.own <= s.at && s.at <= recorded && spent < 1<<len(s.in)
}

// plainRow is the size of a row without sums: two statuses.
const plainRow = 2

// openSums reads a row of the index by endpoint and its checksum. It returns false for a
// row without sums.
func openSums(k, v []byte) (sums, bool) {
	if len(v) == plainRow || len(k) != 24 {
		return sums{}, false
	}
	row, ok := unseal(k, v)
	if !ok {
		return sums{}, false
	}
	return decodeSums(number(k[16:]), row)
}

// goodInIndex reports whether a row of the index by endpoint can be read.
func goodInIndex(k, v []byte) bool {
	if len(v) == plainRow {
		return len(k) == 24
	}
	_, ok := openSums(k, v)
	return ok
}

// putInIndex writes the row of a transition behind that of the endpoint's one before.
func putInIndex(rows *bolt.Cursor, at *place) error {
	k := key(at.cluster, uint64(at.endpoint), at.recorded)
	next := begin(at.recorded, at.transition)
	if before, v := seekBefore(rows, k); len(before) == len(k) && bytes.HasPrefix(before, k[:16]) {
		if last, ok := openSums(before, v); ok {
			next = last.follow(next)
		} else {
			next.at = max(next.own, number(before[16:]))
		}
	}
	return rows.Bucket().Put(k, seal(k, next.encode()))
}

// preceded returns the row that the first one kept stands for: from then on, the endpoint
// had the status that its first transition is from.
func (s *sums) preceded(from uint64) *sums {
	p := *s
	p.own, p.at, p.to = from, from, s.from
	p.in[valid(s.from)] -= s.at - from // below 0 too: it counts as part of a difference
	if s.from != s.to {
		p.changes--
	}
	return &p
}

// difference returns how long an endpoint had each status from one time on and before
// another, by the sums of the rows next to them. It returns false where those do not tell:
// where there are none, at a gap, and where transitions are shown at other times than their own.
func (p *past) difference(row []byte, from, to uint64) (out StatusTimes, ok bool) {
	if p.dates.line.Corrects() {
		return out, false
	}
	first, ok := p.sumsBefore(row, from)
	if !ok {
		return out, false
	}
	last, ok := p.sumsBefore(row, to)
	if !ok || last == nil || p.gapAt(row, first, last, from, to) {
		return out, false
	}
	if first == nil {
		next, ok := openSums(p.endpoint.Seek(row))
		if !ok || next.at > next.own { // what was deleted happened later
			return out, false
		}
		first = next.preceded(from)
	}
	if first.begun() != last.begun() {
		return out, false
	}
	for status := range out.In {
		out.In[status] = time.Duration(last.in[status] - first.in[status])
	}
	out.In[valid(first.to)] -= time.Duration(from - first.at)
	out.In[valid(last.to)] += time.Duration(to - last.at)
	out.Transitions = int(last.changes - first.changes)
	return out, true
}

// sumsBefore returns the last row of an endpoint whose transition happened before a time,
// or nil if there is none. It returns false if that cannot be told.
func (p *past) sumsBefore(row []byte, end uint64) (_ *sums, ok bool) {
	ranges := p.dates.search(0, end+1) // one that happened at that very time tells, too
	k, v := seekBefore(p.endpoint, append(slices.Clone(row), key(ranges[len(ranges)-1].To)...))
	for ; bytes.HasPrefix(k, row); k, v = p.endpoint.Prev() {
		s, ok := openSums(k, v)
		p.damage.unless(ok || len(v) == plainRow, byEndpoint, k)
		switch {
		case !ok, s.own <= end && s.at >= end && s.at > s.own: // one before happened later
			return nil, false
		case s.own < end:
			return &s, true
		}
	}
	return nil, true
}

// gapAt reports whether a gap may hide what happened in a period, or before it and behind
// first, which may be nil. last is the last row of the period.
func (p *past) gapAt(row []byte, first, last *sums, from, to uint64) bool {
	behind := uint64(0)
	if first != nil {
		behind = first.recorded
	}
	if len(p.gaps) > 0 && (last.at > last.own || p.another(row, last)) { // then its time divides the period
		return true
	}
	return slices.ContainsFunc(p.gaps, func(g gap) bool {
		if g.to <= behind && nanos(g.End) < from {
			return false
		}
		if nanos(g.Start) <= to || g.from < last.recorded {
			return true
		}
		now, ok := p.latest(row) // it is known even if it is in a gap
		return !ok || nanos(now.Time) < to
	})
}

// another reports whether there is a row before one of an endpoint that happened at the same
// time, or may have.
func (p *past) another(row []byte, of *sums) bool {
	k, v := seekBefore(p.endpoint, append(slices.Clone(row), key(of.recorded)...))
	if !bytes.HasPrefix(k, row) {
		return false
	}
	before, ok := openSums(k, v)
	return !ok || before.at >= of.own
}
