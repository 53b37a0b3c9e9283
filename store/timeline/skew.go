package timeline

import (
	"cmp"
	"math"
	"slices"
)

// tolerance is how far recorded time may run ahead of a transition's own time
// without being noted: transitions of one moment get one nanosecond each.
const tolerance = 10_000_000

// Skew is the range of recorded times that run ahead of the transitions' own time,
// because the wall clock jumped back. Queries by time search it too.
type Skew struct {
	from, until uint64 // recorded times
	limit       uint64 // largest distance; 0 for none
}

// AnySkew stands for an unknown skew: searches take long and find all.
var AnySkew = Skew{until: math.MaxUint64, limit: math.MaxUint64}

// Any reports whether any recorded time runs ahead.
func (s *Skew) Any() bool { return s.limit > 0 }

// Note includes a transition.
func (s *Skew) Note(recorded, dated uint64) {
	if recorded-dated <= tolerance {
		return
	}
	if s.limit == 0 {
		s.from = recorded
	}
	s.until = recorded
	s.limit = max(s.limit, recorded-dated)
}

// Prune returns the skew after transitions up to a recorded time are deleted.
func (s Skew) Prune(upTo uint64) Skew {
	if upTo >= s.until {
		return Skew{}
	}
	return s
}

// Range is a range of recorded times, without its end.
type Range struct{ From, To uint64 }

// Search returns recorded ranges, sorted and disjoint, with all transitions shown in [start,
// end), and others.
func (t *Timeline) Search(s Skew, start, end uint64) []Range {
	reach := max(tolerance, s.limit)
	ranges := append(make([]Range, 0, 2), Range{start, add(end, tolerance)})
	if s.limit > 0 {
		ranges = append(ranges, Range{max(start, s.from), min(add(s.until, 1), add(end, s.limit))})
	}
	for _, stray := range t.strays {
		if stray.ahead < 0 && stray.from < start && add(stray.to, uint64(-stray.ahead)) >= start {
			ranges = append(ranges, Range{stray.from, min(stray.to+1, start)})
		}
		if ahead := uint64(stray.ahead); stray.ahead > 0 {
			ranges = append(ranges, Range{max(stray.from, add(start, ahead)), min(stray.to+1, add(add(end, ahead), reach))})
		}
	}
	if len(ranges) == 1 {
		return ranges
	}
	return merge(ranges)
}

// merge sorts ranges and joins those that overlap.
func merge(ranges []Range) []Range {
	ranges = slices.DeleteFunc(ranges, func(r Range) bool { return r.From >= r.To })
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	merged := ranges[:0]
	for _, r := range ranges {
		if n := len(merged); n > 0 && r.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, r.To)
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}
