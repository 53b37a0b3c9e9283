package store

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/internal/packed"
)

// sums is a row of the index by endpoint: the endpoint's time in each status up to this
// transition. Availability is the difference of two rows.
//
// Rows that count from the same start are a chain. A chain ends at a row without sums, as an
// older hdsd wrote, and at a damaged one.
type sums struct {
	recorded  uint64
	ownTime   uint64    // the transition's own time
	latest    uint64    // at least the own time of every earlier transition
	from, to  byte      // statuses
	durations [6]uint64 // nanoseconds in each status since the chain began
	changes   uint64    // transitions since then that changed the status
}

// begin returns the row of a transition that begins a chain.
func begin(recorded uint64, t *health.Transition) sums {
	ownTime := nanos(t.Time)
	s := sums{recorded: recorded, ownTime: ownTime, latest: ownTime, from: byte(t.From), to: byte(t.To)}
	if s.from != s.to {
		s.changes = 1
	}
	return s
}

// follow returns next as the row behind s, in the same chain.
func (s *sums) follow(next sums) sums {
	next.latest = max(next.ownTime, s.latest)
	next.changes += s.changes
	next.durations = s.durations
	next.durations[valid(s.to)] += next.latest - s.latest
	return next
}

// valid maps unknown values to UNKNOWN.
func valid(status byte) byte {
	if !health.Status(status).Valid() {
		return byte(health.Unknown)
	}
	return status
}

// begun returns the start of the chain, which tells an endpoint's chains apart.
func (s *sums) begun() uint64 {
	start := s.latest
	for _, spent := range s.durations {
		start -= spent
	}
	return start
}

// encode writes a value without its checksum. Most durations are 0, and take no byte.
func (s *sums) encode() []byte {
	b := make([]byte, 2, 48)
	b[0], b[1] = s.from, s.to
	b = binary.AppendUvarint(b, s.recorded-s.ownTime)
	b = binary.AppendUvarint(b, s.latest-s.ownTime)
	b = binary.AppendUvarint(b, s.changes)
	spent := byte(0)
	for status, t := range s.durations {
		if t > 0 {
			spent |= 1 << status
		}
	}
	b = append(b, spent)
	for _, t := range s.durations {
		if t > 0 {
			b = binary.AppendUvarint(b, t)
		}
	}
	return b
}

// decodeSums reads a value of the index by endpoint whose key ends with a recorded time.
func decodeSums(recorded uint64, row []byte) (s sums, ok bool) {
	r := packed.Reader{Rest: row}
	s.from, s.to = r.Byte(), r.Byte()
	s.recorded, s.ownTime = recorded, recorded-r.Uvarint()
	s.latest = s.ownTime + r.Uvarint()
	s.changes = r.Uvarint()
	spent := r.Byte()
	for status := range s.durations {
		if spent&(1<<status) != 0 {
			s.durations[status] = r.Uvarint()
		}
	}
	return s, !r.Bad && len(r.Rest) == 0 && s.ownTime <= s.latest && s.latest <= recorded && spent < 1<<len(s.durations)
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

// putInIndex writes the row of a transition behind the endpoint's previous one.
func putInIndex(rows *bolt.Cursor, p *place) error {
	k := key(p.cluster, uint64(p.endpoint), p.recorded)
	next := begin(p.recorded, p.transition)
	if before, v := seekBefore(rows, k); len(before) == len(k) && bytes.HasPrefix(before, k[:16]) {
		if last, ok := openSums(before, v); ok {
			next = last.follow(next)
		} else {
			next.latest = max(next.ownTime, number(before[16:]))
		}
	}
	return rows.Bucket().Put(k, seal(k, next.encode()))
}

// preceded returns the row before the first kept one: from start on, the endpoint had the status
// before its first transition.
func (s *sums) preceded(start uint64) *sums {
	p := *s
	p.ownTime, p.latest, p.to = start, start, s.from
	p.durations[valid(s.from)] -= s.latest - start // below 0 too: it counts as part of a difference
	if s.from != s.to {
		p.changes--
	}
	return &p
}

// difference returns the endpoint's time in each status within [from, to), by the sums of the
// rows next to them. It returns false where sums are missing, at a gap, and where transitions
// are shown at other times than their own.
func (p *past) difference(row []byte, from, to uint64) (times StatusTimes, ok bool) {
	if p.dates.line.Corrects() {
		return times, false
	}
	first, ok := p.sumsBefore(row, from)
	if !ok {
		return times, false
	}
	last, ok := p.sumsBefore(row, to)
	if !ok || last == nil || p.gapAt(row, first, last, from, to) {
		return times, false
	}
	if first == nil {
		next, ok := openSums(p.endpoint.Seek(row))
		if !ok || next.latest > next.ownTime { // what was deleted happened later
			return times, false
		}
		first = next.preceded(from)
	}
	if first.begun() != last.begun() {
		return times, false
	}
	for status := range times.Durations {
		times.Durations[status] = time.Duration(last.durations[status] - first.durations[status])
	}
	times.Durations[valid(first.to)] -= time.Duration(from - first.latest)
	times.Durations[valid(last.to)] += time.Duration(to - last.latest)
	times.Transitions = int(last.changes - first.changes)
	return times, true
}

// sumsBefore returns the last row of an endpoint whose transition happened before a time, or nil
// if there is none. It returns false if that is unknown.
func (p *past) sumsBefore(row []byte, end uint64) (_ *sums, ok bool) {
	ranges := p.dates.search(0, end+1) // one that happened at that very time tells, too
	k, v := seekBefore(p.endpoint, append(slices.Clone(row), key(ranges[len(ranges)-1].To)...))
	for ; bytes.HasPrefix(k, row); k, v = p.endpoint.Prev() {
		s, ok := openSums(k, v)
		p.damage.unless(ok || len(v) == plainRow, byEndpoint, k)
		switch {
		case !ok, s.ownTime <= end && s.latest >= end && s.latest > s.ownTime: // one before happened later
			return nil, false
		case s.ownTime < end:
			return &s, true
		}
	}
	return nil, true
}

// gapAt reports whether a gap may hide transitions in a period, or before it and behind first,
// which may be nil. last is the last row of the period.
func (p *past) gapAt(row []byte, first, last *sums, from, to uint64) bool {
	lower := uint64(0)
	if first != nil {
		lower = first.recorded
	}
	if len(p.gaps) > 0 && (last.latest > last.ownTime || p.hasTwin(row, last)) { // then its time divides the period
		return true
	}
	return slices.ContainsFunc(p.gaps, func(g gap) bool {
		if g.to <= lower && nanos(g.End) < from {
			return false
		}
		if nanos(g.Start) <= to || g.from < last.recorded {
			return true
		}
		now, ok := p.latest(row) // it is known even if it is in a gap
		return !ok || nanos(now.Time) < to
	})
}

// hasTwin reports whether an earlier row of the endpoint happened, or may have, at the same
// time.
func (p *past) hasTwin(row []byte, s *sums) bool {
	k, v := seekBefore(p.endpoint, append(slices.Clone(row), key(s.recorded)...))
	if !bytes.HasPrefix(k, row) {
		return false
	}
	before, ok := openSums(k, v)
	return !ok || before.latest >= s.ownTime
}
