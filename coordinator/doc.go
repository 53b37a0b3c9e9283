// Package coordinator joins the stages to one program: it owns the life cycle, the
// mailbox of the core, and the observers of effects. It can be embedded: New opens the
// database and reads the sources, Run serves until its context ends or Close is
// called, Reload takes another configuration. A Coordinator runs once.
//
// # The core
//
// One goroutine, the core, makes all decisions. Everyone else posts events to its
// bounded mailbox: sources post prepared clusters, HDS streams post changed votes,
// queries of endpoints ask for a copy of what they show, a bounded step at a time. A stream
// waits while the mailbox is full: it stops reading, and so its checker stops sending. Other
// queries read a snapshot, which the core makes between two events when somebody asks.
//
// Package machine has the rules: Step takes an event, and yields its effects one after the other. The
// core hands each to all observers in one order (core.go): checkers and data planes come first, then
// the history, then the log of events, metrics, alarms and the snapshots of queries. A tick follows
// each batch of events.
//
// # Cost
//
// A change costs what changed. A cluster that is the same under the same rules is not
// looked at. A checker's specifier is made again only when something in it changed. The
// expensive part of a change of clusters is done before it is posted, by the source's
// goroutine: to decide what is safe to send, and what of it differs from before.
//
// # Order of effects
//
// A decision reaches data planes first (publisher.go), then the store's queue (recorder.go), then the
// log of events (eventlog.go). Publishing never waits for the disk. What an operator asks for takes
// effect at once, and is acknowledged when it is on disk. Queries of the history read
// what is committed, so history you have seen survives any crash.
//
// # Start
//
// restore takes over what is stored, in production and in tests alike. Files are read,
// and the last known health is published, before the servers listen: nothing changes
// because hdsd restarted. Management servers are asked from then on. Until each has
// answered or its initial_fetch_timeout has passed, hdsd is not ready, and data planes
// are not told that something does not exist.
//
// The time to settle starts when the servers listen. Until it ends, no seat is given up
// and no canary starts. Until every source has answered too, however long that takes, no
// endpoint is recorded as gone.
//
// # Replicas
//
// With replication, the core runs a replica.Replica in place of the machine (replication.go). Its effects go to the
// same observers: those of entries when the log has them, those of the leader's Machine when it decides. Queries read the
// Machine of the leader, and on a follower a view of its health; package union has the leader answer. An order
// is answered when this replica reads its entry.
//
// The type replicas has the listener for other replicas, the session at etcd (package replica/engine), the links
// (package replica/link) and the questions between replicas (peers.go). Each replica holds what its sources take
// away, so an operator's acceptance goes to all by such a question (acceptance.go). At the start, a replica whose
// database is behind the log copies that of another one (copy.go). A follower ends the session of a leader whose
// process is gone (leaderprobe.go). The session ends before the core stops, so that another replica leads at once.
//
// # Log and metrics
//
// The log shows each transition, but at most 100 a second, and then the number of the
// others. The history has them all. No metric has a label that a peer can make up.
//
// # Stop
//
// hdsd becomes not ready, the core stops, streams end with UNAVAILABLE, and the store commits
// its last group. Run and Close return when every goroutine has ended.
package coordinator
