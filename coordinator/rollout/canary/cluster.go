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

// These bound the back-off of a blocked version.
const (
	firstBlockedRetry = 30 * time.Minute
	lastBlockedRetry  = 24 * time.Hour
)

// patience is how many reports a cluster waits for an established canary before it takes
// a newcomer.
const patience = 3

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
	blamed  []Shape // shapes on trial when a checker was lost
	losses  []Loss  // one: suspect; two: blocked
	retries int     // trials that a blocked version had, and did not survive

	asked  time.Time           // when a checker that was not fit first asked for a trial; zero: none did
	wanted map[string]struct{} // fit checkers that asked for it and had to wait

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
	k.asked, k.wanted = time.Time{}, nil
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

// blame records that a checker was lost during a trial. It reports whether the
// version was not blocked before.
func (k *cluster) blame(now time.Time, c *checker) bool {
	k.asked, k.wanted = time.Time{}, nil
	if k.blocked() { // this was a retry
		k.losses[1] = Loss{c.id, c.identity, now}
		k.retries++
		return false
	}
	k.losses = append(k.losses, Loss{c.id, c.identity, now})
	k.blamed = k.unproven(c.build)
	return true
}

// lostBy reports whether a checker of this identity was lost to the version.
func (k *cluster) lostBy(identity string) bool {
	return slices.ContainsFunc(k.losses, func(loss Loss) bool { return loss.Identity == identity })
}

// blockedUntil returns when a blocked version is tried again. A loss in the future,
// by a clock that was set back since, counts as one of now.
func (k *cluster) blockedUntil(now time.Time) time.Time {
	last := &k.losses[len(k.losses)-1]
	if last.Time.After(now) {
		last.Time = now
	}
	return last.Time.Add(min(firstBlockedRetry<<min(k.retries, 10), lastBlockedRetry))
}

// want notes that a fit checker has to wait for a trial.
func (k *cluster) want(c *checker) {
	if k.wanted == nil {
		k.wanted = map[string]struct{}{}
	}
	k.wanted[c.id] = struct{}{}
}

// acquit ends suspicion and blocking.
func (k *cluster) acquit() {
	k.blamed, k.losses, k.retries = nil, nil, 0
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
	return !k.removed && k.trial == nil && k.alone()
}
