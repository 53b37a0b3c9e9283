package attention

// ReplicasCommand is the next command for the kinds of replicas.
const ReplicasCommand = "hdsd replicas"

// Replication is what is wrong with several replicas, as one of them sees it.
type Replication struct {
	NoLeader   Named   // reason why no replica leads; no name
	EngineLost Named   // reason why etcd does not serve this replica; no name
	Lost       []Named // replicas that are gone
	Differ     []Named // replicas with other clusters than the leader; the reason names the clusters
}

// NoLeaderText is the text of NoLeader.
func NoLeaderText(reason string) string {
	return "no replica leads: " + reason + "; the last health stays and checks go on, but no verdict changes; " +
		"a replica leads by itself as soon as most of etcd and one replica reach each other"
}

// LeaderSilentText is the text of NoLeader if a replica leads, and does not answer this one.
func LeaderSilentText(leader, reason string) string {
	return "the leader " + leader + " does not answer this replica: " + reason + "; what this replica shows may be old, without checkers and votes; " +
		"traffic is not affected; see whether " + leader + " runs, and whether replicas reach each other and accept each other's certificates"
}

// ReplicaSilentText is the text of ReplicaLost for a replica that is there, and does not answer this one.
func ReplicaSilentText(replica, reason string) string {
	return "replica " + replica + " does not answer this one: " + reason + "; its clients are missing in what this one shows; " +
		"traffic is not affected; see whether replicas reach each other and accept each other's certificates"
}

// EngineLostText is the text of EngineLost.
func EngineLostText(reason string) string {
	return "etcd does not serve this replica: " + reason + "; its data planes keep the last health"
}

// ReplicaLostText is the text of ReplicaLost.
func ReplicaLostText(replica, reason string) string {
	return "replica " + replica + " is gone: " + reason + "; traffic is not affected: its checkers and data planes connect to the others; " +
		"start it again, before another one fails"
}

// ReplicasDifferText is the text of ReplicasDiffer.
func ReplicasDifferText(replica, clusters string) string {
	return "replica " + replica + " and the leader have different clusters (" + clusters + "): each replica publishes what its own sources have, and all are checked; " +
		"see whether the same files, and the same management servers, reach all replicas"
}

// OfReplica reports whether a kind is about one replica, not about all that the replicas check.
func (k Kind) OfReplica() bool {
	switch k {
	case NotReady, EngineLost, PlanesRefusing, SourceBroken, ShrinkageHeld, HistoryFailing, MessagesWait:
		return true
	case NoLeader, ReplicaLost: // as each replica sees it
		return true
	}
	return false
}
