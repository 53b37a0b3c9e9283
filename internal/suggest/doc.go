// Package suggest finds the names that a mistyped one was probably meant to be.
//
// It is pure and imports only the standard library.
package suggest
