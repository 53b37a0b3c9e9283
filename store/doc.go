// Package store keeps the history in one bbolt file: every transition with the
// votes behind it, the current health of each endpoint, the plan of who checks
// what, and the names of all clusters that were ever known.
//
// # Guarantees
//
// Append, RememberClusters and what begins with Save only put their work into a
// bounded queue and never wait for the disk. One writer commits it in groups: after
// 10 ms or 4,096 transitions, whichever is first. A group is committed whole or
// not at all, a transition together with the current health that it leads to.
// Queries read what is committed and on disk, nothing else; what a query has
// shown is there after a crash.
//
// Transitions keep the order in which they were appended, whatever the wall
// clock does. Each gets a recorded time, max(the last one + 1 ns, its own
// time), that is its key; queries by time go by its own time, put right where a
// wrong clock turned out to have dated it.
//
// A Place is a recorded time that can be kept over restarts, as a token: After
// gives what was recorded behind it without a gap, or says ErrTooOld. Committed
// tells when to ask again.
//
// When the disk fails, the writer tries again with back-off and reports each
// failure to Options.OnError. When the queue is full meanwhile, the oldest
// transitions in it are dropped from the history, counted and reported, while
// the health that they led to is still written when the disk is back.
//
// Open changes nothing in a file of a newer version or that is damaged or in
// use; it says what to do. It reads the structure of the file first, since
// bbolt itself believes every page that it meets. A value that is damaged is
// skipped, counted and reported. A page that goes bad while the file is open
// ends writing, not the process.
//
// # Retention
//
// Transitions older than Options.Retention are deleted, apart from the newest of
// all. Their age is counted in steady time (timeline.go): the wall clock's while
// that is believed, else what has passed since, so that no wrong clock deletes
// anything. The clock is doubted when it is further from steady time than a leap
// (a tenth of the retention, within bounds), and believed again when it is back,
// when ConfirmClock says so, or when nothing from before is left. A file that has no
// steady time yet is as old as its last change. The health that an endpoint had at the edge is
// still known: it is From of its first transition kept, or its current health
// where there is none. The current health stays until Forget finds that nobody
// knows the endpoint any more and no transition of it is left; names of clusters stay for ever.
//
// # Copies
//
// Backup and Copy give the file as it is at one moment; Copy is done with the
// database before the first byte is read from it, so that a slow reader costs
// room on the disk for a while and never makes the database grow. Restore
// makes the new file under the name of one that is not finished, holds the
// locks of both, reads it through, gives the old one a second name and has the
// new one take its place in one step. Open follows the name: whoever waited
// for the lock of a file that was replaced meanwhile opens the other.
//
// # Keys
//
//	header        "hdsd": format, schema version; "clock": where recorded time ran ahead;
//	              "time": steady time, and which transitions a wrong clock has dated
//	transitions   recorded time: transition
//	by-cluster    cluster hash, recorded time
//	by-endpoint   cluster hash, endpoint hash, recorded time: from, to
//	addresses     address hash, cluster hash, endpoint hash
//	current       cluster hash, endpoint hash: the endpoint's last transition
//	plan          checker hash: checker, endpoint hashes
//	clusters      cluster hash: name
//	trials        cluster hash: cluster, what is proven of it, who was lost while trying it;
//	              the bucket comes with its first row
//	freeze        "freeze": reason, author, time; "held": endpoint hash, health of each;
//	              the bucket is there only while publishing is frozen
//	overrides     hash of its scope: an operator's override
//	voted         endpoint hash: what the votes came to under an override; both buckets come
//	              with their first row
//	trust         checker: what an operator says of it; the bucket comes with its first row
//
// Numbers in keys are big-endian, so that bytes sort as numbers do. Values end
// with a checksum over key and value.
//
// # Goroutines
//
// Open starts one, the writer; Close commits what is left, ends it and waits
// for it. Options.OnError is called from it and from queries, OnClock from it.
//
// The package imports the health vocabulary and bbolt, no other stage.
package store
