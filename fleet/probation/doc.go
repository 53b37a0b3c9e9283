// Package probation keeps the reports of checkers on probation.
//
// Their votes decide nothing, so they do not reach package aggregate. They are kept here for
// comparison with those of established checkers and for display, and count from the first
// moment once the checker has seats.
//
// Package fleet decides which checkers are on probation, for how long and at which
// endpoints.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one goroutine. It
// imports health and the standard library only.
package probation
