package timeline

import (
	"sort"
	"time"
)

const (
	// maxStrays bounds how many runs Record adds. What comes then is dated by
	// steady time.
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

// shift dates all transitions up to a recorded time further ahead.
func shift(strays []stray, to uint64, by int64) (all []stray) {
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

// Clone returns a timeline that Record can change without changing t.
func (t *Timeline) Clone() Timeline {
	c := *t
	c.strays = append([]stray(nil), t.strays...)
	return c
}

// Record returns the recorded time of a transition behind the one of last, and the
// time to date it. That is its own whenever it can be corrected later.
func (t *Timeline) Record(own, last uint64, retention time.Duration) (recorded, dated uint64) {
	ahead := int64(own - t.steady)
	switch {
	case near(own, t.steady, Leap(retention)):
		return max(last+1, own), own
	case t.Doubted() && t.addStray(last, max(last+1, own, t.steady), ahead):
		return max(last+1, own, t.steady), own
	case t.Doubted() || ahead > 0:
		own = t.steady
	}
	return max(last+1, own), own
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
func (t *Timeline) Aged(recorded, own uint64) uint64 { return own - uint64(t.aheadAt(recorded)) }

// Future reports whether a time lies further ahead than any clock that is believed.
func (t *Timeline) Future(at uint64) bool { return at > add(t.steady, uint64(maxLeap)) }

// Shown returns when a transition happened, as far as is known: its own time, unless
// that turned out to be wrong.
func (t *Timeline) Shown(recorded, own uint64) uint64 {
	if t.Doubted() && recorded > t.doubt.after {
		return own
	}
	return t.Aged(recorded, own)
}

// Corrects reports whether any transition may be shown at another time than its own.
func (t *Timeline) Corrects() bool { return len(t.strays) > 0 }
