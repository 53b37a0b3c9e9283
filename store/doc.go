// Package store is hdsd's database, one bbolt file. It holds:
//
//   - the history: every transition with the votes behind it;
//   - the current health of each endpoint;
//   - the plan, and the names of all clusters ever known;
//   - what operators set (freeze, overrides, trust) and what canaries found out (trials).
//
// # Guarantees
//
// Apply, Follow and the methods that begin with Append put their work into a bounded queue and never
// wait for the disk. One writer commits it in groups: after 10 ms
// or 4,096 transitions, whichever is first. While more than that waits, groups become
// larger: up to 65,536 transitions, a quarter of Options.MaxPending, and what is left of Options.MaxBytes,
// unless their transactions take too long. They become smaller where the disk does not take
// them. A group is committed whole or not at all. A transition and the current health that it
// leads to are in one group.
//
// A group is written in the order of the keys of each bucket. Many endpoints that change at
// once then cost a fraction: of a first start, most pages have several rows of a group.
//
// Queries read only what is committed and on disk. History that a query has shown survives
// any crash. The exception is a store that was opened on a disk that fails.
//
// Transitions keep the order in which they were appended, whatever the wall clock does.
// The key of each is its recorded time: its own time, or 1 ns after the transition before
// if that is later. Queries by time go by its own time, corrected if the clock was wrong.
//
// A Place is a recorded time that survives restarts as a token. After returns what was
// recorded behind it without a gap, or ErrTooOld. Committed signals when to call it again.
//
// When the disk fails, the writer retries with back-off and reports each failure to
// Options.OnError. When the queue is full meanwhile, the writer drops the oldest
// transitions from the history, counts and reports them. The health that they led to is
// still written when the disk is back, and so is the Gap. Queries say that health in a gap
// is not known, and no Place leads across one. The audit drops its oldest waiting entries,
// and has an entry in their place (AuditGap); so do events. Of everything else only the
// latest waits.
//
// After a write that failed, the page cache may show what is not on disk. The next
// transaction puts the first pages there before anything else. So does Open; if the disk
// does not take them, it goes on with what the page cache shows.
//
// Open changes nothing in a file that is of a newer version, damaged or in use, and its
// error says what to do. It checks the pages first (package boltfile), since bbolt believes
// every page that it reads. Queries skip a damaged value, count it and report it once. A
// page that goes bad while the file is open ends writing, not the process.
//
// # Retention
//
// The writer deletes transitions older than Options.Retention, except the newest of all.
// Their age counts in steady time (package timeline), so that no wrong clock deletes
// anything. A file without steady time is as old as its last change.
//
// Events older than the retention go too, and the oldest of a kind that has more than
// 10,000.
//
// Near Options.MaxBytes it deletes the oldest ones before their time, except the newest of
// all, and nothing but transitions. The header keeps how far: the history begins there.
//
// The health that an endpoint had when retention begins is still known: it is From of its
// first transition kept, or its current health if there is none. The current health stays
// until Forget learns that nobody knows the endpoint and no transition of it is left. Names
// of clusters stay for ever.
//
// # Copies
//
// Backup and Copy return the file as it is at one moment. Copy is done with the database
// before its caller reads the first byte, so a slow reader never makes the database grow.
//
// Restore writes the new file under the name of an unfinished one and checks it, while it
// holds the locks of both. Then it gives the old file a second name, and renames the new
// one over it. Open follows the name: if a file is replaced while Open waits for its lock,
// Open opens the new one.
//
// Replace is Restore of a copy that arrives as a stream from another replica. A copy has the cursor of
// its origin.
//
// Salvage makes a new file of the good values of a damaged one, in the same way. Where
// transitions are missing, it writes a Gap.
//
// # Fleets
//
// The database of a replica belongs to a fleet, whose log it follows from a Cursor. A single coordinator
// has no fleet. SetFleet writes the fleet and a first cursor.
//
// Follow takes entries of the log with the cursor behind them. The transaction of an entry is that of its
// cursor: after a crash, the database has exactly the entries up to its cursor. The writer does
// not divide the entries of one call, nor the parts of an entry. While the disk does not take a group, groups
// become smaller, down to the entries of one call.
//
// When the queue is full, the writer drops the oldest transitions from the history, as it does those of
// Apply. All else of their entries is still written, and the Gap and the health that they led to are in the
// transaction of their cursor. So the cursor never passes an entry without its changes to the state, nor a
// missing transition without a Gap. The oldest events of Follow go when more than 4,096 wait. An
// event says so.
//
// From three replicas to a single coordinator and back, the database stays. Apply and Append on a database with a
// fleet mark it as Diverged, in the transaction of what they add or before: it then has what the log of the fleet
// has not. The cursor stays. A replica cannot follow the log from there. It has to take the
// database of another replica by Replace, or, if its own is the one to go on with, to found
// another fleet and call SetFleet. Events, the audit and what a retention deletes are of each replica, and
// let nothing diverge. Salvage marks the database if it has lost anything. With the cursor itself lost, Fleet is
// empty and Diverged is true.
//
// A release without fleets opens such a file, and keeps the cursor. If it has appended transitions, the database
// has diverged: the newest one is newer than the row of the cursor says. Changes of operators alone
// do not show.
//
// # Parts
//
//	database     the open file: transactions that wait for the disk and survive bad pages
//	intake       what waits for the writer
//	queue        its transitions, and how many of them a group takes
//	portion      the entries of a fleet that a group has whole or not at all, and their cursor
//	journal      the queue of the audit, and that of events
//	writer       the goroutine that commits groups
//	timekeeper   steady time, and the recorded time of transitions
//	pruner       retention, the quota, and endpoints to forget
//	dates        when the transitions of one transaction happened
//	history      queries: pages of transitions, past health, availability, places
//	State        everything else, read at once at a start
//	Restore, Examine, Check   copies, and what is wrong with them
//	rescuer       what Salvage keeps
//
// # Keys
//
//	header        "hdsd": format, schema version; "clock": where recorded time ran ahead;
//	              "time": steady time, and which transitions a wrong clock dated;
//	              "early": how far it was deleted because of MaxBytes;
//	              "fleet": the cursor in the log of a fleet, and the newest transition or gap beside it
//	transitions   recorded time: transition
//	by-cluster    cluster hash, recorded time
//	by-endpoint   cluster hash, endpoint hash, recorded time: from, to, and how long the
//	              endpoint had each status before
//	addresses     address hash, cluster hash, endpoint hash
//	current       cluster hash, endpoint hash: the endpoint's last transition
//	plan          checker hash: checker, endpoint hashes
//	clusters      cluster hash: name
//	trials        hash of the record's name: Trials
//	freeze        "freeze": Freeze; "held": HeldHealth; only while publishing is frozen
//	overrides     hash of its scope: Override
//	voted         endpoint hash: VotedHealth, of endpoints under an override
//	trust         checker: Trust
//	established   checker: Established
//	penalties     endpoint hash: Penalty, of endpoints that went down lately and are damped
//	given-back    cluster hash: name, of clusters that data planes check again
//	taken-over    cluster hash: name, of clusters that data planes leave to hdsd
//	audit         time: AuditEntry
//	events        time, kind: Event, what happened beside changes of health
//	moves         cluster hash, endpoint hash, recorded time: Move, of both transitions of an
//	              endpoint of which only the locality changed
//	gaps          recorded time where it begins: Gap
//
// The last ones, from trials on, come with their first row. Their values are messages of
// proto/hdsd/store/v1. The other values have encodings of their own, which are fast. Numbers in
// keys are big-endian, so that bytes sort as numbers do. Values end with a checksum over key and
// value.
//
// Availability is the difference of two rows of by-endpoint, for each locality in which the
// endpoint was. Rows of schema 2 have no such sums. There, at gaps, and where a wrong clock dated
// transitions, every transition of the period is read.
//
// # Goroutines
//
// Open starts one, the writer. Close commits what is left, ends it and waits for it. The
// writer calls Options.OnError and OnClock; queries call OnError too.
//
// The package imports health, the entries of the log, its messages and bbolt, no other stage.
package store
