// Package trie divides a space of 128-bit keys into the leaves of a binary trie.
//
// It owns no state: callers keep the leaves. It sorts items by key, cuts sorted
// items into as few leaves as fit, and finds the place of a key among leaves.
// Results depend on keys and ids only, never on the order in which items come.
// It starts no goroutine and imports health and the standard library only.
package trie
