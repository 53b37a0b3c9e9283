package timeline

import (
	"math"
	"slices"
	"time"
)

const (
	// minLeap and maxLeap bound how far the wall clock may leap and still be
	// believed.
	minLeap = 5 * time.Minute
	maxLeap = 7 * 24 * time.Hour

	// unlimited stands for an unlimited retention, which may be limited later.
	unlimited = 90 * 24 * time.Hour
)

// Timeline is one account of time. Its zero value believes a clock at 1970.
type Timeline struct {
	steady uint64 // at the last look
	wall   uint64 // the wall clock's time at the last look
	doubt  doubt
	pruned uint64  // recorded time of the newest transition that was deleted
	strays []stray // by recorded time
}

// doubt is the doubt of the wall clock. It is zero while the clock is believed.
type doubt struct {
	began uint64 // steady time when it began; never 0
	wall  uint64 // the wall clock's time then
	after uint64 // recorded time of the last transition before it
}

// New returns a timeline that begins with a right wall clock, behind the deleted transitions.
func New(wall, pruned uint64) Timeline {
	return Timeline{steady: wall, wall: wall, pruned: pruned}
}

// Wall returns the wall clock's time at the last look.
func (t *Timeline) Wall() uint64 { return t.wall }

// Steady returns steady time when passed has elapsed since the last look.
func (t *Timeline) Steady(passed time.Duration) uint64 { return add(t.steady, uint64(max(passed, 0))) }

// Doubted reports whether the wall clock is doubted.
func (t *Timeline) Doubted() bool { return t.doubt.began != 0 }

// DoubtedSince returns the steady time at which the doubt began.
func (t *Timeline) DoubtedSince() uint64 { return t.doubt.began }

// Outlasted reports whether nothing from before the doubt is kept at this steady time, so that
// believing the clock loses nothing.
func (t *Timeline) Outlasted(steady uint64, retention time.Duration) bool {
	return t.Doubted() && steady >= add(t.doubt.began, uint64(limited(retention)))
}

// limited returns the retention, or a limit if there is none.
func limited(retention time.Duration) time.Duration {
	if retention <= 0 {
		return unlimited
	}
	return retention
}

// Leap returns how far the wall clock may leap: a tenth of the retention, within
// bounds.
func Leap(retention time.Duration) time.Duration {
	return min(max(limited(retention)/10, minLeap), maxLeap)
}

// ahead returns how far the wall clock is ahead of steady time.
func (t *Timeline) ahead() int64 { return int64(t.wall - t.steady) }

// Look returns the timeline at a reading of the wall clock, when passed has elapsed since the
// last look by a monotonic clock. last is the recorded time of the newest transition, or 0 if
// there is none, and so nothing to lose.
func (t Timeline) Look(wall uint64, passed, retention time.Duration, last uint64) Timeline {
	t.steady, t.wall = t.Steady(passed), wall
	switch {
	case last == 0 || near(t.wall, t.steady, Leap(retention)):
		t.steady, t.doubt = t.wall, doubt{}
	case !t.Doubted():
		t.doubt = doubt{began: max(t.steady, 1), wall: wall, after: last}
	case t.Outlasted(t.steady, retention):
		return t.Confirm(false)
	}
	return t
}

// Elapsed returns the time without a process, as far as known: the wall clock's, bounded by a
// leap.
func (t *Timeline) Elapsed(wall uint64, retention time.Duration) time.Duration {
	if wall < t.wall || !near(wall, t.wall, Leap(retention)) {
		return 0
	}
	return time.Duration(wall - t.wall)
}

// Confirm returns the timeline that follows if the doubted wall clock is right:
//
//   - Unless it jumped since, it gave the right time to what was recorded since the
//     doubt began.
//   - If it went back, what was recorded before the doubt is dated ahead by as much.
//   - If somebody says so, it was right whenever it can have been: steady time lags
//     behind by the time that has passed unseen, which only grows.
func (t Timeline) Confirm(byOperator bool) Timeline {
	if !t.Doubted() {
		return t
	}
	ahead := t.ahead()
	index := slices.IndexFunc(t.strays, func(s stray) bool { return s.from > t.doubt.after })
	before, after := t.strays, []stray(nil)
	if index >= 0 {
		before, after = t.strays[:index:index], slices.Clone(t.strays[index:])
	}
	if ahead < 0 {
		before = shift(before, t.doubt.after, -ahead)
	}
	for i, lag := len(after)-1, ahead; i >= 0; i-- {
		if byOperator && after[i].ahead >= 0 {
			lag = min(lag, after[i].ahead)
		}
		after[i].ahead -= lag
	}
	after = slices.DeleteFunc(after, func(s stray) bool { return near(uint64(s.ahead), 0, minLeap) })
	t.strays, t.steady, t.doubt = slices.Concat(before, after), t.wall, doubt{}
	return t
}

// Begun returns the start of known history, given its creation and the edge of retention. While
// the clock is doubted, that is no later than the doubt.
func (t *Timeline) Begun(created, edge uint64) uint64 {
	if t.Doubted() {
		return min(max(created, edge), t.doubt.wall)
	}
	if created -= uint64(t.aheadAt(0)); created > t.steady {
		return edge // nothing from then is kept
	}
	return max(created, edge)
}

// Pruned returns the recorded time of the newest deleted transition.
func (t *Timeline) Pruned() uint64 { return t.pruned }

// Prune returns the timeline after transitions up to a recorded time are deleted.
func (t Timeline) Prune(upTo uint64) Timeline {
	t.pruned = upTo
	t.strays = slices.DeleteFunc(slices.Clone(t.strays), func(s stray) bool { return s.to <= upTo })
	return t
}

// near reports whether two times, or two differences, are at most limit apart.
func near(a, b uint64, limit time.Duration) bool {
	d := int64(a - b)
	return -int64(limit) <= d && d <= int64(limit)
}

// add adds, saturating at the largest number.
func add(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}
