package store

import (
	"hdsd/health"
	"hdsd/log"
)

// Records are what is stored with entries of the log.
type Records struct {
	Digest uint64 // of the last one; 0: unknown
	Events []Event
	Audit  []AuditEntry
}

// Follow adds entries of the log of a fleet, their records, and the sequence of the last
// of them. One transaction has all of these, so a crash leaves the database with exactly the entries up
// to its cursor. SetFleet comes first. Follow ignores entries up to a cursor that it has got before. It
// does not wait for the disk; Flush does. The entries must not change afterwards.
func (s *Store) Follow(entries []*log.Entry, cursor uint64, r Records) {
	if !s.isBefore(cursor) {
		return
	}
	rows := newIntake(0) // collects rows only
	next := &portion{advance: advance{sequence: cursor, digest: r.Digest}, events: records{waiting: journalEntries(r.Events)}}
	for i := range r.Audit {
		next.audit.waiting = append(next.audit.waiting, &r.Audit[i])
	}
	var parts [][]health.Transition
	for _, e := range entries {
		s.applyFirst(rows, e)
		s.rememberClustersOf(rows, e.Transitions)
		for _, part := range pieces(e.Transitions) {
			parts = append(parts, dated(part, s.now))
		}
		rows.applyRows(e)
	}
	next.plan, next.rows = rows.plan, rows.rows
	s.intake.follow(next, parts)
}

// isBefore reports whether Follow has got no entry at a cursor, or behind it.
func (s *Store) isBefore(cursor uint64) bool {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	return s.intake.fleet.sequence < cursor
}

// follow queues a portion and its transitions.
func (in *intake) follow(next *portion, parts [][]health.Transition) {
	in.work(func() {
		if in.closed {
			return
		}
		next.start, next.before = in.submitted.transitions, in.submitted.rows
		next.end = next.start
		for _, part := range parts {
			in.pending.add(part)
			next.end += uint64(len(part))
		}
		in.submitted.transitions = next.end
		in.submitted.rows++
		in.fleet.add(next, in.pending.smallest())
		in.drop(in.pending.count + in.stat.Pending - in.pending.limit)
	})
}

// diverge queues a portion that marks a database with a fleet as diverged, before something that is not in
// the log of the fleet.
func (s *Store) diverge() {
	in := s.intake
	if !in.fleet.joined.Load() {
		return
	}
	in.work(func() {
		if !in.closed && in.fleet.joined.Load() {
			in.fleet.move(advance{sequence: in.fleet.sequence, diverges: true}, &in.submitted)
		}
	})
}
