// Package quota computes each checker's fair share of the checks.
//
// A Table owns the cohorts, which are the checkers of a zone that are alike in
// weight, ceiling and classes, and the quotas of each cohort. Callers say who is
// in the fleet (Join, Leave), then what endpoints ask for (Level).
//
// Level fills cohorts like connected vessels. The demand for each class pours
// into the cohorts that may serve it until all stand at one level, within what
// placement allows, over what other demands have poured. It goes round the demands
// until nothing changes. A cohort that gets more than its ceilings allow becomes
// narrower, so that the others take the rest.
//
// All is computed in whole numbers, so quotas are the same on every machine. The
// package is not safe for concurrent use, starts no goroutine, and imports health
// and the standard library only.
package quota
