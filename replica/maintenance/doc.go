// Package maintenance does what operators need around the etcd of replicas: it founds a fleet again, and examines how
// etcd and the other replicas are reached.
//
// A Founding needs that all replicas are stopped. It changes etcd first, then the database of this replica. If it ends
// between the two, a repetition founds another fleet in place of the first one, whose log has no entries yet.
//
// It has no goroutines but those of the database, which end with Close.
package maintenance
