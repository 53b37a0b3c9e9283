// Package quota computes each checker's fair share of the checks.
//
// A Table owns cohorts and the quotas of each cohort. A cohort holds the checkers of
// a zone that have the same weight, ceiling and classes. Callers add and remove
// checkers (Join, Leave), then pass the demands of endpoints (Level).
//
// Level fills cohorts like connected vessels. The demand for each class pours into
// the cohorts that may serve it, on top of other demands, until all stand at one
// level. Placement bounds how much each zone takes. Level repeats this for all
// demands until nothing changes. A cohort that gets more than its ceilings allow
// becomes narrower, so that the others take the rest.
//
// Level computes in whole numbers, so quotas are the same on every machine. The
// package is not safe for concurrent use, starts no goroutine, and imports health
// and the standard library only.
package quota
