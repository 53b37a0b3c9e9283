package canary

import (
	"maps"
	"slices"
	"time"
)

// These bound the back-off of a version that was not accepted.
const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// maxProofs bounds the proofs that a cluster keeps beyond its present version.
const maxProofs = 256

// cluster holds what is known of one cluster.
type cluster struct {
	name    string
	version Version
	proven  map[Proof]struct{}
	builds  map[Build]bool // whether the whole version is proven, by build; computed on request
	trial   *trial         // nil if none is in progress
	removed bool           // no source has it any more

	// These hold while the version has every blamed shape.
	blamed []Shape // shapes on trial when a checker was lost
	losses []Loss  // one: suspect; two: blocked

	refused   int       // number of trials in a row that were not accepted
	refusedBy string    // the checker of the latest such trial
	retry     time.Time // other checkers must not try before
}

// change sets a new version, and reports whether its shapes differ.
func (k *cluster) change(v Version) bool {
	v.Shapes = slices.Clone(v.Shapes)
	slices.Sort(v.Shapes)
	same := slices.Equal(v.Shapes, k.version.Shapes)
	k.version = v
	if same {
		return false
	}
	clear(k.builds)
	k.refused, k.refusedBy, k.retry = 0, "", time.Time{}
	if len(k.proven) > maxProofs {
		maps.DeleteFunc(k.proven, func(p Proof, _ struct{}) bool { return !k.has(p.Shape) })
	}
	return true
}

// has reports whether the present version has all the shapes; true for none.
func (k *cluster) has(shapes ...Shape) bool {
	for _, s := range shapes {
		if _, ok := slices.BinarySearch(k.version.Shapes, s); !ok {
			return false
		}
	}
	return true
}

// prove records shapes that a build has survived.
func (k *cluster) prove(b Build, shapes map[Shape]bool) {
	for s := range shapes {
		k.proven[Proof{b, s}] = struct{}{}
	}
	clear(k.builds)
	k.refused, k.refusedBy, k.retry = 0, "", time.Time{}
}

// provenFor reports whether the present version is proven for a build.
func (k *cluster) provenFor(b Build) bool {
	whole, known := k.builds[b]
	if !known {
		whole = len(k.unproven(b)) == 0
		k.builds[b] = whole
	}
	return whole
}

// unproven returns the shapes that a build has not survived yet.
func (k *cluster) unproven(b Build) []Shape {
	var all []Shape
	for _, s := range k.version.Shapes {
		if _, ok := k.proven[Proof{b, s}]; !ok {
			all = append(all, s)
		}
	}
	return all
}

func (k *cluster) suspect() bool { return len(k.losses) > 0 }
func (k *cluster) blocked() bool { return len(k.losses) > 1 }

// blame records that a checker was lost during a trial.
func (k *cluster) blame(now time.Time, c *checker) {
	k.losses = append(k.losses, Loss{c.id, now})
	k.blamed = k.unproven(c.build)
}

// acquit ends suspicion and blocking.
func (k *cluster) acquit() {
	k.blamed, k.losses = nil, nil
	if k.trial != nil {
		k.trial.suspect = false
	}
}

// refuse records that a checker did not accept a cluster.
func (k *cluster) refuse(now time.Time, c *checker) {
	k.refused++
	k.refusedBy, k.retry = c.id, now.Add(k.backoff())
}

// backoff is zero after the first refusal: the checker may have refused because of
// another cluster that it tried.
func (k *cluster) backoff() time.Duration {
	if k.refused < 2 {
		return 0
	}
	return min(firstRetry<<min(k.refused-2, 10), lastRetry)
}

// again returns when the checker that did not accept a cluster may try it again, if
// no other has tried it by then.
func (k *cluster) again() time.Time { return k.retry.Add(max(k.backoff(), firstRetry)) }

// alone reports whether a trial of the cluster must be its checker's only one.
func (k *cluster) alone() bool { return k.suspect() || k.refused > 0 }

// waits reports whether a cluster has yet to begin a trial that must be its checker's
// only one.
func (k *cluster) waits() bool {
	return !k.removed && k.trial == nil && k.alone() && !k.blocked()
}
