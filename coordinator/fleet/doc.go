// Package fleet knows which checkers there are and what each of them has to
// check.
//
// It owns the plan of package assign, and of each checker whether it is
// connected, silent or lost. Nobody else keeps any of this: "connected" is known
// here and told from here.
//
// # What it decides
//
//   - A checker that is lost keeps its seats for the grace period, and after a
//     start until hdsd has settled.
//   - If many are lost, the others keep what they have for a while (missing.go), and then
//     take over a little at a time, as from silent checkers (shift.go).
//   - Nobody is left that checks anything, or somebody is again: it tells of that once
//     (unwatched.go).
//   - A silent checker loses its seats to others, as long as enough others report
//     (silent.go).
//   - A checker that is doubted, distrusted or blind keeps its seats and gets
//     substitutes (cover.go). So do the endpoints of a divided zone.
//   - An endpoint that moves is checked where it was until its new checkers are
//     believed, a minute at most (handover.go).
//   - For checkers that come and go, a plan is made at once after some calm, and else at
//     most every 100 ms (churn.go).
//   - A newcomer is on probation until it has agreed with established checkers. It
//     probes a sample on top of the plan (newcomer.go, sample.go). Who is established
//     is known here, who is a founder (probation.go), and who only stands in for those
//     that are away (standin.go).
//   - Nobody weighs more by what it claims or by how many ids it has (weights.go).
//   - Changes of the plan are gathered for a quarter of a report interval before
//     specifiers are made of them (dispatch.go). So a zone that comes back costs
//     each checker a specifier or two, not dozens.
//
// # Effects
//
// Each call that decides something returns Effects: the owner carries them out
// in the order of the fields before it makes the next call. A Fleet asks its
// owner, through Lookup, only for what it cannot know: whether votes are
// believed or agree, and whether a checker is able to check an endpoint.
//
// An owner calls Tick, and then Dispatch, after each batch of events and when
// NextDeadline has come.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one
// goroutine; time comes in as a value and never runs backwards. It imports
// assign, health and the standard library only.
package fleet
