package store

import (
	"slices"
	"sort"
	"time"

	"hdsd/health"
)

const (
	// leastLeap and mostLeap bound how far the wall clock may leap and still be
	// believed.
	leastLeap = 5 * time.Minute
	mostLeap  = 7 * 24 * time.Hour

	// unlimited is what keeping for ever counts as here: the retention may be
	// set later.
	unlimited = 90 * 24 * time.Hour

	// mostStrays bounds how many runs of transitions are remembered that the
	// wall clock has dated wrong. Later ones are dated by steady time.
	mostStrays = 100

	// likeness is how much alike two strays of one run are.
	likeness = uint64(time.Minute)
)

// timeline is the store's own account of time. Steady time is the wall clock's
// while that is believed, and else what has passed since. The wall clock is
// believed while it is no further from steady time than a leap: a clock that is
// wrong makes no more of the history old than that.
type timeline struct {
	steady uint64 // at the last look
	wall   uint64 // what the wall clock said then
	doubt  doubt
	pruned uint64  // recorded time of the newest transition that was deleted
	strays []stray // by recorded time
}

// doubt of the wall clock; zero where there is none.
type doubt struct {
	since uint64 // steady time when it began; never 0
	wall  uint64 // what the wall clock said then
	after uint64 // recorded time of the last transition before it
}

// stray is a run of transitions that the wall clock has dated ahead of steady
// time, or behind where it is negative.
type stray struct {
	from, to uint64 // recorded times
	ahead    int64
}

// patience is how long a doubted clock runs on before it is believed. Nothing
// from before the doubt is left then, so that nothing can be lost by it.
func patience(retention time.Duration) time.Duration {
	if retention <= 0 {
		return unlimited
	}
	return retention
}

// leapOf is how far the wall clock may leap: a tenth of what is kept, within
// bounds.
func leapOf(retention time.Duration) time.Duration {
	return min(max(patience(retention)/10, leastLeap), mostLeap)
}

func (t *timeline) doubted() bool { return t.doubt.since != 0 }

// ahead is how far the wall clock is ahead of steady time.
func (t *timeline) ahead() int64 { return int64(t.wall - t.steady) }

// look gives the timeline at a reading of the wall clock, when so much has
// passed since the last one by a clock that nobody sets. last is the recorded
// time of the newest transition, 0 where there is none and so nothing to lose.
func (t timeline) look(wall uint64, passed, retention time.Duration, last uint64) timeline {
	t.steady, t.wall = add(t.steady, uint64(max(passed, 0))), wall
	switch {
	case last == 0 || near(t.wall, t.steady, leapOf(retention)):
		t.steady, t.doubt = t.wall, doubt{}
	case !t.doubted():
		t.doubt = doubt{since: max(t.steady, 1), wall: wall, after: last}
	case t.steady >= add(t.doubt.since, uint64(patience(retention))):
		return t.confirm(false)
	}
	return t
}

// passedOver is how much has passed while nobody looked, as far as that can be
// told: what the wall clock says, if it is no more than a leap.
func (t *timeline) passedOver(wall uint64, retention time.Duration) time.Duration {
	if wall < t.wall || !near(wall, t.wall, leapOf(retention)) {
		return 0
	}
	return time.Duration(wall - t.wall)
}

// confirm gives the timeline where the wall clock is right: it has dated right
// what was recorded since the doubt began, if it did not jump since; and where it
// went back, what was recorded before was dated ahead by as much. Where somebody
// said so, it was right whenever it can have been: steady time lags behind by what
// has passed unseen, which only becomes more.
func (t timeline) confirm(said bool) timeline {
	if !t.doubted() {
		return t
	}
	ahead := t.ahead()
	at := slices.IndexFunc(t.strays, func(s stray) bool { return s.from > t.doubt.after })
	before, since := t.strays, []stray(nil)
	if at >= 0 {
		before, since = t.strays[:at:at], slices.Clone(t.strays[at:])
	}
	if ahead < 0 {
		before = shifted(before, t.doubt.after, -ahead)
	}
	for i, lag := len(since)-1, ahead; i >= 0; i-- {
		if said && since[i].ahead >= 0 {
			lag = min(lag, since[i].ahead)
		}
		since[i].ahead -= lag
	}
	since = slices.DeleteFunc(since, func(s stray) bool { return near(uint64(s.ahead), 0, leastLeap) })
	t.strays, t.steady, t.doubt = slices.Concat(before, since), t.wall, doubt{}
	return t
}

// shifted dates all transitions up to a recorded time further ahead.
func shifted(strays []stray, to uint64, by int64) (all []stray) {
	from := uint64(0)
	for _, s := range strays {
		if s.from > from {
			all = append(all, stray{from, s.from - 1, by})
		}
		all = append(all, stray{s.from, s.to, s.ahead + by})
		from = s.to + 1
	}
	if from <= to {
		all = append(all, stray{from, to, by})
	}
	return all
}

// place gives the recorded time of a transition behind the one of last, and the
// time to date it, which is its own wherever that can be put right later.
func (t *timeline) place(own, last uint64, retention time.Duration) (recorded, dated uint64) {
	ahead := int64(own - t.steady)
	switch {
	case near(own, t.steady, leapOf(retention)):
		return max(last+1, own), own
	case t.doubted() && t.stray(last, max(last+1, own, t.steady), ahead):
		return max(last+1, own, t.steady), own
	case t.doubted() || ahead > 0:
		own = t.steady
	}
	return max(last+1, own), own
}

// stray notes a transition behind the one of last; false where there is no room.
func (t *timeline) stray(last, recorded uint64, ahead int64) bool {
	if n := len(t.strays); n > 0 && t.strays[n-1].to == last && last > t.doubt.after && near(uint64(t.strays[n-1].ahead), uint64(ahead), time.Duration(likeness)) {
		t.strays[n-1].to = recorded
		return true
	}
	if len(t.strays) >= mostStrays {
		return false
	}
	t.strays = append(t.strays, stray{recorded, recorded, ahead})
	return true
}

// aheadAt is how far a transition is dated ahead of steady time.
func (t *timeline) aheadAt(recorded uint64) int64 {
	i := sort.Search(len(t.strays), func(i int) bool { return t.strays[i].to >= recorded })
	if i == len(t.strays) || t.strays[i].from > recorded {
		return 0
	}
	return t.strays[i].ahead
}

// aged is when a transition was recorded, by steady time.
func (t *timeline) aged(recorded, own uint64) uint64 { return own - uint64(t.aheadAt(recorded)) }

// shown is when a transition happened, as far as is known: what its clock said,
// unless that turned out to be wrong.
func (t *timeline) shown(recorded, own uint64) uint64 {
	if t.doubted() && recorded > t.doubt.after {
		return own
	}
	return t.aged(recorded, own)
}

// late gives where transitions stand that were recorded before a time, and may be
// shown at it or later.
func (t *timeline) late(start uint64) (all []interval) {
	for _, s := range t.strays {
		if s.ahead < 0 && s.from < start && add(s.to, uint64(-s.ahead)) >= start {
			all = append(all, interval{s.from, min(s.to+1, start)})
		}
	}
	return all
}

// redate puts right when a transition happened.
func (t *timeline) redate(recorded uint64, of *health.Transition) {
	own := nanos(of.Time)
	if at := t.shown(recorded, own); at != own {
		move(of, at)
	}
}

// move gives a transition another time, and what led to it with it.
func move(t *health.Transition, to uint64) {
	by := timeOf(to).Sub(t.Time)
	t.Time, t.Observations = timeOf(to), slices.Clone(t.Observations)
	for i := range t.Observations {
		if o := &t.Observations[i]; !o.Time.IsZero() {
			o.Time = o.Time.Add(by)
		}
	}
}

// begun tells since when a history is known that was created at one time and is
// kept from another on. While the clock is doubted, it is known since then at least.
func (t *timeline) begun(created, edge uint64) uint64 {
	if t.doubted() {
		return min(max(created, edge), t.doubt.wall)
	}
	if created -= uint64(t.aheadAt(0)); created > t.steady {
		return edge // nothing from then is kept
	}
	return max(created, edge)
}

// drop forgets the strays that were deleted.
func (t *timeline) drop() {
	t.strays = slices.DeleteFunc(slices.Clone(t.strays), func(s stray) bool { return s.to <= t.pruned })
}

// near tells whether two times, or two differences, are no further apart than
// that.
func near(a, b uint64, most time.Duration) bool {
	d := int64(a - b)
	return -int64(most) <= d && d <= int64(most)
}
