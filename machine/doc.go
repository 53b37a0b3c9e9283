// Package machine is what decides: one state machine over values. It joins the rooms, which do not
// know each other:
//
//	fleet      which checkers there are, and what each has to check
//	probation  what checkers say whose votes do not count yet
//	rollout    which version of a cluster each checker is sent
//	aggregate  what the votes on each endpoint come to
//	ruling     what is published of it: the verdict, or what stands above it
//
// Step takes an Event and the time, and yields Effects: decisions for data planes and the history,
// specifiers for checkers, what to store, and what happened to checkers, clusters and trials. The
// owner carries out each before Step goes on. The same events at the same times lead to the same
// effects.
//
// # One sequence of steps
//
// Each event goes to the rooms in one order. The effects of a room are carried out before the next
// room is asked, and what follows from them then (followUp); nothing recurses.
//
//	clusters    rollout, ruling, aggregate, decision, fleet; then rulings that changed while
//	            hdsd was down, since only then can the votes be explained
//	connect     fleet, rollout, aggregate, specifier
//	disconnect  rollout, fleet, aggregate
//	report      fleet, rollout, aggregate, ruling, decision
//	tick        fleet, rollout, specifiers, stored plan, aggregate, ruling, decision
//
// Wait says when the next tick is due: when a room is due (NextDeadline), a second later at most.
// After a time in which the process stood still, a tick only listens for a report interval, so that
// nobody is late because hdsd did not read.
//
// The package is pure: it has no goroutine, lock, clock or log.
package machine
