// Package engine runs the log of a replica: it turns what package log/etcd reports into events of a
// replica.Replica, and carries out the effects about the log.
//
// # Goroutines
//
// Run joins the log. Then one goroutine follows the log, one campaigns, and one tells which replicas there
// are. While the replica leads, one trims the log, and the commit in progress has one. They end when the log is not as
// this replica needs it. Run looks again after a pause that grows up to 10 s, verifies that the log has the latest entry that
// this replica has read, and goes on. So an operator puts etcd right, and restarts nothing. All goroutines end before Run returns.
//
// Events wait while the replica is busy, so a slow replica holds etcd back, and buffers nothing.
package engine
