// Package coordinator joins the stages to one program: it owns the life cycle, the
// mailbox of the core, and the order of effects. It can be embedded: New opens the
// database and reads the sources, Run serves until its context ends or Close is
// called, Reload takes another configuration. A Coordinator runs once.
//
// # The core
//
// One goroutine, the core, makes all decisions. Everyone else posts events to its
// bounded mailbox: sources post prepared clusters, HDS streams post changed votes,
// queries ask for a copy of what they show, a bounded step at a time. A stream waits
// while the mailbox is full: it stops reading, and so its checker stops sending.
//
// The core has no rules of its own. It carries values between its rooms, which do not
// know each other:
//
//	fleet      which checkers there are, and what each has to check
//	rollout    which version of a cluster each checker is sent
//	aggregate  what the votes on each endpoint come to
//	ruling     what data planes are told of it
//	decision   the log of that, which data planes, the history and the log follow
//
// # One sequence of steps
//
// Each event goes to the rooms in one order. The effects of a room are carried out
// before the next room is asked.
//
//	clusters    rollout, ruling, votes, decisions, fleet
//	connect     rollout, fleet, votes, specifier
//	disconnect  rollout, fleet, votes
//	report      fleet, rollout, votes, ruling, decisions
//	tick        fleet, rollout, specifiers, stored plan, votes, ruling, decisions
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
// # Sources
//
// Files are read when hdsd starts; management servers are asked from then on,
// and waited for (package feed). Until each has answered or is given up, hdsd is
// not ready, and the EDS server tells nobody that something is not there. Until
// each has answered, however long that takes, nothing that went while hdsd was
// down is taken for gone (gone.go); what a source that has answered lacked once
// hdsd had settled begins anew when it comes. A reload leaves those that are the same
// alone.
//
// Each source orders its own reads, and the intake what all of them say: it takes
// sets only from a source as it is open now, and asks for the latest where the
// sources are exchanged (package feed). So the last word is never an older read.
//
// # Order of effects
//
// A verdict is published to EDS first and then handed to the store's writer;
// publishing never waits for the disk. Queries of history read committed state
// only, so what one has shown survives kill -9. At a start the last known
// health is published before the servers listen, and the stored plan is
// resumed: nothing changes because hdsd restarted. The time to settle begins
// when the servers listen; until it ends no seat is given up.
//
// # Shadow and freeze
//
// Verdicts are reached and recorded the same whether they are published or not.
// Where they are not, the assignment that EDS gets refers to no verdict on the
// endpoint, so that it goes out as the source gave it, and the cluster in the
// form that it came in. A freeze that holds health keeps a copy of it, by the
// endpoints' hashes, in memory and in the store. It takes effect before it is on
// disk, and is acknowledged after.
//
// # Overrides
//
// An operator's override is above the verdict of the votes: the core goes by
// the table's row, which has both, and the judge knows nothing of it. A change of
// overrides is one batch, to EDS and to the history, whatever it is for. What
// the votes come to meanwhile is stored, since the history then has the
// override: when it ends, also while hdsd is down, that is what is so again.
//
// # Log and metrics
//
// The log has one line for each change of health, but at most 100 a second, and
// then one that counts those left out: the history has them all. No metric is
// labelled by what a peer can make up.
//
// # Stopping
//
// Readiness goes off, the core stops judging, streams end with UNAVAILABLE,
// the store commits its last group. Run and Close return when every goroutine
// is gone.
package coordinator
