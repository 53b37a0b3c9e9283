package timeline

import (
	"sort"
	"time"
)

const (
	// maxStrays bounds the runs that Record adds. Later transitions are dated by steady time.
	maxStrays = 100

	// likeness is how far two transitions of one run may differ.
	likeness = time.Minute
)

// stray is a run of transitions that the wall clock dated ahead of steady time, or
// behind it if ahead is negative.
type stray struct {
	from, to uint64 // recorded times
	ahead    int64
}

// shift dates all transitions up to the recorded time end further ahead by delta.
func shift(strays []stray, end uint64, delta int64) (shifted []stray) {
	start := uint64(0)
	for _, s := range strays {
		if s.from > start {
			shifted = append(shifted, stray{start, s.from - 1, delta})
		}
		shifted = append(shifted, stray{s.from, s.to, s.ahead + delta})
		start = s.to + 1
	}
	if start <= end {
		shifted = append(shifted, stray{start, end, delta})
	}
	return shifted
}

// Clone returns a timeline that Record can change without changing t.
func (t *Timeline) Clone() Timeline {
	c := *t
	c.strays = append([]stray(nil), t.strays...)
	return c
}

// Record returns the recorded time of a transition behind last, and the date to give it: its own
// time whenever that can be corrected later.
func (t *Timeline) Record(ownTime, last uint64, retention time.Duration) (recorded, dated uint64) {
	ahead := int64(ownTime - t.steady)
	switch {
	case near(ownTime, t.steady, Leap(retention)):
		return max(last+1, ownTime), ownTime
	case t.Doubted() && t.addStray(last, max(last+1, ownTime, t.steady), ahead):
		return max(last+1, ownTime, t.steady), ownTime
	case t.Doubted() || ahead > 0:
		ownTime = t.steady
	}
	return max(last+1, ownTime), ownTime
}

// addStray notes a transition behind the one of last, or returns false if there is
// no room.
func (t *Timeline) addStray(last, recorded uint64, ahead int64) bool {
	if n := len(t.strays); n > 0 && t.strays[n-1].to == last && last > t.doubt.after && near(uint64(t.strays[n-1].ahead), uint64(ahead), likeness) {
		t.strays[n-1].to = recorded
		return true
	}
	if len(t.strays) >= maxStrays {
		return false
	}
	t.strays = append(t.strays, stray{recorded, recorded, ahead})
	return true
}

// aheadAt returns how far a transition is dated ahead of steady time.
func (t *Timeline) aheadAt(recorded uint64) int64 {
	i := sort.Search(len(t.strays), func(i int) bool { return t.strays[i].to >= recorded })
	if i == len(t.strays) || t.strays[i].from > recorded {
		return 0
	}
	return t.strays[i].ahead
}

// Aged returns when a transition was recorded, by steady time.
func (t *Timeline) Aged(recorded, ownTime uint64) uint64 {
	return ownTime - uint64(t.aheadAt(recorded))
}

// Future reports whether a time lies further ahead than any clock that is believed.
func (t *Timeline) Future(recorded uint64) bool { return recorded > add(t.steady, uint64(maxLeap)) }

// Shown returns when a transition happened, as far as is known: its own time, unless
// that turned out to be wrong.
func (t *Timeline) Shown(recorded, ownTime uint64) uint64 {
	if t.Doubted() && recorded > t.doubt.after {
		return ownTime
	}
	return t.Aged(recorded, ownTime)
}

// Corrects reports whether any transition may be shown at a time other than its own.
func (t *Timeline) Corrects() bool { return len(t.strays) > 0 }
