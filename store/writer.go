package store

import (
	"fmt"
	"slices"
	"time"

	"hdsd/health"
)

const (
	groupSize  = 4096
	groupTime  = 10 * time.Millisecond
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// write is the writer's goroutine: it commits group after group, and prunes
// in between. When the store closes, it commits what is left and returns.
func (s *Store) write() {
	defer close(s.done)
	defer s.intake.end()
	pruning := time.NewTicker(s.options.pruneEvery)
	defer pruning.Stop()
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	if clock := s.Clock(); clock.Doubted {
		s.options.OnClock(clock)
	}
	s.intake.askPrune()
	for s.gather(pruning.C, looking.C) {
		if g := s.intake.take(); g != nil && !s.save(g) {
			return
		}
		s.reportDropped()
		s.pruneSome()
		s.forgetSome()
		s.answer() // also while there is much to prune
	}
	for g := s.intake.take(); g != nil; g = s.intake.take() {
		if !s.save(g) {
			return
		}
	}
	s.look()
	_ = s.saveTime(&s.moment.Load().timeline) // without it, the next start finds an earlier one
}

// gather waits until there is something to do; false when the store closes.
func (s *Store) gather(pruning, looking <-chan time.Time) bool {
	var due <-chan time.Time
	for {
		something, now := s.intake.due()
		if now || !s.intake.idle() {
			break
		}
		if something && due == nil {
			timer := time.NewTimer(groupTime)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-s.intake.wake:
			continue
		case <-pruning:
			s.intake.askPrune()
			continue
		case <-looking:
			s.keepTime()
			continue
		case ask := <-s.asks:
			ask()
			continue
		case <-s.closing:
			return false
		case <-due:
		}
		break
	}
	return !s.isClosing()
}

// answer does what somebody asks for, if anybody does.
func (s *Store) answer() {
	select {
	case ask := <-s.asks:
		ask()
	default:
	}
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// save commits a group, again and again if need be; false when the store
// closes and the disk did not take the group at the last attempt.
func (s *Store) save(g *group) bool {
	s.number(g)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		last := s.isClosing()
		err := s.update(g.write(s.clock, &s.moment.Load().timeline))
		if err == nil {
			s.intake.committed(g)
			return true
		}
		err = fmt.Errorf("history: write %d transitions: %w", len(g.transitions), err)
		s.intake.failed(err)
		s.options.OnError(err)
		s.reportDropped()
		if last {
			return false
		}
		s.pause(wait)
	}
}

// pause waits; it ends early when the store closes.
func (s *Store) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

// number gives each transition its recorded time and its keys, once, so that
// a group that is written again is the same.
func (s *Store) number(g *group) {
	s.look()
	now, retention := *s.moment.Load(), time.Duration(s.retention.Load())
	if now.doubted() {
		now.strays = slices.Clone(now.strays)
	}
	g.places = make([]place, len(g.transitions))
	for i := range g.transitions {
		t := &g.transitions[i]
		own := nanos(t.Time)
		recorded, dated := now.place(own, s.last, retention)
		if s.last = recorded; dated != own {
			move(t, dated)
		}
		s.clock.note(recorded, dated)
		g.places[i] = place{recorded, uint64(health.ClusterHash(t.Endpoint.Cluster)), t.Endpoint.Hash()}
	}
	s.moment.Store(&now)
}

// reportDropped reports transitions dropped since the last report.
func (s *Store) reportDropped() {
	if dropped := s.Stats().Dropped; dropped > s.dropped {
		s.options.OnError(fmt.Errorf("%w: %d, since more than %d waited for the disk", ErrDropped, dropped-s.dropped, s.options.MaxPending))
		s.dropped = dropped
	}
}
