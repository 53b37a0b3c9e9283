// Package source says which endpoints exist. Each source supplies full sets of
// clusters, and Merge makes one catalogue of them.
//
// It owns the shape of a set, the precedence among sources, and the default health
// checks. It guarantees:
//   - An unchanged cluster keeps its pointer from one set, and from one catalogue,
//     to the next. So callers can compare pointers.
//   - Whatever is left out has a reason.
//   - Sets, catalogues and clusters are immutable once handed on.
//   - A change costs what it touches, plus a comparison of pointers.
//   - Endpoints are kept encoded. Who needs them decodes them, one cluster at a time, and
//     keeps no messages of endpoints that are an address and a port alone.
//
// It is pure and starts no goroutine. Of this module it imports envoy.
package source
