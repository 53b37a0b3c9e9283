// Package etcd keeps the log of several replicas in etcd: the entries, the session of each
// replica, and the election of the replica that may write, the leader.
//
// # Parts
//
//   - A Client is one replica's session: a lease with its renewals, and a key under the lease with
//     the replica's address. Its View lists the replicas and the leader. Its Status lists problems,
//     with their times and errors.
//   - Join checks that the prefix belongs to the fleet of the caller, and returns its Log.
//   - Log.Campaign waits until the replica is the leader. The create revision of the leader's key
//     is the epoch.
//   - Log.Commit appends an entry. Log.Follow reads entries from a cursor, for ever. Log.Head returns
//     the end of the log; Log.Trim removes its beginning.
//
// # Keys
//
//	PREFIX/fleet          the fleet that owns the prefix; written once
//	PREFIX/leader         the leader, under its lease
//	PREFIX/replicas/ID    a replica, under its lease
//	PREFIX/log/SEQUENCE   an entry: the epoch in 8 bytes, then the payload; 20 digits
//
// # Guarantees
//
//   - An entry is in the log exactly once, even if answers are lost. A commit is a transaction that
//     requires the leader's key, the entry before, and the absence of the entry. Retries use the same
//     key until the fate of the commit is known.
//   - Entries have no gaps, so the first entry and the number of entries give the head. The next
//     commit or a follower detects a log that lost its end.
//   - A former leader cannot commit, trim or resign: etcd compares the create revision and the lease
//     of the leader's key with those of its term. Leases have random numbers, so an epoch that recurs
//     in a restored etcd is another term.
//   - Followers get every entry once and in order, over outages, compactions and reconnects, or an
//     error of errors.go that says what to do.
//   - While etcd is away, calls retry at least once a second until their context ends.
//
// A session keeps its lease as long as etcd has it, also after a long outage: only etcd knows whether
// a lease has ended, and it extends leases when its own leader changes. A replica that is wrong about
// its lease does no harm, since commits are fenced. The package chooses the numbers of leases, so it
// can repeat a grant after a lost answer, and leaves no lease behind.
//
// # Why without etcd's own client
//
// The package calls etcd's gRPC services directly. The client of etcd ends the renewal of a lease
// for good after a TTL of silence, buffers the events of a slow watcher without a bound, retries in
// loops of its own, and reads the password once. Here, the goroutine that handles the events of a
// watch also reads them, so a slow follower holds etcd back, and buffers nothing.
//
// # Goroutines
//
// Open starts one that owns the lease and one that reads the view; Close waits for both, and
// revokes the lease. Everything else runs on the goroutine of its caller, but for the attempts of
// commits and renewals, which overlap at a slow etcd and end before the call. There are no queues: a
// late reader of the view or the status sees the latest value.
//
// A replica calls one member of etcd until the member does not answer. Watches end with the stay at
// their member. Renewals of the lease are calls with a deadline, so they detect a member that hangs
// for all watches.
//
// It imports no other package of hdsd. Payloads are opaque bytes.
package etcd
