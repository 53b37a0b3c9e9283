// Package aggregate turns votes and time into verdicts: it decides whether an endpoint is up or
// down from the votes of its checkers, and explains the decision. docs/internals/verdict.md
// describes the rules.
//
// It owns, for every endpoint, the verdict in force and the latest vote of each
// checker that has a seat there. Aggregator joins the parts, each of which is a
// type with fields of its own:
//
//	roster        the rows of endpoints and checkers, and the seats that join them
//	settings      options, the terms of each policy, classes of belief limits
//	presence      heard checkers and deserted zones
//	intake        applies votes; the phase of each pair of endpoint and checker
//	records       how often others contradict a checker, or a path between zones
//	divisions     zones that are cut off, or seem to be by the votes of one checker
//	doubts        doubted checkers and paths
//	counter       tallies of the votes that count, are awaited or are left out
//	Rule, tally   the result of the votes that count
//	waits         changes that have to last first, and waits for absent checkers
//	budgets       the total time that a verdict may wait
//	damping       endpoints that flap, and stay down for a while
//	massFailures  clusters that are about to go down in one round
//	decisions     asks the parts above in order, for each marked endpoint
//	blindness     checkers that miss outages that their peers see
//	zoneViews     zones that see an endpoint differently from its verdict
//	witnesses     the number of votes behind each verdict, and since when there is none
//	reasons       the reasons of verdicts, in words
//
// Each part uses only the parts that it has pointers to, never a part above it. There
// are millions of endpoints and seats, so their rows are shared and packed. The
// comment of each field names the part that writes it.
//
// Guarantees:
//   - A verdict goes up or down only by the endpoint's rule over the votes that
//     count. The default rule is the majority. The verdict changes only when the
//     awaited votes cannot reverse the result. Otherwise the last verdict holds, for
//     as long as it takes. A verdict lapses only where the rule asks for it, when no
//     vote counts and none is awaited.
//   - A verdict that stays down keeps its name, UNHEALTHY or TIMEOUT, until the other
//     has lasted for 10 rounds. So does a zone view.
//   - A vote of down does not count while its pair warms up. A pair warms up when it
//     is assigned, and when its host is re-created, since hdsd then assigns it again.
//     It also warms up when its checker begins a new stream. That checker may have
//     restarted, and then reports UNHEALTHY for all endpoints that it has not yet
//     probed. The warm-up ends with an up, and with a status code, unless the rule
//     sets its length: then a probe has ended.
//   - A checker is doubted if it says down of many endpoints that its peers see up. A
//     path between two zones is doubted for the same reason. Downs do not count while
//     the doubt lasts, so a checker that is cut off takes no endpoint down. Doubt
//     never discounts an up.
//   - One checker's ups, or its downs, cut no path and hold off no majority for longer
//     than 10 rounds, and take no endpoint up against two others. More takes a second
//     checker of the zone. Effects.Divided lists the zones that need one.
//   - A checker is blind if it misses outages that its peers see. That changes no
//     verdict; the owner may add substitutes beside it.
//   - An operator's trust or distrust overrides what a checker's peers say. No vote
//     of a distrusted checker counts.
//   - Damping takes no endpoint down. It keeps no endpoint down while more than half
//     of its cluster is down. In a mass failure, a down that all votes agree on does
//     not wait.
//   - A majority elsewhere that gets no answer does not at once outvote an up from
//     the endpoint's own zone. That up stands even if its checker has just lost its
//     stream, unless most checkers of the zone have lost theirs. Nor does a single
//     voter of several take an endpoint down at once when the votes of the others do
//     not count.
//   - No vote of a checker counts, up or down, once the checker has been silent for
//     longer than the staleness.
//   - A checker is awaited for Options.AwaitFor when it connects or falls silent. It
//     is also awaited when it was absent and an endpoint is observed again. So
//     neither the first nor the last to report decides alone after a short
//     disturbance.
//   - Every wait ends, even if its cause comes back again and again. An endpoint's
//     wait budget covers the time that one voter takes to come back and to warm up,
//     one confirmation, and the hold of a mass failure. A new verdict refills the
//     budget. So do votes past their warm-up whose majority does not oppose the verdict.
//     When the budget is spent, the votes that count decide. A re-created host is
//     then awaited only until its first probe.
//   - A zone view reports that the checkers of a zone see an endpoint differently
//     from its verdict for some time. It changes no verdict.
//   - The same calls in the same order give the same effects.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine,
// its owner; time comes in as a value and never runs backwards. Assign, Unassign,
// Connected and the like only record events. The next Report or Tick returns their
// Effects, so that a batch of them takes effect as one. An owner applies the Effects
// of each step, and calls Tick when NextDeadline has come. After a batch, that is at
// once.
//
// A report without a changed vote costs O(1), and a changed vote O(checkers of the
// endpoint). A checker that falls silent or comes back costs O(its endpoints). A Tick
// costs as much as is due. Under the Score rule, a report also decides each endpoint
// at which its checker's run of downs still grows. A vote takes 28 bytes and an
// endpoint 44. Where damping is on, an endpoint that went down lately takes some 100
// more until that is forgotten.
//
// It imports health and the standard library only.
package aggregate
