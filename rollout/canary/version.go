package canary

import (
	"encoding/binary"
	"hdsd/envoy/specifier"
	"slices"
	"time"
)

// These bound the back-off of a version that was not accepted.
const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// patience is the number of reports for which a version waits for an established canary, and
// for a version with only a part of its shapes, before it takes a newcomer.
const patience = 3

// version is the state of all clusters with the same shapes.
type version struct {
	shapes   []*shape       // by their ids
	clusters int            // number of clusters with it
	builds   map[Build]bool // whether the whole version is proven, by build; computed on request

	askedAt time.Time           // when a checker that was not fit first asked for a trial; zero: none did
	wanted  map[string]struct{} // fit checkers that asked for it and had to wait
	parts   time.Time           // end of the wait for a version with just one of its shapes; zero: none

	refused   int       // number of consecutive trials that were not accepted
	refusedBy string    // the checker of the latest such trial
	retry     time.Time // other checkers must not try before
}

// versionKey identifies a set of shapes, which are sorted.
func versionKey(ids []specifier.Shape) string {
	key := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		key = binary.BigEndian.AppendUint64(key, uint64(id))
	}
	return string(key)
}

// ids returns the ids of shapes.
func ids(shapes []*shape) []specifier.Shape {
	list := make([]specifier.Shape, len(shapes))
	for i, s := range shapes {
		list[i] = s.id
	}
	return list
}

// has reports whether the version has all the shapes; true for none.
func (v *version) has(shapes ...*shape) bool {
	return !slices.ContainsFunc(shapes, func(s *shape) bool { return !slices.Contains(s.versions, v) })
}

// settled forgets refusals of the version, since a checker has survived it.
func (v *version) settled() { v.refused, v.refusedBy, v.retry = 0, "", time.Time{} }

// provenFor reports whether the version is proven for a build.
func (v *version) provenFor(b Build) bool {
	whole, known := v.builds[b]
	if !known {
		whole = !slices.ContainsFunc(v.shapes, func(s *shape) bool { return !s.provenFor(b) })
		v.builds[b] = whole
	}
	return whole
}

// unproven returns the shapes that a build has not survived yet.
func (v *version) unproven(b Build) []*shape {
	var list []*shape
	for _, s := range v.shapes {
		if !s.provenFor(b) {
			list = append(list, s)
		}
	}
	return list
}

// busy returns a trial of one of the shapes that a build has not survived yet; nil if there is
// none.
func (v *version) busy(b Build) *trial {
	for _, s := range v.shapes {
		if s.trial != nil && !s.provenFor(b) {
			return s.trial
		}
	}
	return nil
}

// hasSmaller reports whether an untried version has just one of the several shapes that a build
// has not survived yet. It is tried first: so a loss tells more.
func (v *version) hasSmaller(b Build) bool {
	list := v.unproven(b)
	return len(list) > 1 && slices.ContainsFunc(list, func(s *shape) bool {
		return s.alone != nil && s.alone.refused == 0 && !s.alone.blocked()
	})
}

// charges returns the charges against shapes of the version.
func (v *version) charges() []*charge {
	var list []*charge
	for _, s := range v.shapes {
		for _, c := range s.charges {
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

func (v *version) suspect() bool {
	return slices.ContainsFunc(v.shapes, func(s *shape) bool { return len(s.charges) > 0 })
}

func (v *version) blocked() bool {
	return slices.ContainsFunc(v.charges(), func(c *charge) bool { return c.blocks(v) })
}

// lostBy reports whether a checker of this identity was lost to the version.
func (v *version) lostBy(identity string) bool {
	return slices.ContainsFunc(v.charges(), func(c *charge) bool { return c.lostBy(identity) })
}

// blockedUntil returns the time of the next trial of a blocked version.
func (v *version) blockedUntil(now time.Time) time.Time {
	var latest time.Time
	for _, c := range v.charges() {
		if end := c.blockedUntil(now); c.blocks(v) && end.After(latest) {
			latest = end
		}
	}
	return latest
}

// want notes that a fit checker has to wait for a trial.
func (v *version) want(c *checker) {
	if v.wanted == nil {
		v.wanted = map[string]struct{}{}
	}
	v.wanted[c.id] = struct{}{}
}

// begun forgets the checkers that waited for a trial.
func (v *version) begun() { v.askedAt, v.wanted, v.parts = time.Time{}, nil, time.Time{} }

// refuse records that a checker did not accept the version.
func (v *version) refuse(now time.Time, c *checker) {
	v.refused++
	v.refusedBy, v.retry = c.id, now.Add(v.backoff())
}

// backoff returns zero after the first refusal: the checker may have refused because of another
// cluster that it tried.
func (v *version) backoff() time.Duration {
	if v.refused < 2 {
		return 0
	}
	return min(firstRetry<<min(v.refused-2, 10), lastRetry)
}

// retryAt returns the time at which the checker that did not accept a version may try it again,
// if no other has tried it by then.
func (v *version) retryAt() time.Time { return v.retry.Add(max(v.backoff(), firstRetry)) }

// alone reports whether a trial of the version must be its checker's only one.
func (v *version) alone() bool { return v.suspect() || v.refused > 0 }

// waitsAlone reports whether a version still has to begin a trial that must be its checker's
// only one.
func (v *version) waitsAlone(b Build) bool {
	return v.clusters > 0 && v.busy(b) == nil && v.alone()
}
