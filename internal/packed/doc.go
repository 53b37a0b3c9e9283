// Package packed encodes numbers and texts as bytes: varints, and texts that begin with their
// size. It is pure.
package packed
