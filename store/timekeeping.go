package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

var timeKey = []byte("time")

// lookEvery is how often the wall clock is looked at, besides at each commit.
const lookEvery = time.Minute

// Clock is what the store makes of the wall clock.
type Clock struct {
	Wall    time.Time // what it says
	Steady  time.Time // the time by which the history ages
	Doubted bool      // the two are too far apart, since Since by steady time
	Since   time.Time
	Why     string // it is believed again; for OnClock
}

// moment is a timeline, and when it was looked at.
type moment struct {
	timeline
	at time.Duration
}

// Clock gives what the store makes of the wall clock at present.
func (s *Store) Clock() Clock {
	c := s.moment.Load().clock()
	c.Wall, c.Steady = s.options.now().UTC(), timeOf(s.steadyTime())
	return c
}

func (m *moment) clock() Clock {
	c := Clock{Wall: timeOf(m.wall), Steady: timeOf(m.steady), Doubted: m.doubted()}
	if c.Doubted {
		c.Since = timeOf(m.doubt.since)
	}
	return c
}

// steadyTime is steady time at present.
func (s *Store) steadyTime() uint64 {
	m := s.moment.Load()
	return add(m.steady, uint64(max(s.options.uptime()-m.at, 0)))
}

// ConfirmClock says that the wall clock is right, and gives what was made of it
// before. It is on disk when that comes back without an error.
func (s *Store) ConfirmClock(ctx context.Context, author string) (before Clock, err error) {
	done := make(chan error, 1)
	ask := func() {
		s.look()
		before = s.Clock()
		done <- s.adopt(s.moment.Load().confirm(true), author+" says that it is right")
	}
	select {
	case s.asks <- ask:
		err := <-done
		return before, err
	case <-s.done:
		return Clock{}, ErrClosed
	case <-ctx.Done():
		return Clock{}, fmt.Errorf("the disk does not take the history: %w", context.Cause(ctx))
	}
}

// begin makes the timeline of a history that has none: of one that is new, or
// that an older hdsd has written last when its file was.
func (s *Store) begin(tx *bolt.Tx, wall, written uint64) timeline {
	first, _ := tx.Bucket(transitions).Cursor().First()
	if len(first) != 8 {
		return timeline{steady: wall, wall: wall}
	}
	t := timeline{steady: written, wall: written}
	if retention := uint64(max(s.retention.Load(), 0)); retention > 0 && s.created < written-min(retention, written) {
		t.pruned = number(first) - 1 // at most
	}
	return t
}

// resume takes the timeline up where it was left.
func (s *Store) resume(tx *bolt.Tx, written time.Time) {
	wall, retention := nanos(s.options.now()), time.Duration(s.retention.Load())
	t, ok := readTimeline(tx)
	if !ok {
		t = s.begin(tx, wall, nanos(written))
	}
	next := t.look(wall, t.passedOver(wall, retention), retention, s.last)
	s.cover(&t, &next)
	s.moment.Store(&moment{next, s.options.uptime()})
}

// look makes the timeline follow the wall clock.
func (s *Store) look() {
	m, up := s.moment.Load(), s.options.uptime()
	next := m.look(nanos(s.options.now()), up-m.at, time.Duration(s.retention.Load()), s.last)
	why := "it is near steady time again"
	if m.doubted() && next.steady >= add(m.doubt.since, uint64(patience(time.Duration(s.retention.Load())))) {
		why = "nothing from before the doubt is kept any more"
	}
	if err := s.adopt(next, why); err != nil {
		s.options.OnError(err)
	}
}

// adopt goes on with another timeline. Whether the clock is doubted is on disk
// before anybody is told.
func (s *Store) adopt(next timeline, why string) error {
	before := s.moment.Load()
	if before.doubted() == next.doubted() {
		s.moment.Store(&moment{next, s.options.uptime()})
		return nil
	}
	s.cover(&before.timeline, &next)
	err := s.saveTime(&next)
	now := &moment{next, s.options.uptime()}
	s.moment.Store(now)
	told := now.clock()
	if !told.Doubted {
		told.Why = why
	}
	s.options.OnClock(told)
	return err
}

// cover notes what is put right as the wall clock is believed again.
func (s *Store) cover(before, next *timeline) {
	for noted, i := s.clock.most, 0; i < len(next.strays) && before.doubted() && !next.doubted(); i++ {
		stray := next.strays[i]
		covered := stray.to <= before.doubt.after && slices.Contains(before.strays, stray)
		if stray.ahead > 0 && !covered { // further behind than they were noted when they were recorded
			s.clock.cover(stray.from, stray.to, add(noted, uint64(stray.ahead)))
		}
	}
}

// saveTime puts the timeline on disk.
func (s *Store) saveTime(t *timeline) error {
	s.saved = s.options.uptime()
	err := s.update(func(tx *bolt.Tx) error {
		if err := s.clock.put(tx); err != nil {
			return err
		}
		return t.put(tx)
	})
	if err != nil {
		return fmt.Errorf("history: write what time it is: %w", err)
	}
	return nil
}

// keepTime looks at the wall clock, and puts the timeline on disk often enough
// for a restart to find it near.
func (s *Store) keepTime() {
	s.look()
	if s.options.uptime()-s.saved < min(time.Hour, leapOf(time.Duration(s.retention.Load()))/2) {
		return
	}
	if err := s.saveTime(&s.moment.Load().timeline); err != nil {
		s.options.OnError(err)
	}
}

func (t *timeline) put(tx *bolt.Tx) error {
	row := key(t.steady, t.wall, t.doubt.since, t.doubt.wall, t.doubt.after, t.pruned)
	for _, s := range t.strays {
		row = append(row, key(s.from, s.to, uint64(s.ahead))...)
	}
	return tx.Bucket(header).Put(timeKey, seal(timeKey, row))
}

// readTimeline gives the stored timeline; false where there is none that can be
// read.
func readTimeline(tx *bolt.Tx) (t timeline, ok bool) {
	const fixed, each = 48, 24
	row, ok := unseal(timeKey, tx.Bucket(header).Get(timeKey))
	if !ok || len(row) < fixed || (len(row)-fixed)%each != 0 {
		return timeline{}, false
	}
	t = timeline{
		steady: number(row), wall: number(row[8:]), pruned: number(row[40:]),
		doubt: doubt{since: number(row[16:]), wall: number(row[24:]), after: number(row[32:])},
	}
	for rest := row[fixed:]; len(rest) > 0; rest = rest[each:] {
		t.strays = append(t.strays, stray{number(rest), number(rest[8:]), int64(number(rest[16:]))})
	}
	return t, true
}
