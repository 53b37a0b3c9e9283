// Package replica is one replica of a fleet of several, which decide as one. It joins a machine.Follower, which
// each replica always has, and a machine.Machine, which it has while it leads.
//
// Step takes an Event and the time, and yields Effects. The owner carries out each effect, in their order,
// and calls Tick when Wait has passed. Package log/etcd has the calls for the events and effects of the log.
//
// # Parts
//
//	Follower   what the data planes and the store of this replica get: the entries read from the log, those
//	           that this replica has decided, too
//	roster     the checkers of this replica, with their latest votes and specifiers
//	orders     the orders that operators gave to this replica, until their end
//	term       the Machine of a leader, and what the leader knows of the checkers of all replicas
//	committer  the entries that wait for a commit, in batches
//
// # Terms
//
// A leader that has won an epoch reads the log up to its head. Then a Term begins: it sends a Welcome to each replica,
// which answers with a full Report as soon as etcd says, too, who leads: its checkers, its orders, and its clusters. When all have told their clusters, or
// after a second, the leader makes a Machine of the state that the entries come to and of the union of the
// clusters (package replica/clusters). Changes follow. Messages of another term are ignored, and so
// are late messages of an earlier link. After a link has opened anew, Welcome and full Report come again.
//
// The Machine's changes for data planes are dropped, and its entries wait for a commit. With the epoch, the Machine
// and its entries are gone. So a decision that is not in the log has never been seen.
//
// # Guarantees
//
//   - Data planes and stores get what the log has, in its order, and nothing else. The entries of one step of the
//     Machine are in one batch.
//   - A change of leader changes no health: the next Machine begins with the health of the log, and what it does not
//     know yet it awaits. The vote of a checker counts when the checker follows a specifier of the
//     term. If that equals the checker's latest one, it does so at once, and nothing is sent to it.
//   - A change of leader moves no seat: a specifier is sent when its plan is in the log. The time to settle begins
//     when the other replicas have reported, also those that have lost their session a moment ago.
//   - A vote on an endpoint that has left and come back since does not count, nor does one by an earlier check.
//   - Of two replicas with a session of one checker, that with the earlier one has it, as long as this reports.
//   - An order is carried out once or not at all. Its entries have its id, so the replica that took it sees them in
//     the log. It is refused when a new term begins and the entries before do not have it.
//   - All replicas store the same history and the same audit, from the entries alone. An entry has the operator of
//     its order, as the replica that took the order has verified. The events of the history that the leader's Machine
//     leads to are in the log, too: the owner makes them of the effects, and the leader adds them (Noted).
//
// # Bounds
//
// A link carries one message at a time. What changes meanwhile is merged: the latest vote on an endpoint,
// the latest specifier of a checker. A replica has 1,024 orders that have not ended. While a
// leader gathers the clusters, 16 million sessions and votes of reports wait. If commits are stuck and a million
// records wait, the leader discards them with its Machine, and begins a new term of its epoch when the batch in
// progress is in the log.
//
// # Not yet
//
// Data planes get no health by zone. A new leader does not know the handovers and the probation of the previous one, nor
// its trials that have not ended: it is as after a restart of a single coordinator.
//
// The package is pure: it has no goroutine, lock, clock or log.
package replica
