// Package engine runs the log of a replica: it turns what package log/etcd reports into events of a
// replica.Replica, and carries out the effects about the log.
//
// # Goroutines
//
// Run joins the log. Then one goroutine follows the log, one campaigns, and one tells which replicas there
// are. While the replica leads, one trims the log, and the commit in progress has one. They end before Run
// returns.
//
// Events wait while the replica is busy, so a slow replica holds etcd back, and buffers nothing.
package engine
