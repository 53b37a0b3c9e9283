// Package probation keeps what checkers on probation report.
//
// Their votes decide nothing, so they do not reach package aggregate. They are kept here
// to be compared with those of established checkers, to be shown, and to be counted from
// the first moment on once the checker has seats.
//
// Who is on probation, for how long and at which endpoints is decided by
// coordinator/fleet.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine. It
// imports health and the standard library only.
package probation
