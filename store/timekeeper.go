package store

import (
	"fmt"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/store/timeline"
)

// Rows of the header.
var (
	skewKey = []byte("clock")
	timeKey = []byte("time")
)

// Clock compares the wall clock with steady time.
type Clock struct {
	Wall    time.Time // the wall clock's time
	Steady  time.Time // the time by which the history ages
	Doubted bool      // Wall and Steady are too far apart, since Since by steady time
	Since   time.Time
	Reason  string // reason why the clock is believed again; for OnClock
}

// timekeeper owns the timeline of an open history. Only the writer's goroutine changes it; any
// goroutine may read it.
type timekeeper struct {
	db      *database
	now     func() time.Time
	uptime  func() time.Duration
	onClock func(Clock)
	onError func(error)

	retention atomic.Int64 // a time.Duration; 0 is for ever
	moment    atomic.Pointer[moment]

	// Owned by the writer.
	last  uint64 // recorded time of the last transition
	skew  timeline.Skew
	saved time.Duration // when the timeline was put on disk
}

// moment is a timeline, and the uptime at its last look.
type moment struct {
	timeline.Timeline
	uptime time.Duration
}

func newTimekeeper(db *database, o *Options) *timekeeper {
	t := &timekeeper{db: db, now: o.now, uptime: o.uptime, onClock: o.OnClock, onError: o.OnError}
	t.retention.Store(int64(o.Retention))
	return t
}

// load continues the timeline of a history. created and written are the times of its first and
// its last write.
func (t *timekeeper) load(tx *bolt.Tx, created uint64, written time.Time) {
	t.last = newest(tx)
	t.skew = readSkew(tx)
	wall, retention := nanos(t.now()), t.keep()
	line, ok := readTimeline(tx)
	if !ok {
		line = t.begin(tx, wall, created, nanos(written))
	}
	next := line.Look(wall, line.Elapsed(wall, retention), retention, t.last)
	t.moment.Store(&moment{next, t.uptime()})
}

// begin makes the timeline of a history without one. For a history of an older hdsd it ends at
// the last write of the file.
func (t *timekeeper) begin(tx *bolt.Tx, wall, created, written uint64) timeline.Timeline {
	first, _ := tx.Bucket(transitions).Cursor().First()
	if len(first) != 8 {
		return timeline.New(wall, 0)
	}
	pruned := uint64(0)
	if retention := uint64(max(t.keep(), 0)); retention > 0 && created < written-min(retention, written) {
		pruned = number(first) - 1 // at most
	}
	return timeline.New(written, pruned)
}

// keep returns the retention.
func (t *timekeeper) keep() time.Duration { return time.Duration(t.retention.Load()) }

// steady returns steady time at present.
func (t *timekeeper) steady() uint64 {
	m := t.moment.Load()
	return m.Steady(t.uptime() - m.uptime)
}

// edge returns the steady time before which nothing is kept, or 0 for none.
func (t *timekeeper) edge() uint64 {
	retention := t.keep()
	if retention <= 0 {
		return 0
	}
	if steady := t.steady(); steady > uint64(retention) {
		return steady - uint64(retention)
	}
	return 0
}

// clock returns the comparison at present.
func (t *timekeeper) clock() Clock {
	c := t.moment.Load().clock()
	c.Wall, c.Steady = t.now().UTC(), timeOf(t.steady())
	return c
}

func (m *moment) clock() Clock {
	c := Clock{Wall: timeOf(m.Wall()), Steady: timeOf(m.Steady(0)), Doubted: m.Doubted()}
	if c.Doubted {
		c.Since = timeOf(m.DoubtedSince())
	}
	return c
}

// look compares the wall clock.
func (t *timekeeper) look() {
	m, uptime, retention := t.moment.Load(), t.uptime(), t.keep()
	next := m.Look(nanos(t.now()), uptime-m.uptime, retention, t.last)
	reason := "it is near steady time again"
	if m.Outlasted(next.Steady(0), retention) {
		reason = "nothing from before the doubt is kept any more"
	}
	if err := t.adopt(next, reason); err != nil {
		t.onError(err)
	}
}

// confirm believes the wall clock, and returns the comparison before. Without an error, it is on
// disk.
func (t *timekeeper) confirm(author string) (before Clock, err error) {
	t.look()
	before = t.clock()
	return before, t.adopt(t.timeline().Confirm(true), author+" says that it is right")
}

// adopt continues with another timeline. A doubt that begins or ends is on disk
// before onClock is called.
func (t *timekeeper) adopt(next timeline.Timeline, reason string) error {
	before, now := t.moment.Load(), &moment{next, t.uptime()}
	if before.Doubted() == next.Doubted() {
		t.moment.Store(now)
		return nil
	}
	err := t.save(next)
	now.uptime = t.uptime()
	t.moment.Store(now)
	c := now.clock()
	if !c.Doubted {
		c.Reason = reason
	}
	t.onClock(c)
	return err
}

// save puts a timeline on disk.
func (t *timekeeper) save(line timeline.Timeline) error {
	t.saved = t.uptime()
	if err := t.db.update(func(tx *bolt.Tx) error { return putTime(tx, &line, t.skew) }); err != nil {
		return fmt.Errorf("history: write what time it is: %w", err)
	}
	return nil
}

// tick compares the wall clock, and saves the timeline often enough for a restart to find it
// near.
func (t *timekeeper) tick() {
	t.look()
	if t.uptime()-t.saved < min(time.Hour, timeline.Leap(t.keep())/2) {
		return
	}
	if err := t.save(*t.timeline()); err != nil {
		t.onError(err)
	}
}

// record gives the transitions of a group their recorded times, and the gap before them. It
// corrects times that the wall clock misdated. undo reverts this, so that others can be recorded
// instead.
func (t *timekeeper) record(g *group) (undo func()) {
	t.look()
	last, skew := t.last, t.skew
	m, retention := t.moment.Load(), t.keep()
	next := &moment{m.Clone(), m.uptime}
	record := func(ownTime uint64) (recorded, dated uint64) {
		recorded, dated = next.Record(ownTime, t.last, retention)
		t.last = recorded
		t.skew.Note(recorded, dated)
		return recorded, dated
	}
	if g.missing.Transitions > 0 {
		g.gap = &gap{Gap: g.missing}
		from, start := record(nanos(g.missing.Start))
		to, end := record(nanos(g.missing.End))
		g.gap.from, g.gap.to, g.gap.Start, g.gap.End = from, to, timeOf(start), timeOf(end)
	}
	g.places = make([]place, len(g.transitions))
	for i := range g.transitions {
		transition := &g.transitions[i]
		ownTime := nanos(transition.Time)
		recorded, dated := record(ownTime)
		if dated != ownTime {
			redate(transition, dated)
		}
		g.places[i] = placeOf(recorded, transition)
	}
	t.moment.Store(next)
	return func() {
		t.last, t.skew = last, skew
		t.moment.Store(m)
	}
}

// put writes the timeline in the transaction of a group.
func (t *timekeeper) put(tx *bolt.Tx) error {
	return putTime(tx, t.timeline(), t.skew)
}

// prune deletes the transitions up to a recorded time by remove, and records it in the same
// transaction.
func (t *timekeeper) prune(upTo uint64, remove func(*bolt.Tx) error) error {
	m := t.moment.Load()
	next, skew := &moment{m.Prune(upTo), m.uptime}, t.skew.Prune(upTo)
	err := t.db.update(func(tx *bolt.Tx) error {
		if err := remove(tx); err != nil {
			return err
		}
		return putTime(tx, &next.Timeline, skew)
	})
	if err == nil {
		t.skew = skew
		t.moment.Store(next)
	}
	return err
}

func putTime(tx *bolt.Tx, line *timeline.Timeline, skew timeline.Skew) error {
	rows := tx.Bucket(header)
	if err := rows.Put(timeKey, seal(timeKey, line.Append(nil))); err != nil || skew == readSkew(tx) {
		return err
	}
	return rows.Put(skewKey, seal(skewKey, skew.Append(nil)))
}

// readTimeline returns the stored timeline, or false if none can be read.
func readTimeline(tx *bolt.Tx) (timeline.Timeline, bool) {
	row, ok := unseal(timeKey, tx.Bucket(header).Get(timeKey))
	if !ok {
		return timeline.Timeline{}, false
	}
	return timeline.Parse(row)
}

func readSkew(tx *bolt.Tx) timeline.Skew {
	sealed := tx.Bucket(header).Get(skewKey)
	if sealed == nil {
		return timeline.Skew{}
	}
	row, ok := unseal(skewKey, sealed)
	if !ok {
		return timeline.AnySkew
	}
	return timeline.ParseSkew(row)
}

// timeline returns the timeline at the last look.
func (t *timekeeper) timeline() *timeline.Timeline { return &t.moment.Load().Timeline }
