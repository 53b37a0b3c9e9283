// Package decision is the log of what hdsd decides: one sequence that the EDS server, the
// store and the log of events follow.
//
// A Decision says what to publish and what to record, so followers need nothing else. The
// owner of a Log appends decisions in the order in which it makes them. Each follower reads
// with its own Cursor, at its own pace.
//
// Memory is the log of a single process. It keeps a decision until all cursors have passed
// it, up to a limit. A cursor that falls further behind loses decisions: it gets ErrBehind
// and continues with the oldest decision that is left. Append never waits for a follower,
// so a slow one delays nobody.
//
// Health, Update, Withdrawn and Zones refer to endpoints by ids that are valid in one
// process only. The other parts mean the same everywhere, so a log that several processes
// share carries only those.
//
// The package starts no goroutine. A Memory may be used from several. It imports health,
// eds and store.
package decision
