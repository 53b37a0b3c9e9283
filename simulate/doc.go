// Package simulate tells what a fleet of checkers would make of some clusters:
// what each checker would have to do, what the loss of a checker or of a zone
// would move, what nobody could check, and how this compares with data planes
// that check for themselves.
//
// It owns the questions that a plan is asked, and no rule of planning: each plan
// and each move is package assign's. It is pure: no clock, no goroutine, no
// lock, no log. It may import assign, health and the standard library only.
//
// Losses are tried one after the other on one plan: those lost give up their
// seats, what moves is counted, and they come back. So later losses meet a plan
// that has lived through the earlier ones, as a plan of hdsd would have.
package simulate
