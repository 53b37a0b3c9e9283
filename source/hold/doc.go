// Package hold keeps in use what a source takes away too much of at once, and what it
// changes to and fro.
//
// A Hold owns the difference between what one source says and what is in use of it. A set
// that takes away more than a share of the clusters or endpoints in use is not followed
// at once: what it adds and changes counts, and what it takes away stays. What it takes away
// little by little adds up: it is compared with the most that was in use lately, too.
//
// It guarantees:
//   - Each endpoint, and each cluster, is held for its own time. Whatever the source
//     says in between, nothing prolongs that but a restart, by a minute at most.
//   - What the source has again is no longer held.
//   - Without anything held, a set is handed on as it came, by the same pointer.
//   - A cluster of which the same is held keeps its pointer.
//   - The revision names what is held, over a restart too, so that an operator accepts
//     only what was shown.
//
// A Delay owns which clusters of a source alternate: an endpoint or the configuration is
// for the third time within a minute each what it had been. It guarantees:
//   - The changes of such a cluster wait, at most 10 s. What was in use before stays.
//   - Other clusters of the source do not wait, nor does one of which each endpoint
//     leaves and comes back once, as in a rolling restart.
//   - Without anything that waits, a set is handed on as it came, by the same pointer.
//
// Both are pure: time comes in as a value. Of this module it may import source and
// envoy.
package hold
