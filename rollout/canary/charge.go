package canary

import (
	"slices"
	"time"
)

// These bound the back-off of a blocked version.
const (
	firstBlockedRetry = 30 * time.Minute
	lastBlockedRetry  = 24 * time.Hour
)

// charge is the loss of checkers that tried shapes. Either one of these shapes ends checkers,
// or none does.
type charge struct {
	shapes  []*shape // by their ids
	losses  []Loss   // one: versions with any of the shapes are suspect; two: those with all are blocked
	retries int      // trials after two losses that ended with another
}

func (c *charge) key() string { return recordName(lostPrefix, versionKey(ids(c.shapes))) }

// blocks reports whether a version is blocked.
func (c *charge) blocks(v *version) bool { return len(c.losses) > 1 && v.has(c.shapes...) }

func (c *charge) lostBy(identity string) bool {
	return slices.ContainsFunc(c.losses, func(loss Loss) bool { return loss.Identity == identity })
}

// last returns the time of the last loss. A loss in the future, by a clock that was set back
// since, counts as one of now.
func (c *charge) last(now time.Time) time.Time {
	last := &c.losses[len(c.losses)-1]
	if last.Time.After(now) {
		last.Time = now
	}
	return last.Time
}

// blockedUntil returns the time of the next trial of a blocked charge.
func (c *charge) blockedUntil(now time.Time) time.Time {
	return c.last(now).Add(min(firstBlockedRetry<<min(c.retries, 10), lastBlockedRetry))
}

// add records another loss, of shapes in a repeated trial.
func (c *charge) add(loss Loss, tried []*shape) {
	blocked := len(c.losses) > 1
	if blocked && len(common(c.shapes, tried)) == len(c.shapes) {
		c.retries++
	}
	c.losses = append(c.losses[:1:1], loss)
}

// common returns the shapes in both lists.
func common(a, b []*shape) []*shape {
	return slices.DeleteFunc(slices.Clone(a), func(s *shape) bool { return !slices.Contains(b, s) })
}

// accuse records the loss of a checker that tried shapes. If they were suspect when the trial
// began, the fault is in the shapes of both trials. It returns the earlier charges that count
// the loss.
func (a *shapes) accuse(now time.Time, c *checker, tried []*shape, suspect bool) []*charge {
	loss := Loss{c.id, c.identity, now}
	var concerned []*charge
	for _, s := range tried {
		for _, charge := range s.charges {
			if !slices.Contains(concerned, charge) {
				concerned = append(concerned, charge)
			}
		}
	}
	if !suspect { // clear a loss at another checker during this trial: only one of the two counts
		a.clear(tried)
		concerned = nil
	}
	for _, charge := range concerned {
		charge.add(loss, tried)
		a.narrow(charge, common(charge.shapes, tried))
	}
	if len(concerned) == 0 {
		a.charge(&charge{shapes: tried, losses: []Loss{loss}})
	}
	return concerned
}

// accuseEnded makes shapes suspect whose trial at a lost checker ended shortly before, unless
// they already are.
func (a *shapes) accuseEnded(now time.Time, c *checker, tried []*shape) {
	tried = slices.DeleteFunc(slices.Clone(tried), func(s *shape) bool {
		return len(s.versions) == 0 || s.provenFor(c.build)
	})
	if len(tried) > 0 && !slices.ContainsFunc(tried, func(s *shape) bool { return len(s.charges) > 0 }) {
		a.accuse(now, c, tried, false)
	}
}

// charge adds a charge. If there is one with the same shapes, the one with more losses counts.
func (a *shapes) charge(c *charge) {
	for _, other := range c.shapes[0].charges {
		if slices.Equal(other.shapes, c.shapes) {
			if len(other.losses) >= len(c.losses) {
				return
			}
			a.detach(other)
			break
		}
	}
	a.charges = append(a.charges, c)
	for _, s := range c.shapes {
		s.charges = append(s.charges, c)
	}
	a.unsaved[c.key()] = c
}

// narrow limits the shapes that a charge blames.
func (a *shapes) narrow(c *charge, remaining []*shape) {
	previous := c.shapes
	a.detach(c)
	if len(remaining) > 0 {
		c.shapes = remaining
		a.charge(c)
	}
	for _, s := range previous {
		a.tidy(s)
	}
}

// drop forgets a charge.
func (a *shapes) drop(c *charge) { a.narrow(c, nil) }

func (a *shapes) detach(c *charge) {
	a.unsaved[c.key()] = nil
	matches := func(other *charge) bool { return other == c }
	a.charges = slices.DeleteFunc(a.charges, matches)
	for _, s := range c.shapes {
		s.charges = slices.DeleteFunc(s.charges, matches)
	}
}

// clear ends suspicion and blocking of shapes.
func (a *shapes) clear(cleared []*shape) {
	for _, s := range cleared {
		for _, c := range slices.Clone(s.charges) {
			a.narrow(c, slices.DeleteFunc(slices.Clone(c.shapes), func(s *shape) bool { return slices.Contains(cleared, s) }))
		}
	}
}

// dropUnused forgets the charges against shapes that no version has.
func (a *shapes) dropUnused() {
	for _, c := range slices.Clone(a.charges) {
		if !slices.ContainsFunc(c.shapes, func(s *shape) bool { return len(s.versions) > 0 }) {
			a.drop(c)
		}
	}
}
