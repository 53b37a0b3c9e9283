// Package heap keeps items so that the least is at hand, and any can move or leave.
//
// It is pure, and imports nothing.
package heap
