// Package log has the entries of the log: the decisions of the machine, as values that mean the
// same in every process and after every restart.
//
// An Entry is one step of the log. It names endpoints by their keys or their 64-bit hashes, never
// by an id of this process, and refers to no cluster and no message. The history follows the log
// (package store), and so do metrics, alarms and the log of events. For data
// planes, the machine yields a change (package publish) beside the entry. The change is no part
// of the entry, since it depends on the clusters that a process has read.
//
// An entry is all that a replica needs to write the history and the audit. Its Events tell what is neither a
// transition nor an order: checkers that join, fall silent or are doubted. Its Operator tells who gave an order, and
// its changes of overrides, freezes and trust tell what was before.
//
// A nil row in a map of an Entry removes the row.
//
// The package is pure: it has no goroutine, lock, clock or file. It imports health only.
package log
