// Package etcd keeps the log of several replicas in etcd: the entries, the session of each
// replica, and the election of the replica that may write, the leader.
//
// # What it has
//
//   - A Client is one replica's session: a lease that is renewed, and a key under the lease with
//     the replica's address. Its View lists the replicas and the leader; its Status says what
//     does not work, since when and why.
//   - Join finds out whether the prefix belongs to the fleet of the caller, and returns its Log.
//   - Log.Campaign waits until the replica is the leader. The create revision of the leader's key
//     is the epoch.
//   - Log.Commit appends an entry. Log.Follow reads entries from a cursor, for ever. Log.Head says
//     where the log ends; Log.Trim removes its beginning.
//
// # Keys
//
//	PREFIX/fleet          which fleet owns the prefix; written once
//	PREFIX/leader         the leader, under its lease
//	PREFIX/replicas/ID    a replica, under its lease
//	PREFIX/log/SEQUENCE   an entry: the epoch in 8 bytes, then the payload; 20 digits
//
// # What it guarantees
//
//   - An entry is in the log exactly once, whatever answers are lost. A commit is a transaction
//     that compares the leader's key, that there is no such entry, and that there is the entry
//     before. It is retried under the same key until its fate is known.
//   - Entries have no gaps, so the first entry and their number say where the log ends, and a log
//     that lost its end is found out by the next commit or by a follower.
//   - A replica that is no leader any more cannot commit, trim or resign: etcd compares the create
//     revision and the lease of the leader's key with those of its term. A lease has a random
//     number, so an epoch that comes again in a restored etcd is another term.
//   - Followers get every entry once and in order, over outages, compactions and reconnects, or
//     one of the errors in errors.go that say what to do.
//   - Nothing is lost by waiting: while etcd is away, all calls but those whose context ends go on
//     trying, at most one second apart.
//
// A session keeps its lease as long as etcd has it, however long etcd was away: only etcd knows
// whether a lease has ended, and extends leases when it changes its own leader. What a replica
// believes meanwhile does no harm, since commits are fenced. The number of a lease is chosen
// here, so a grant whose answer is lost is repeated, and no lease is left behind.
//
// # Why without etcd's own client
//
// The package calls etcd's gRPC services directly. The client of etcd ends the renewal of a lease
// for good after a TTL of silence, buffers a slow watcher's events without bound, retries in loops
// of its own, and reads the password once. A watch here is read by the goroutine that handles its
// events, so a slow follower holds back etcd and keeps nothing.
//
// # Goroutines
//
// Open starts one that owns the lease and one that reads the view; Close waits for both, and
// revokes the lease. Everything else runs on its caller's goroutine. There are no queues: the
// view and the status are values, of which a reader that is late sees the latest.
//
// A replica calls one member of etcd until that does not answer. A watch ends with the
// connection's stay at its member, so the renewals of the lease, each a call with a deadline,
// find out for all watches when a member hangs.
//
// It imports no other package of hdsd. Payloads are opaque bytes.
package etcd
