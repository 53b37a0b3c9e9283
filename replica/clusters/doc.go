// Package clusters has the clusters of all replicas of a fleet. Each replica publishes what its own sources
// have; the leader checks the union.
//
// # Parts
//
//	Own     the clusters of this replica's sources, and what the leader has yet to hear of them
//	Union   the clusters of all replicas, and what the leader's Machine has yet to hear of them
//
// Replicas that read the same sources have the same clusters, so a replica tells the names and digests of its
// clusters first. The leader asks for the content of those that it does not have.
//
// # The union
//
// A cluster of the union is the version that most replicas have, of several the one of the first replica by id, with the
// endpoints of the other versions, too. So the union does not depend on who leads, and two replicas with two versions of
// a cluster both have the health of their endpoints, by the health checks of one version. The clusters that a
// replica has told stay for ten minutes (Patience) after it was lost. When it lists them anew, after a restart or on
// another link, those of before stay until the sources that had them have answered: so no restart of a replica ends
// the health of endpoints that it has alone.
//
// While a new version of a cluster is on its way to the leader, the version of before counts.
//
// A source has answered if it has answered at each replica. Until the leader has heard of the clusters of each replica
// with a session, no source has, and no absent endpoint is given up. The same is true for Patience after the start of the
// leader's process, which does not know the replicas that were lost before: they may be the only ones with an endpoint.
//
// # Bounds
//
// An Update has 20,000 names and 4 MB of content. A call of Next reads and prepares clusters with 20,000 endpoints; the
// next call goes on.
//
// The package is pure: it has no goroutine, lock, clock or log.
package clusters
