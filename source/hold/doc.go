// Package hold keeps in use what a source takes away too much of at once.
//
// It owns the difference between what one source says and what is in use of it. A set
// that takes away more than a share of the clusters or endpoints in use is not followed
// at once: what it adds and changes counts, and what it takes away stays.
//
// It guarantees:
//   - Each endpoint, and each cluster, is held for its own time. Whatever the source
//     says in between, nothing prolongs that.
//   - What the source has again is no longer held.
//   - Without anything held, a set is handed on as it came, by the same pointer.
//   - A cluster of which the same is held keeps its pointer.
//   - The revision names what is held, over a restart too, so that an operator accepts
//     only what was shown.
//
// It is pure: time comes in as a value. Of this module it may import source and
// internal/envoyaddr.
package hold
