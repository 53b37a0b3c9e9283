// Package query answers the questions of package api: endpoints, clusters,
// checkers, clients, history, availability, watches and client status (CSDS).
//
// # What it owns
//
// A Backend combines three kinds of knowledge: the present state, which only the
// core's goroutine may read (interface State), the history in the store, and the
// streams of hds, eds and the feed. It owns the paging and the cost of questions,
// the snapshots, which sum the present state up by cluster, and the tail: the newest
// changes of the history, read and encoded once for all watchers.
//
// # What it guarantees
//
// Questions about hdsd, its clusters or its checkers read a snapshot that was begun after the
// question. If the core is busy for longer than a moment, they read the latest one. A snapshot
// costs the core a look at the changes since the previous one, and only if there is a question.
//
// A question about present endpoints looks at a bounded number of endpoints at a time,
// so that it never holds up the core. A list that takes several steps contains each
// endpoint that is there throughout exactly once. Questions about the past read
// committed history only, so that an answer survives kill -9.
//
// A watcher sees the recorded health of all endpoints as of one place in the
// history, and then every change behind it, without a gap. Nothing is queued for a
// slow watcher: it reads later, and at worst learns that the history no longer
// reaches back to where it is.
//
// Watchers cost the core next to nothing, in any number. Those that begin at about the same
// time share one listing, whose pages are made once, as they are needed; a bounded number of
// pages is kept. News is shown in rounds, which grow with the number of watchers. Each event is
// encoded once for all.
//
// # Goroutines
//
// The package starts none. A Backend may be used from any goroutine. A goroutine of its owner,
// ReadIncidents, reads the history for questions about incidents. A question that waits for it,
// or for a snapshot, gives up its turn (api.Aside), so that others are answered.
package query
