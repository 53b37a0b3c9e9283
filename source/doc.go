// Package source says what endpoints there are: each source gives full sets of
// clusters, and Merge makes one catalogue of them.
//
// It owns the shape of a set, the precedence among sources, and the default
// health checks. It promises that a cluster that did not change keeps its
// pointer from one set, and from one catalogue, to the next, so that those who
// follow can compare pointers; and that whatever is set aside says why.
// Everything handed on is never changed again. A change costs what it touches,
// and a comparison of pointers.
//
// It is pure and starts no goroutine. Of this module it may import health.
package source
