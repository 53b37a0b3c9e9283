// Package coordinator joins the stages to one program: it owns the life cycle, the
// mailbox of the core, and the order of effects. It can be embedded: New opens the
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
// The core has no rules of its own. It carries values between its rooms, which do not
// know each other:
//
//	fleet      which checkers there are, and what each has to check
//	probation  what checkers say whose votes do not count yet
//	rollout    which version of a cluster each checker is sent
//	aggregate  what the votes on each endpoint come to
//	ruling     what is published of it: the verdict, or what stands above it
//	decision   the log of decisions, which EDS, the store and the event log follow
//
// # One sequence of steps
//
// Each event goes to the rooms in one order. The effects of a room are carried out
// before the next room is asked.
//
//	clusters    rollout, ruling, aggregate, decision, fleet; then rulings that changed while
//	            hdsd was down, since only then can the votes be explained
//	connect     rollout, fleet, aggregate, specifier
//	disconnect  rollout, fleet, aggregate
//	report      fleet, rollout, aggregate, ruling, decision
//	tick        fleet, rollout, specifiers, stored plan, aggregate, ruling, decision
//
// A tick follows each batch of events, and comes when a room is due (NextDeadline), a
// second later at most. After a time in which the process stood still, the core only
// listens for a report interval, so that nobody is late because hdsd did not read.
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
// A decision reaches data planes first, then the store's queue, then the log of events
// (decisions.go). Publishing never waits for the disk. What an operator asks for takes
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
