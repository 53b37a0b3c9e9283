// Package aggregate turns votes and time into verdicts: it decides whether an
// endpoint is up or down from what its checkers say, and says why.
//
// It owns, for every endpoint, the verdict in force and the latest vote of
// each checker that is assigned to it. The way of a vote, one file each:
//
//	report -> phase.go   is this pair warming up, or has it settled?
//	       -> doubt.go   do the others contradict it, here and elsewhere?
//	                     (and path.go, review.go)
//	       -> believe.go does the vote count, is it awaited, or is it left out?
//	       -> rule.go    what follows from the votes that count? (and score.go)
//	       -> damping.go does it flap, so that it stays down for a while?
//	       -> mass.go    does too much of its cluster go down at once?
//	       -> patience.go has the verdict waited for long enough?
//	       -> reason.go  the same in words
//
// What it guarantees:
//   - A verdict goes up or down only by the endpoint's rule (the majority,
//     unless set otherwise) over the votes that count, and only when the voters
//     that are still awaited could not turn it round. Otherwise the last
//     verdict holds, for as long as it takes. Only where the rule asks for it,
//     a verdict lapses when no vote counts and nobody is awaited.
//   - A vote of down does not count while its pair warms up. A pair warms up
//     when it is assigned, when its host is re-created (it is assigned
//     again), and when its checker's stream begins anew, since that checker
//     may have restarted and says UNHEALTHY of all that it has not yet probed.
//   - A checker that says down of much that its peers see up is doubted, and so
//     is a path between two zones: their downs do not count until that has
//     passed. So one who is cut off takes nothing out. Ups always count.
//   - A checker that misses outages which its peers see is blind (blind.go). That
//     changes no verdict: its owner may have others check beside it.
//   - An operator's word about a checker (word.go) stands above what its peers
//     say. None of the votes of one that is distrusted counts.
//   - Damping takes nothing down, and holds nothing down while more than half of
//     its cluster is. In a mass failure no down waits that all votes agree on.
//   - A majority elsewhere that gets no answer does not at once outvote a
//     checker in the endpoint's own zone that says up, even one that has just
//     lost its stream, unless most of its zone has; nor does a single voter of
//     several at once decide when the others do not count.
//   - A checker that is silent for longer than the staleness has no say, in
//     either direction.
//   - Who connects, falls silent, or was absent when an endpoint is seen again
//     after nobody saw it, is awaited for Options.AwaitFor, so that neither the
//     first nor the last of them decides alone because of a disturbance that
//     passes.
//   - Every wait has an end, over all repeats. An endpoint has so much patience as
//     one voter takes to come back and to warm up; only settled votes that agree
//     with the verdict, or another verdict, restore it. When it is exhausted, the
//     votes that count decide, and a host's first probe is all that is waited for.
//   - What the checkers of a zone see otherwise than the verdict is, if it lasts,
//     is a view of that zone (zoneviews.go), and changes no verdict.
//   - The same calls in the same order give the same changes.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one
// goroutine, its owner; time comes in as a value and never runs backwards.
// Assign, Unassign, Connected and the like only record; what follows from
// them is in the Effects of the next Report or Tick, so that a batch of them
// takes effect as one. An owner applies the Effects that a step returns, and
// calls Tick when NextDeadline has come, which is at once after a batch.
//
// A report without a changed vote costs O(1), a changed vote O(checkers of
// the endpoint), a checker that falls silent or comes back O(its endpoints),
// a Tick what is due. By score, an endpoint is also looked at in the reports in
// which its downs still add up. A vote takes 28 bytes, an endpoint 40; one that
// went down lately, where that is damped, some 100 more until it is forgotten.
//
// It imports health and the standard library only.
package aggregate
