// Package decision is the log of what hdsd decides: one sequence of decisions that
// data planes, the history and the log of events follow.
//
// A Decision carries both what data planes get and what the history records, so
// that whoever follows needs nothing else. The owner of a Log appends decisions in
// the order in which it reaches them. Each follower has a Cursor of its own and
// reads at its own pace.
//
// Memory is the log of a single process. It keeps a decision until all cursors
// have passed it, but no more than its limit. A cursor that falls further behind
// gets ErrBehind, loses what was dropped, and goes on with the oldest decision that
// is kept. Appending never waits for a follower, so neither a slow disk nor a slow
// reader delays what is published.
//
// Health, Update, Withdrawn and Zones name endpoints by ids that only this process
// knows. The rest of a Decision means the same in every process, so a log that is
// shared between processes carries only that.
//
// The package starts no goroutine; a Memory may be used from any. It imports health,
// and eds and store for what they take.
package decision
