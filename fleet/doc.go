// Package fleet tracks the checkers, and decides the work of each.
//
// It owns the plan of package assign, and for each checker whether it is connected, silent or
// lost. No other package keeps any of this.
//
// # What it decides
//
//   - A lost checker keeps its seats for the grace period, and after a start until hdsd has
//     settled.
//   - If many are lost, the others keep their work for a while (missing.go), and then take over
//     a little at a time, as from silent checkers (shift.go).
//   - It reports once when no checker is connected, and once when one is again (unwatched.go).
//   - A silent checker loses its seats to others, as long as enough others report (silent.go).
//   - A doubted, distrusted or blind checker keeps its seats and gets substitutes (cover.go). So
//     do the endpoints of a divided zone.
//   - The old checker of a moved endpoint goes on checking it until the new ones are believed, a
//     minute at most (handover.go).
//   - For checkers that come and go, it plans at once after some calm, otherwise at most every
//     100 ms (churn.go).
//   - A newcomer is on probation until it has agreed with established checkers. It probes a
//     sample on top of the plan (newcomer.go, sample.go). The fleet knows established checkers
//     and founders (probation.go), and stand-ins for absent checkers (standin.go).
//   - No checker weighs more by its claims or by its number of ids (weights.go).
//   - Changes of the plan are gathered for a quarter of a report interval before their
//     specifiers are made (dispatch.go). So a zone that comes back costs each checker one or two
//     specifiers, not dozens.
//
// # Effects
//
// Each call that decides something returns Effects: the owner carries them out in the order of
// the fields before it makes the next call. A Fleet asks its owner, through Lookup, only for
// facts outside it: whether votes are believed or agree, and whether a checker is able to check
// an endpoint.
//
// An owner calls Tick, and then Dispatch, after each batch of events and at NextDeadline.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one
// goroutine; time comes in as a value and never runs backwards. It imports
// assign, health and the standard library only.
package fleet
