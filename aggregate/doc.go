// Package aggregate turns votes and time into verdicts: it decides whether an
// endpoint is up or down from what its checkers say, and says why.
// docs/internals/verdict.md describes the rules.
//
// It owns, for every endpoint, the verdict in force and the latest vote of each
// checker that has a seat there. Aggregator joins the parts, each of which is a
// type with fields of its own:
//
//	roster        the rows of endpoints and checkers, and the seats that join them
//	settings      options, the terms of each policy, classes of belief limits
//	presence      which checkers are heard, which zones are deserted
//	intake        applies votes; the phase of each pair of endpoint and checker
//	records       how often others contradict a checker, or a path between zones
//	doubts        which checkers and paths are doubted
//	counter       which votes count, are awaited or left out; their tally
//	Rule, tally   what follows from the votes that count
//	waits         which changes have to last first, and when the absent are awaited
//	budgets       for how long a verdict may wait in all
//	damping       which endpoints flap, and stay down for a while
//	massFailures  which clusters are about to go down in one round
//	decisions     asks the parts above in order, for each endpoint that is marked
//	blindness     which checkers miss outages that their peers see
//	zoneViews     which zones see an endpoint otherwise than the verdict is
//	reasons       why a verdict is what it is, in words
//
// A part knows those that it has pointers to, and none above it. The rows of
// endpoints, checkers and seats are shared and packed, since there are millions; the
// comment of each field names the one part that writes it.
//
// What the package guarantees:
//   - A verdict goes up or down only by the endpoint's rule (the majority, unless set
//     otherwise) over the votes that count, and only when the awaited votes could not
//     turn it round. Otherwise the last verdict holds, for as long as it takes. Only
//     where the rule asks for it, a verdict lapses when no vote counts and none is
//     awaited.
//   - A vote of down does not count while its pair warms up. A pair warms up when it
//     is assigned, when its host is re-created (it is assigned again), and when its
//     checker's stream begins anew: that checker may have restarted, and then says
//     UNHEALTHY of all that it has not yet probed.
//   - A checker that says down of much that its peers see up is doubted, and so is a
//     path between two zones. Their downs do not count until that has passed, so a
//     checker that is cut off takes nothing out. Ups always count.
//   - A checker that misses outages which its peers see is blind. That changes no
//     verdict; its owner may have substitutes check beside it.
//   - An operator's trust or distrust stands above what a checker's peers say. No vote
//     of a distrusted checker counts.
//   - Damping takes nothing down, and holds nothing down while more than half of its
//     cluster is. In a mass failure no down waits that all votes agree on.
//   - A majority elsewhere that gets no answer does not at once outvote a checker in
//     the endpoint's own zone that says up, even one that has just lost its stream,
//     unless most of its zone has. Nor does a single voter of several decide at once
//     when the votes of the others do not count.
//   - A checker that is silent for longer than the staleness has no say, in either
//     direction.
//   - A checker is awaited for Options.AwaitFor when it connects or falls silent, or
//     when it was absent and an endpoint is observed again. So neither
//     the first nor the last to report decides alone after a short disturbance.
//   - Every wait has an end, over all repeats. An endpoint's wait budget is as long as
//     one voter takes to come back and to warm up. Only votes past their warm-up that
//     agree with the verdict, or another verdict, fill it again. When it is spent, the
//     votes that count decide, and a re-created host is waited for only until its
//     first probe.
//   - A view of a zone is what its checkers see otherwise than the verdict is, if it
//     lasts. It changes no verdict.
//   - The same calls in the same order give the same effects.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine,
// its owner; time comes in as a value and never runs backwards. Assign, Unassign,
// Connected and the like only record. What follows from them is in the Effects of
// the next Report or Tick, so that a batch of them takes effect as one. An owner
// applies the Effects of each step, and calls Tick when NextDeadline has come, which
// is at once after a batch.
//
// A report without a changed vote costs O(1), a changed vote O(checkers of the
// endpoint), a checker that falls silent or comes back O(its endpoints), a Tick what
// is due. By score, an endpoint is also decided at the reports in which its downs
// still add up. A vote takes 28 bytes and an endpoint 40; one that went down lately,
// where that is damped, some 100 more until it is forgotten.
//
// It imports health and the standard library only.
package aggregate
