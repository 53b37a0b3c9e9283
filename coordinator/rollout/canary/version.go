package canary

import (
	"encoding/binary"
	"slices"
	"time"
)

// These bound the back-off of a version that was not accepted.
const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// patience is how many reports a version waits for an established canary before it takes
// a newcomer, and for a version that has only a part of its shapes.
const patience = 3

// version is what is known of the clusters that have the same shapes.
type version struct {
	shapes   []*shape       // by their ids
	clusters int            // that have it
	builds   map[Build]bool // whether the whole version is proven, by build; computed on request

	asked  time.Time           // when a checker that was not fit first asked for a trial; zero: none did
	wanted map[string]struct{} // fit checkers that asked for it and had to wait
	parts  time.Time           // until when it waits for a version that has one of its shapes only; zero: it does not

	refused   int       // number of trials in a row that were not accepted
	refusedBy string    // the checker of the latest such trial
	retry     time.Time // other checkers must not try before
}

// versionKey identifies a set of shapes, which are sorted.
func versionKey(ids []Shape) string {
	key := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		key = binary.BigEndian.AppendUint64(key, uint64(id))
	}
	return string(key)
}

// ids returns the ids of shapes.
func ids(all []*shape) []Shape {
	out := make([]Shape, len(all))
	for i, s := range all {
		out[i] = s.id
	}
	return out
}

// has reports whether the version has all the shapes; true for none.
func (v *version) has(all ...*shape) bool {
	return !slices.ContainsFunc(all, func(s *shape) bool { return !slices.Contains(s.versions, v) })
}

// settled forgets who refused the version, since a checker has survived it.
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
	var all []*shape
	for _, s := range v.shapes {
		if !s.provenFor(b) {
			all = append(all, s)
		}
	}
	return all
}

// busy returns a trial of one of the shapes that a build has not survived yet; nil if
// there is none.
func (v *version) busy(b Build) *trial {
	for _, s := range v.shapes {
		if s.trial != nil && !s.provenFor(b) {
			return s.trial
		}
	}
	return nil
}

// hasSmaller reports whether a version waits to be tried that has just one of the shapes
// that a build has not survived yet, of several. It is tried first: so a loss tells more.
func (v *version) hasSmaller(b Build) bool {
	all := v.unproven(b)
	return len(all) > 1 && slices.ContainsFunc(all, func(s *shape) bool {
		return s.alone != nil && s.alone.refused == 0 && !s.alone.blocked()
	})
}

// charges returns the charges that concern the version.
func (v *version) charges() []*charge {
	var all []*charge
	for _, s := range v.shapes {
		for _, c := range s.charges {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
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

// blockedUntil returns when a blocked version is tried again.
func (v *version) blockedUntil(now time.Time) time.Time {
	var until time.Time
	for _, c := range v.charges() {
		if at := c.blockedUntil(now); c.blocks(v) && at.After(until) {
			until = at
		}
	}
	return until
}

// want notes that a fit checker has to wait for a trial.
func (v *version) want(c *checker) {
	if v.wanted == nil {
		v.wanted = map[string]struct{}{}
	}
	v.wanted[c.id] = struct{}{}
}

// begun forgets who waited for a trial.
func (v *version) begun() { v.asked, v.wanted, v.parts = time.Time{}, nil, time.Time{} }

// refuse records that a checker did not accept the version.
func (v *version) refuse(now time.Time, c *checker) {
	v.refused++
	v.refusedBy, v.retry = c.id, now.Add(v.backoff())
}

// backoff is zero after the first refusal: the checker may have refused because of
// another cluster that it tried.
func (v *version) backoff() time.Duration {
	if v.refused < 2 {
		return 0
	}
	return min(firstRetry<<min(v.refused-2, 10), lastRetry)
}

// again returns when the checker that did not accept a version may try it again, if
// no other has tried it by then.
func (v *version) again() time.Time { return v.retry.Add(max(v.backoff(), firstRetry)) }

// alone reports whether a trial of the version must be its checker's only one.
func (v *version) alone() bool { return v.suspect() || v.refused > 0 }

// waits reports whether a version has yet to begin a trial that must be its checker's
// only one.
func (v *version) waits(b Build) bool {
	return v.clusters > 0 && v.busy(b) == nil && v.alone()
}
