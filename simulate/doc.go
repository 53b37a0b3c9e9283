// Package simulate shows what a fleet of checkers would do with some clusters: what
// each checker would have to do, what the loss of a checker or of a zone would move,
// what nobody could check, and how many checks data planes would make that check for
// themselves.
//
// It owns the questions, and no rule of planning: package assign makes each plan and
// each move. It is pure: no clock, goroutine, lock or log. It imports assign, health
// and the standard library only.
//
// It tries losses one after the other on one plan: checkers give up their seats,
// it counts what moves, and they come back. So a later loss meets a plan that has
// lived through the earlier ones, as a plan of hdsd would have.
package simulate
