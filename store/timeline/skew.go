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
	most        uint64 // by how much at most; 0 for nowhere
}

// AnySkew stands for a skew that is not known: searches take long and find all.
var AnySkew = Skew{until: math.MaxUint64, most: math.MaxUint64}

// Any reports whether any recorded time runs ahead.
func (s *Skew) Any() bool { return s.most > 0 }

// Note takes a transition into account.
func (s *Skew) Note(recorded, dated uint64) {
	if recorded-dated <= tolerance {
		return
	}
	if s.most == 0 {
		s.from = recorded
	}
	s.until = recorded
	s.most = max(s.most, recorded-dated)
}

// Prune returns the skew after the transitions up to a recorded time are deleted.
func (s Skew) Prune(upTo uint64) Skew {
	if upTo >= s.until {
		return Skew{}
	}
	return s
}

// Range is a range of recorded times, without its end.
type Range struct{ From, To uint64 }

// Search returns the ranges, in order and apart, of all transitions that are shown
// at a time from start on and before end. They hold others too.
func (t *Timeline) Search(s Skew, start, end uint64) []Range {
	most := max(tolerance, s.most)
	all := append(make([]Range, 0, 2), Range{start, add(end, tolerance)})
	if s.most > 0 {
		all = append(all, Range{max(start, s.from), min(add(s.until, 1), add(end, s.most))})
	}
	for _, stray := range t.strays {
		if stray.ahead < 0 && stray.from < start && add(stray.to, uint64(-stray.ahead)) >= start {
			all = append(all, Range{stray.from, min(stray.to+1, start)})
		}
		if by := uint64(stray.ahead); stray.ahead > 0 {
			all = append(all, Range{max(stray.from, add(start, by)), min(stray.to+1, add(add(end, by), most))})
		}
	}
	if len(all) == 1 {
		return all
	}
	return merge(all)
}

// merge sorts ranges and joins those that overlap.
func merge(all []Range) []Range {
	all = slices.DeleteFunc(all, func(r Range) bool { return r.From >= r.To })
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && r.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, r.To)
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}
