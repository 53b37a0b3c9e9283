// Package machine decides. It is one state machine over values, and joins the rooms, which do not import
// each other:
//
//	fleet      the checkers, and the endpoints that each checks
//	probation  the votes of checkers on probation
//	rollout    the version of a cluster that each checker gets
//	aggregate  the verdict of the votes on each endpoint
//	ruling     the published health: the verdict, an override, a freeze or shadow mode
//
// Step takes an Event and the time, and yields Effects: changes for data planes, entries of the log,
// specifiers for checkers, and changes of checkers, clusters and trials. The
// owner carries out each effect before Step continues. The same events at the same times lead to the
// same effects.
//
// # One sequence of steps
//
// Each event goes to the rooms in one order. The machine applies the effects of a room before it calls
// the next room, and then the pending work (followUp). Nothing recurses.
//
//	clusters    rollout, ruling, aggregate, decision, fleet; then the changes of restored
//	            overrides, because the aggregator can explain the votes only now
//	connect     fleet, rollout, aggregate, specifier
//	disconnect  rollout, fleet, aggregate
//	report      fleet, rollout, aggregate, ruling, decision
//	tick        fleet, rollout, specifiers, stored plan, aggregate, ruling, decision
//
// Wait returns the time to the next tick: to the next deadline of a room (NextDeadline), and at most a
// second. After a pause of the process, ticks only listen for a report interval. So no checker is late
// because hdsd did not read.
//
// The package is pure: it has no goroutine, lock, clock or log.
package machine
